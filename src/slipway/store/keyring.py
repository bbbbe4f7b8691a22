"""The file with the keys that open stored secrets: one a line, newest first, for its owner only.

It is replaced as a whole or not at all, and writers exclude each other by a lock file beside it, so a process killed at
any moment leaves a file that works. A key once read stays known in memory: a reader may still hold an older row.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography.fernet import Fernet

from slipway.model.errors import SettingsError


class Keyring:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._mutex = threading.Lock()
        self._known: dict[str, Fernet] = {}
        self._newest = ""
        self._stamp: tuple[int, int, int] | None = None
        if not path.exists():
            with self.exclusive():
                if not path.exists():
                    self._write([Fernet.generate_key()])
        self._read_if_changed()

    def __repr__(self) -> str:
        return f"Keyring({str(self.path)!r})"

    def newest(self) -> tuple[str, Fernet]:
        """The key to close a secret with, as the file stands now."""
        self._read_if_changed()
        return self._newest, self._known[self._newest]

    def opener(self, key_id: str) -> Fernet:
        if key_id not in self._known:
            self._read_if_changed()
        if key_id not in self._known:
            raise SettingsError(
                f"{self.path} has no key {key_id}, which a stored secret needs. "
                "Put back the key file that belongs to this database."
            )
        return self._known[key_id]

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Alone among all processes that would change the file."""
        lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def add(self) -> str:
        """A new newest key; the older ones still open what they closed. Only inside `exclusive`."""
        self._write([Fernet.generate_key(), *_read(self.path)])
        self._read_if_changed()
        return self._newest

    def keep_only(self, key_id: str) -> None:
        """Forget all other keys for good. Only inside `exclusive`, and when no secret needs them."""
        self._write([key for key in _read(self.path) if _id_of(key) == key_id])

    def _read_if_changed(self) -> None:
        with self._mutex:
            stamp = _stamp(self.path)
            if stamp != self._stamp:
                keys = _read(self.path)
                self._known.update({_id_of(key): Fernet(key) for key in keys})
                self._newest, self._stamp = _id_of(keys[0]), stamp

    def _write(self, keys: Sequence[bytes]) -> None:
        draft = self.path.with_name(self.path.name + ".new")
        draft.unlink(missing_ok=True)
        file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, b"".join(key + b"\n" for key in keys))
            os.fsync(file)
        finally:
            os.close(file)
        draft.replace(self.path)
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise SettingsError(f"The key file {path} can't be read: {error.strerror}.") from None
    if status.st_mode & 0o077:
        raise SettingsError(f"The key file {path} can be read by others. Cure: chmod 600 {path}")
    return status.st_ino, status.st_mtime_ns, status.st_size


def _read(path: Path) -> list[bytes]:
    try:
        keys = path.read_bytes().split()
    except OSError as error:
        raise SettingsError(f"The key file {path} can't be read: {error.strerror}.") from None
    for number, key in enumerate(keys, 1):
        if not _is_key(key):
            raise SettingsError(f"{path}, line {number}: not a key. Put back the file from a backup.")
    if not keys:
        raise SettingsError(f"The key file {path} is empty. Put it back from a backup.")
    return keys


def _is_key(key: bytes) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True


def _id_of(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:16]
