"""Delivers notifications: to one subscriber in order and one at a time, to all subscribers in parallel.

A failed delivery is retried with exponential backoff; only notifications of the same subscriber wait. What is too
old is dropped, counted, and shown by `slipway subscription show`. A process that dies in the middle leaves its
subscribers to others when its lease ends; the last notification may then arrive twice, and has the same id.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Connection

from slipway.model.subscription import Authentication, Subscription
from slipway.notify.client import DeliveryError, NotificationClient
from slipway.store import subscriptions
from slipway.store.database import Database
from slipway.store.poll_loop import DATABASE_UNAVAILABLE, PollLoop
from slipway.store.secrets import Vault

log = logging.getLogger(__name__)

LEASE = 60.0  # seconds; longer than any call
SUBSCRIBERS_AT_ONCE = 256
BATCH = 50
FIRST_RETRY = 1.0
LONGEST_RETRY = 300.0


class NotificationSender:
    """`base_url` begins the links in notifications."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        client: NotificationClient,
        base_url: str,
        *,
        poll: float,
        give_up_after: float,
    ) -> None:
        self.id = f"sender-{secrets.token_hex(8)}"
        self._database = database
        self._vault = vault
        self._client = client
        self._base = base_url.rstrip("/")
        self._rounds = PollLoop(poll)
        self._give_up_after = give_up_after
        self._busy: dict[str, asyncio.Task[None]] = {}

    def wake(self) -> None:
        """Look for notifications now rather than at the next poll."""
        self._rounds.wake()

    async def serve(self) -> None:
        """Until `shut_down` is called."""
        await self._rounds.run(self._round)

    async def shut_down(self) -> None:
        """Deliveries under way are cancelled; another process delivers them again."""
        self._rounds.end()
        for task in self._busy.values():
            task.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)
        await self._database.write(subscriptions.release_all, self.id)
        await self._client.close()

    async def _round(self) -> None:
        room = SUBSCRIBERS_AT_ONCE - len(self._busy)
        if room <= 0 or not await self._database.read(subscriptions.any_due):
            return
        claimed = await self._database.write(subscriptions.claim, self.id, LEASE, room, list(self._busy))
        if self._rounds.ended:  # since the claim began: `shut_down` may have released before
            await self._database.write(subscriptions.release_all, self.id)
            return
        for subscription in claimed:
            task = asyncio.create_task(self._deliver(subscription), name=f"notify {subscription.id}")
            self._busy[subscription.id] = task
            task.add_done_callback(partial(self._done, subscription.id))

    def _done(self, subscription_id: str, task: asyncio.Task[None]) -> None:
        del self._busy[subscription_id]
        self._rounds.wake()  # something may have come after the last look

    async def _deliver(self, subscription: Subscription) -> None:
        """All notifications of one subscriber, until none is left or one fails."""
        try:
            authentication, project = await self._database.read(self._credentials, subscription)
            while waiting := await self._database.read(subscriptions.next_waiting, subscription.id, BATCH):
                if old := [one.position for one in waiting if one.age > self._give_up_after]:
                    log.warning("dropped %d notifications for subscription %s, too old", len(old), subscription.id)
                    await self._database.write(subscriptions.given_up, subscription.id, old)
                    continue
                for one in waiting:
                    body = with_base(msgspec.json.decode(one.body), self._base)
                    await self._client.send(
                        subscription.callback_uri, body, authentication, subscription.interface, project
                    )
                    await self._database.write(subscriptions.arrived, subscription.id, [one.position], LEASE)
            await self._database.write(subscriptions.release, subscription.id)
        except DeliveryError as failure:
            log.info("subscription %s: %s", subscription.id, failure)
            await self._database.write(self._schedule_retry, subscription.id, str(failure))
        except DATABASE_UNAVAILABLE as error:
            log.warning("subscription %s waits for the database: %s", subscription.id, error.orig)

    def _schedule_retry(self, connection: Connection, subscription_id: str, error: str) -> None:
        longest = min(LONGEST_RETRY, FIRST_RETRY * 2 ** min(subscriptions.failures_of(connection, subscription_id), 20))
        wait = random.uniform(longest / 2, longest)  # noqa: S311 - not for secrecy
        subscriptions.failed(connection, subscription_id, error, wait)

    def _credentials(self, connection: Connection, subscription: Subscription) -> tuple[Authentication | None, str]:
        """The credentials for a subscriber, and its project."""
        if not subscription.authentication:
            return None, ""
        clear = self._vault.decrypt_secrets(connection, [subscription.id], subscription.authentication)
        return msgspec.convert(clear, Authentication), subscriptions.project_of(connection, subscription.id)


def with_base(body: dict[str, Any], base: str) -> dict[str, Any]:
    """The notification with whole addresses in its links."""
    links = {name: {"href": base + link["href"]} for name, link in body.get("_links", {}).items()}
    return body | {"_links": links}
