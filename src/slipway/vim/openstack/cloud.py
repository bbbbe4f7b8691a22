"""One OpenStack's APIs, asked in threads: every call of the driver goes through `Cloud.call`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from slipway.model.action import VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.outgoing.responses import server_message
from slipway.vim.blocking import BlockingCalls
from slipway.vim.openstack.account import account_of
from slipway.vim.openstack.answers import CURE as NOT_THE_SERVICE
from slipway.vim.openstack.answers import Identified, Page, decoded
from slipway.vim.openstack.errors import translated_errors
from slipway.vim.openstack.session import OpenStackSessions

if TYPE_CHECKING:
    import requests
    from openstack.connection import Connection

HEAT, NOVA, NEUTRON, GLANCE, CINDER = "orchestration", "compute", "network", "image", "block_storage"
JSON_PATCH = "application/openstack-images-v2.1-json-patch"  # what Glance takes by PATCH
NOVA_VERSION = "2.26"  # of servers with tags, by which those of an instance are listed
AT_ONCE = 16  # calls of one step; a project's calls wait in a queue that has an end
# A retry says the same again: it helps only where the cloud is what changes.
CURE = "roll back, correct what is named there in the VNFD, its template or the request, and ask anew."
# Heat makes a trust for each stack unless it is told otherwise, and does not say that Keystone refused it.
TRUSTS = (
    "give the VIM a user and password: Keystone may forbid application credentials the trust that Heat makes for a "
    "stack (Heat's log says so). An older Keystone allows it to those made with --unrestricted, a newer one where its "
    "[security_compliance] allow_insecure_application_credential_trust_escalation is true."
)

T = TypeVar("T")
One = TypeVar("One")
Item = TypeVar("Item", bound=Identified)
Query = Mapping[str, str | int | Sequence[str]]


class Content(Protocol):
    """A body in pieces, from its beginning each time it is iterated."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[bytes]: ...


class Cloud:
    def __init__(self, connection: VimConnection, sessions: OpenStackSessions, calls: BlockingCalls) -> None:
        self._connection, self._sessions, self._calls = connection, sessions, calls

    async def call(
        self, service: str, method: str, path: str, *, json: Any = None, secrets: Sequence[str] = ()
    ) -> None:
        """The answer is not read. VimError says what was asked and what came back, without the secrets that are in the
        body."""
        await self._run(service, method, path, json=json, secrets=secrets)

    async def post(self, service: str, path: str, kind: type[T], *, json: Any) -> T:
        return cast("T", await self._run(service, "POST", path, kind, json=json))

    async def read(self, service: str, path: str, kind: type[T], *, query: Query | None = None) -> T:
        """By GET. VimError, too, where the answer is something else than such a `kind` (answers.py)."""
        return cast("T", await self._run(service, "GET", path, kind, query=query))

    async def find(self, service: str, path: str, kind: type[T]) -> T | None:
        """By GET; None where there is nothing."""
        return await self._run(service, "GET", path, kind, absent=True)

    async def remove(self, service: str, path: str) -> None:
        """By DELETE; it may be gone already."""
        await self._run(service, "DELETE", path, absent=True)

    async def removed(self, service: str, path: str) -> bool:
        """By DELETE, too; False where the service says that it is in use."""

        def ask() -> bool:
            what, known = f"DELETE {path} ({service})", list(self.secrets)
            response = self._ask(service, "DELETE", path, what, None, None, known, allowed=(404, 409))
            _refuse_redirect(response, what, known)
            return response.status_code != 409

        return await self._calls.run(self._connection, ask)

    async def send(self, service: str, path: str, content: Content) -> None:
        """By PUT, piece by piece. When this is cancelled, no further piece is sent."""
        body = _Body(content)

        def put() -> None:
            from openstack.exceptions import raise_from_response

            known = list(self.secrets)
            with translated_errors(f"PUT {path} ({service})", known, keystone=self._keystone):
                api = getattr(self._connect(known), service)
                headers = {"Content-Type": "application/octet-stream"}
                response = api.request(path, "PUT", data=body, headers=headers)
                raise_from_response(response)
            _refuse_redirect(response, f"PUT {path} ({service})", known)

        await self._calls.run(self._connection, put, stop=body.stop)

    async def project_id(self) -> str:
        """Of the project that the connection's account is in."""

        def ask() -> str:
            with translated_errors("Looking up the project", self.secrets, keystone=self._keystone):
                return str(self._sessions.connect(self._connection).current_project_id)

        return await self._calls.run(self._connection, ask)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The account's, which a server may repeat in what it says."""
        return account_of(self._connection).secrets

    @property
    def _keystone(self) -> str:
        return account_of(self._connection).url

    @property
    def _by_application(self) -> bool:
        return account_of(self._connection).scope is None

    def _connect(self, known: list[str]) -> Connection:
        """Its token is a secret, too."""
        connection = self._sessions.connect(self._connection)
        known.append(connection.session.get_token() or "")
        return connection

    async def _run(
        self,
        service: str,
        method: str,
        path: str,
        kind: type[T] | None = None,
        *,
        json: Any = None,
        query: Query | None = None,
        secrets: Sequence[str] = (),
        absent: bool = False,
    ) -> T | None:
        """None without a `kind`; and, if it may be `absent`, where there is nothing."""

        def ask() -> T | None:
            what, known = f"{method} {path} ({service})", [*self.secrets, *secrets]
            response = self._ask(service, method, path, what, json, query, known, allowed=(404,) if absent else ())
            if absent and response.status_code == 404:
                return None
            _refuse_redirect(response, what, known)
            return None if kind is None else decoded(response.content, kind, _answered(response, what), known)

        return await self._calls.run(self._connection, ask)

    def _ask(
        self,
        service: str,
        method: str,
        path: str,
        what: str,
        json: Any,
        query: Query | None,
        known: list[str],
        *,
        allowed: Collection[int],
    ) -> requests.Response:
        """`allowed`: statuses of refusals that are no error."""
        from openstack.exceptions import raise_from_response

        version = {"microversion": NOVA_VERSION} if service == NOVA else {}
        cure = CURE if service == HEAT and json else None
        trusts = TRUSTS if (service, method, path) == (HEAT, "POST", "/stacks") and self._by_application else None
        with translated_errors(what, known, cure=cure, cure_500=trusts, keystone=self._keystone):
            api = getattr(self._connect(known), service)
            headers = {"Content-Type": JSON_PATCH} if (service, method) == (GLANCE, "PATCH") else {}
            response: requests.Response = api.request(path, method, json=json, params=query, headers=headers, **version)
            if response.status_code not in allowed:
                raise_from_response(response)
        return response


