"""Connections, shared: one for each target, kept while it is used and a little longer, never more than allowed.

A step borrows a connection for one command. Commands on one machine wait for each other beyond what its sshd takes in
one connection; beyond the bound in all, the connection that was idle longest is closed for the one that is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncssh

from slipway.model.errors import StepError
from slipway.remote.connect import SshLimits, connect
from slipway.remote.known_hosts import KnownHosts
from slipway.remote.target import SshTarget

CLOSE_TIMEOUT = 2.0  # seconds


class Pool:
    def __init__(self, known: KnownHosts, limits: SshLimits) -> None:
        self.known = known
        self.limits = limits
        self._connections: dict[SshTarget, _PooledConnection] = {}  # those unused for longest first
        self._places = asyncio.Semaphore(limits.connections)
        self._waiting = 0
        self._is_closed = False

    @property
    def open(self) -> int:
        return sum(pooled.alive for pooled in self._connections.values())

    @asynccontextmanager
    async def borrow(self, target: SshTarget) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """For one command: waits for a place among those that run there."""
        async with self._acquired(target) as pooled, pooled.slots:
            yield await self._connected(pooled)

    @asynccontextmanager
    async def hold(self, target: SshTarget) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """For a forward, which stays open while commands come and go. sshd does not count it as one of them."""
        async with self._acquired(target) as pooled:
            yield await self._connected(pooled)

    @asynccontextmanager
    async def _acquired(self, target: SshTarget) -> AsyncIterator[_PooledConnection]:
        if self._is_closed:
            raise StepError("Slipway is stopping.", temporary=True)
        pooled = self._connections.setdefault(target, _PooledConnection(target, self.limits))
        pooled.acquire()
        try:
            yield pooled
        finally:
            pooled.release()
            if pooled.idle:
                self._keep_idle(pooled)

    async def close(self) -> None:
        self._is_closed = True
        all_of_them, self._connections = list(self._connections.values()), {}
        connections = [pooled.connection for pooled in all_of_them if pooled.connection]
        for pooled in all_of_them:
            self._close(pooled)
        await asyncio.gather(*(_wait_closed(connection) for connection in connections))

    async def _connected(self, pooled: _PooledConnection) -> asyncssh.SSHClientConnection:
        async with pooled.connecting:
            if pooled.connection and pooled.alive:
                return pooled.connection
            self._close(pooled)
            await self._make_room()
            try:
                pooled.connection = await connect(pooled.target, self.known, self.limits)
            except BaseException:
                self._places.release()
                raise
            return pooled.connection

    async def _make_room(self) -> None:
        if self._places.locked():
            idle = next((pooled for pooled in self._connections.values() if pooled.idle and pooled.connection), None)
            if idle:
                self._discard(idle)
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1

    def _keep_idle(self, pooled: _PooledConnection) -> None:
        """No caller uses it any more: keep it for a while, unless it is dead or others wait for room."""
        if self._is_closed or self._waiting or not pooled.alive:
            self._discard(pooled)
            return
        self._connections[pooled.target] = self._connections.pop(pooled.target)
        pooled.timer = asyncio.get_running_loop().call_later(self.limits.idle, self._discard, pooled)

    def _discard(self, pooled: _PooledConnection) -> None:
        self._close(pooled)
        if self._connections.get(pooled.target) is pooled:
            del self._connections[pooled.target]

    def _close(self, pooled: _PooledConnection) -> None:
        pooled.cancel_idle_timer()
        if pooled.connection:
            pooled.connection.close()
            pooled.connection = None
            self._places.release()


async def _wait_closed(connection: asyncssh.SSHClientConnection) -> None:
    """Closed in order, or broken off when the network takes too long."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()


class _PooledConnection:
    """One target's connection, and who uses it."""

    def __init__(self, target: SshTarget, limits: SshLimits) -> None:
        self.target = target
        self.slots = asyncio.Semaphore(limits.commands_per_host)
        self.connecting = asyncio.Lock()
        self.connection: asyncssh.SSHClientConnection | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._users = 0

    @property
    def idle(self) -> bool:
        return self._users == 0

    @property
    def alive(self) -> bool:
        return self.connection is not None and not self.connection.is_closed()

    def acquire(self) -> None:
        self._users += 1
        self.cancel_idle_timer()

    def release(self) -> None:
        self._users -= 1

    def cancel_idle_timer(self) -> None:
        """No longer about to be closed for being idle."""
        if self.timer:
            self.timer.cancel()
            self.timer = None
