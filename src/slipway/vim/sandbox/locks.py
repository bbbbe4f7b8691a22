"""Locks between processes and threads on one machine: who makes what is made once. They end with their holder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from slipway.model.errors import VimError, VimFault
from slipway.waiting import Backoff

LONGEST_PAUSE = 0.1


class Locks:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def hold(self, name: str, seconds: float = 60.0) -> Iterator[None]:
        """Wait for the lock, with an end."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{sha256(name.encode()).hexdigest()[:24]}.lock"
        backoff = Backoff(0.002, LONGEST_PAUSE, timeout=seconds)
        with path.open("w") as file:
            while not _taken(file.fileno()):
                if not backoff.sleep():
                    what = f"the lock of {name}, which another worker holds"
                    raise VimError(f"timed out after {seconds:g} s waiting for {what}.", VimFault.TEMPORARY)
            yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
