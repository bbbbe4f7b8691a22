"""Uvicorn as a guest in our event loop: it says when it is ready, and leaves the signals to us."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import uvicorn


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: str) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(self._ready, flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
