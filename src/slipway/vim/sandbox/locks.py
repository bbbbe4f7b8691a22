"""Locks between processes and threads on one machine: who makes what is made once. They end with their holder."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from slipway.model.errors import VimError, VimFault

LONGEST_PAUSE = 0.1


class Locks:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def hold(self, name: str, seconds: float = 60.0) -> Iterator[None]:
        """Wait for the lock, with an end."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{sha256(name.encode()).hexdigest()[:24]}.lock"
        deadline, pause = time.monotonic() + seconds, 0.002
        with path.open("w") as file:
            while not _taken(file.fileno()):
                if time.monotonic() > deadline:
                    raise VimError(f"Another worker has been busy with {name} for {seconds:.0f} s.", VimFault.TEMPORARY)
                time.sleep(pause)
                pause = min(pause * 1.5, LONGEST_PAUSE)
            yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
