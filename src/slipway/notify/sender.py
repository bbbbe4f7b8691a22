"""Delivers what waits: to each subscriber in order and one at a time, to all of them side by side.

A subscriber that does not answer is asked again after a while that grows; only its own notifications wait. What is too
old is given up, counted, and shown by `slipway subscription show`. A process that dies in the middle leaves its
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
from slipway.notify.calling import CallFailed, Calling
from slipway.store import subscriptions
from slipway.store.database import Database
from slipway.store.rounds import DATABASE_AWAY, Rounds
from slipway.store.secrets import Vault

log = logging.getLogger(__name__)

LEASE = 60.0  # seconds; longer than any call
AT_ONCE = 256  # subscribers
BATCH = 50
FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0


class Sender:
    """`base_url` begins the links in what is told."""

    def __init__(
        self, database: Database, vault: Vault, calling: Calling, base_url: str, *, poll: float, give_up_after: float
    ) -> None:
        self.id = f"sender-{secrets.token_hex(8)}"
        self._database = database
        self._vault = vault
        self._calling = calling
        self._base = base_url.rstrip("/")
        self._rounds = Rounds(poll)
        self._give_up_after = give_up_after
        self._busy: dict[str, asyncio.Task[None]] = {}

    def wake(self) -> None:
        """There may be something to deliver: look now rather than at the next poll."""
        self._rounds.wake()

    async def serve(self) -> None:
        """Until `leave` is called."""
        await self._rounds.run(self._round)

    async def leave(self) -> None:
        """What is under way is broken off: it is delivered again by whoever comes next."""
        self._rounds.end()
        for task in self._busy.values():
            task.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)
        await self._database.write(subscriptions.release_all, self.id)
        await self._calling.close()

    async def _round(self) -> None:
        room = AT_ONCE - len(self._busy)
        if room <= 0 or not await self._database.read(subscriptions.any_due):
            return
        claimed = await self._database.write(subscriptions.claim, self.id, LEASE, room, list(self._busy))
        if self._rounds.over:  # since the claim began: `leave` may have released before
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
        """All that waits for one subscriber, until nothing is left or it does not answer."""
        try:
            authentication, project = await self._database.read(self._opened, subscription)
            while waiting := await self._database.read(subscriptions.next_waiting, subscription.id, BATCH):
                if old := [one.position for one in waiting if one.age > self._give_up_after]:
                    log.warning("gave up %d notifications for subscription %s", len(old), subscription.id)
                    await self._database.write(subscriptions.given_up, subscription.id, old)
                    continue
                for one in waiting:
                    body = with_base(msgspec.json.decode(one.body), self._base)
                    await self._calling.tell(
                        subscription.callback_uri, body, authentication, subscription.interface, project
                    )
                    await self._database.write(subscriptions.arrived, subscription.id, [one.position], LEASE)
            await self._database.write(subscriptions.release, subscription.id)
        except CallFailed as failure:
            log.info("subscription %s: %s", subscription.id, failure)
            await self._database.write(self._failed, subscription.id, str(failure))
        except DATABASE_AWAY as error:
            log.warning("subscription %s waits for the database: %s", subscription.id, error.orig)

    def _failed(self, connection: Connection, subscription_id: str, error: str) -> None:
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(subscriptions.failures_of(connection, subscription_id), 20))
        wait = random.uniform(longest / 2, longest)  # noqa: S311 - not for secrecy
        subscriptions.failed(connection, subscription_id, error, wait)

    def _opened(self, connection: Connection, subscription: Subscription) -> tuple[Authentication | None, str]:
        """How to log in at a subscriber, and its project."""
        if not subscription.authentication:
            return None, ""
        clear = self._vault.reveal(connection, [subscription.id], subscription.authentication)
        return msgspec.convert(clear, Authentication), subscriptions.project_of(connection, subscription.id)


def with_base(body: dict[str, Any], base: str) -> dict[str, Any]:
    """The notification with whole addresses in its links."""
    links = {name: {"href": base + link["href"]} for name, link in body.get("_links", {}).items()}
    return body | {"_links": links}
