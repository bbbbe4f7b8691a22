"""The files that packages arrive in.

Who writes one holds a lock on it, which the kernel takes back when that process ends, however it ends. So every process
can see whether it is still being written, without a timeout.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import BinaryIO

PREFIX = ".incoming-"


class IncomingFiles:
    """Files are made, moved and removed only while the package's row is locked."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, package_id: str) -> Path:
        return self._directory / f"{PREFIX}{package_id}"

    def ids(self) -> set[str]:
        return {path.name.removeprefix(PREFIX) for path in self._directory.glob(f"{PREFIX}*")}

    def begin(self, package_id: str) -> BinaryIO:
        """A new file, locked until it is closed."""
        file = self.path(package_id).open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            file.close()
            raise
        return file

    def is_being_written(self, package_id: str) -> bool:
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
