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
from slipway.remote.connect import connect
from slipway.remote.known_hosts import KnownHosts
from slipway.remote.limits import Limits
from slipway.remote.target import Target

GOODBYE = 2.0  # seconds


class Pool:
    def __init__(self, known: KnownHosts, limits: Limits) -> None:
        self.known = known
        self.limits = limits
        self._lines: dict[Target, _Line] = {}  # those unused for longest first
        self._room = asyncio.Semaphore(limits.connections)
        self._waiting = 0
        self._closed = False

    @property
    def open(self) -> int:
        return sum(line.alive for line in self._lines.values())

    @asynccontextmanager
    async def borrow(self, target: Target) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """For one command: waits for a place among those that run there."""
        async with self._used(target) as line, line.slots:
            yield await self._connected(line)

    @asynccontextmanager
    async def hold(self, target: Target) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """For a forward, which stays open while commands come and go. sshd does not count it as one of them."""
        async with self._used(target) as line:
            yield await self._connected(line)

    @asynccontextmanager
    async def _used(self, target: Target) -> AsyncIterator[_Line]:
        if self._closed:
            raise StepError("Slipway is stopping.", temporary=True)
        line = self._lines.setdefault(target, _Line(target, self.limits))
        line.borrowed()
        try:
            yield line
        finally:
            line.given_back()
            if line.idle:
                self._rest(line)

    async def close(self) -> None:
        self._closed = True
        lines, self._lines = list(self._lines.values()), {}
        connections = [line.connection for line in lines if line.connection]
        for line in lines:
            self._hang_up(line)
        await asyncio.gather(*(_closed(connection) for connection in connections))

    async def _connected(self, line: _Line) -> asyncssh.SSHClientConnection:
        async with line.connecting:
            if line.connection and line.alive:
                return line.connection
            self._hang_up(line)
            await self._make_room()
            try:
                line.connection = await connect(line.target, self.known, self.limits)
            except BaseException:
                self._room.release()
                raise
            return line.connection

    async def _make_room(self) -> None:
        if self._room.locked():
            idle = next((line for line in self._lines.values() if line.idle and line.connection), None)
            if idle:
                self._forget(idle)
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1

    def _rest(self, line: _Line) -> None:
        """Nobody uses it: keep it for a while, unless it is dead or others wait for room."""
        if self._closed or self._waiting or not line.alive:
            self._forget(line)
            return
        self._lines[line.target] = self._lines.pop(line.target)
        line.timer = asyncio.get_running_loop().call_later(self.limits.idle, self._forget, line)

    def _forget(self, line: _Line) -> None:
        self._hang_up(line)
        if self._lines.get(line.target) is line:
            del self._lines[line.target]

    def _hang_up(self, line: _Line) -> None:
        line.stay()
        if line.connection:
            line.connection.close()
            line.connection = None
            self._room.release()


async def _closed(connection: asyncssh.SSHClientConnection) -> None:
    """Until it is; without a goodbye when the network takes none."""
    try:
        async with asyncio.timeout(GOODBYE):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()


class _Line:
    """One target's connection, and who uses it."""

    def __init__(self, target: Target, limits: Limits) -> None:
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

    def borrowed(self) -> None:
        self._users += 1
        self.stay()

    def given_back(self) -> None:
        self._users -= 1

    def stay(self) -> None:
        """No longer about to be closed for being idle."""
        if self.timer:
            self.timer.cancel()
            self.timer = None
