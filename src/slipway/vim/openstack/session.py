"""Connections by openstacksdk, behind the guard, kept for a while: one token serves many operations.

    connection = await calls.run(vim, lambda: sessions.connect(vim))     # in a thread: it may log in
    with translated_errors("Reading stack vnf-1"):
        connection.orchestration.get_stack(...)

openstacksdk is imported at the first of them: that takes a second or two.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from slipway.model.action import VimConnection
from slipway.model.credential_cache import CredentialCache
from slipway.model.vim import VimInfo
from slipway.outgoing.guard import Guard
from slipway.vim import trust
from slipway.vim.openstack.account import OpenStackAccount, account_of
from slipway.vim.openstack.catalog import info_of, refuse_several_regions
from slipway.vim.openstack.login import log_in

if TYPE_CHECKING:
    import requests
    from keystoneauth1.session import Session
    from openstack.connection import Connection

    from slipway.outgoing.requests_adapter import AnswerLimits, GuardedAdapter, LoopThread

SECONDS = 60.0  # for one request
KEPT_SECONDS = 900.0  # then everything is looked up again: catalog, versions, certificates
MOST_KEPT = 64
LARGEST_LOGIN = 1 << 20  # bytes of the answer to a login, catalog included, or of a service's versions
MOST_LOGIN_VALUES = 50_000
REDIRECTS = 1  # Heat answers a stack's name with the address of its id


class OpenStackSessions:
    """For all threads. Nothing is retried here but a request whose token was no longer valid, once."""

    def __init__(
        self, guard: Guard | None = None, *, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._guard = guard or Guard(loopback=True)  # without one only in tests of a driver alone
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: CredentialCache[Connection] = CredentialCache(MOST_KEPT, clock)
        self._loop: LoopThread | None = None
        self._adapters: weakref.WeakSet[GuardedAdapter] = weakref.WeakSet()

    def connect(self, vim: VimConnection) -> Connection:
        """Logged in. VimError says why not; BadRequest names what is missing in the connection."""
        account = account_of(vim)
        credential = msgspec.json.encode(
            [vim.vim_id, vim.project, vim.interface_info, vim.access_info, vim.extra], order="deterministic"
        ).decode()
        with self._lock:
            connection = self._kept.get(credential)
            if connection is None:
                connection = self._connection(vim, account)
                self._kept.keep(credential, connection, self._clock() + KEPT_SECONDS)
        refuse_several_regions(account, log_in(account, connection.session).service_catalog.catalog)
        return connection

    def inspect(self, vim: VimConnection) -> VimInfo:
        """What the account's project finds there, after a login of its own."""
        account = account_of(vim)
        with self._lock:
            session, adapter = self._session(vim, account)
        try:
            return info_of(account, log_in(account, session).service_catalog.catalog)
        finally:
            adapter.close()

    def close(self) -> None:
        """Requests under way end with an error."""
        for adapter in list(self._adapters):
            adapter.close()
        if self._loop is not None:
            self._loop.close()

    def _connection(self, vim: VimConnection, account: OpenStackAccount) -> Connection:
        from openstack.connection import Connection

        session, adapter = self._session(vim, account)
        made = Connection(
            session=session, region_name=account.region, interface=account.interface, image_status_code_retries=0
        )
        weakref.finalize(made, adapter.close).atexit = False  # an operation may still use one that is kept no longer
        return made

    def _session(self, vim: VimConnection, account: OpenStackAccount) -> tuple[Session, GuardedAdapter]:
        from keystoneauth1.session import Session

        from slipway.outgoing.requests_adapter import GuardedAdapter, LoopThread, guarded_session

        if self._loop is None:
            self._loop = LoopThread("openstack")
        tls = trust.context(vim.interface_info)
        adapter = GuardedAdapter(
            self._guard, self._loop, verify=tls, redirects=REDIRECTS, seconds=self._seconds, limits=_limits
        )
        self._adapters.add(adapter)
        return Session(account.plugin(), guarded_session(adapter), timeout=self._seconds, redirect=False), adapter


def _limits(request: requests.PreparedRequest) -> AnswerLimits:
    """Logins and versions are asked for without a token; whoever answers those has proved nothing yet."""
    from slipway.outgoing.requests_adapter import LIMITS, AnswerLimits

    return LIMITS if "X-Auth-Token" in request.headers else AnswerLimits(LARGEST_LOGIN, MOST_LOGIN_VALUES)