async def for_each(items: Iterable[One], call: Callable[[One], Awaitable[T]]) -> list[T]:
    """What the calls give, in the order of the items, a few at a time.

    When one fails, those that have begun are waited for and no other begins: whatever is done about it comes last.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(one: One) -> T:
        async with turns:
            return await call(one)

    try:
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(in_turn(one)) for one in items]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [one.result() for one in calls]


async def listed(
    cloud: Cloud, service: str, path: str, kind: type[Page[Item]], query: Query, *, most: int
) -> list[Item]:
    """All pages. VimError when they don't end: a page brings nothing new, or there is more than there can be."""
    found: dict[str, Item] = {}
    marker: dict[str, str] = {}
    while True:
        known, page = len(found), await cloud.read(service, path, kind, query={**query, **marker})
        found.update((one.id, one) for one in page.items)
        if not page.more or not page.items:
            return list(found.values())
        if len(found) == known or len(found) > most:
            raise VimError(
                f"GET {path} ({service}): the list has no end: {len(found)} entries, at most {most} can be there, and "
                f"another page is said to follow {page.items[-1].id}.",
                VimFault.TEMPORARY,
                cure=NOT_THE_SERVICE,
            )
        marker = {"marker": page.items[-1].id}


class _Body:
    """It begins anew each time it is sent: keystoneauth repeats a request after a 401."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._stopped = False

    def __len__(self) -> int:
        return len(self._content)

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._content:
            if self._stopped:
                raise OSError("broken off")
            yield piece

    def stop(self) -> None:
        self._stopped = True


def _refuse_redirect(response: requests.Response, what: str, secrets: Sequence[str]) -> None:
    """Nothing was done. One of a GET was followed already, once."""
    if 300 <= response.status_code < 400:
        where = server_message(response.headers.get("location"), secrets)
        raise VimError(
            f"{_answered(response, what)}, which is a redirect ({where or 'to nowhere'}) and not followed.",
            VimFault.PERMANENT,
            cure=NOT_THE_SERVICE,
        )


def _answered(response: requests.Response, what: str) -> str:
    return f"{what}: {urlsplit(response.url).netloc} answered {response.status_code}"
