"""The bytes of an archive: a file, or the part of a file that holds an archive inside another."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from slipway.model.errors import PackageError

CHUNK = 1024 * 1024


class FileWindow:
    """A part of an open file, read by position, so that several readers don't disturb each other."""

    def __init__(self, file: IO[bytes], label: str, start: int = 0, size: int | None = None) -> None:
        self._file = file
        self.label = label
        self._start = start
        self.size = os.fstat(file.fileno()).st_size - start if size is None else size

    @classmethod
    def of(cls, path: Path, label: str | None = None) -> FileWindow:
        """`label` is what people call the file, where it has another name here."""
        return cls(path.open("rb"), label or path.name)

    @classmethod
    def spooled(cls, chunks: Iterable[bytes], label: str) -> FileWindow:
        """Into a file without a name: it is gone when this process is, however that ends."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - close() below ends it
        try:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
        except BaseException:
            file.close()
            raise
        return cls(file, label)

    def window(self, start: int, size: int, label: str) -> FileWindow:
        """A part of the same file, with an own handle."""
        return FileWindow(os.fdopen(os.dup(self._file.fileno()), "rb"), label, self._start + start, size)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes, or PackageError."""
        data = b"" if offset < 0 or offset + length > self.size else self._pread(offset, length)
        if len(data) != length:
            raise PackageError(
                "The archive ends in the middle of its data.", file=self.label, cure="upload the whole file again."
            )
        return data

    def _pread(self, offset: int, length: int) -> bytes:
        return os.pread(self._file.fileno(), length, self._start + offset)

    def close(self) -> None:
        self._file.close()
