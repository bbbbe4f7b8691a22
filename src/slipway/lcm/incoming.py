"""The files that packages arrive in.

Who writes one holds a lock on it, which the kernel takes back when that process ends, however it ends. So every process
can see whether somebody is still at it, and nobody has to guess by the clock.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import BinaryIO

PREFIX = ".incoming-"


class Incoming:
    """Made, moved and removed only by those who hold the package's row: nobody sees a file that is about to go."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, package_id: str) -> Path:
        return self._directory / f"{PREFIX}{package_id}"

    def ids(self) -> set[str]:
        return {path.name.removeprefix(PREFIX) for path in self._directory.glob(f"{PREFIX}*")}

    def begin(self, package_id: str) -> BinaryIO:
        """An empty file, held until it is closed."""
        file = self.path(package_id).open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            file.close()
            raise
        return file

    def is_held(self, package_id: str) -> bool:
        """Whether the process that writes it lives."""
        try:
            with self.path(package_id).open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def remove(self, package_id: str) -> None:
        self.path(package_id).unlink(missing_ok=True)
