"""A file of a package that may be larger than memory: a software image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

from slipway.model.errors import RequestError, StepError

PIECE = 1 << 20  # bytes


@dataclass(frozen=True)
class PackageContent:
    """Iterating reads it piece by piece, from its beginning each time. It blocks, so it is for threads.

    StepError comes before the last piece when it is not the file with that digest: nobody gets the whole of another.
    It comes, too, when the file can't be read: whoever sends the pieces must not take that for a lost connection.
    """

    path: str
    size: int
    digest: str  # SHA-256, in hex
    open: Callable[[], BinaryIO]

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[bytes]:
        known, last = sha256(), b""
        for piece in self._pieces():
            known.update(piece)
            if last:
                yield last
            last = piece
        if known.hexdigest() != self.digest:
            raise not_as_planned(self.path)
        if last:
            yield last

    def _pieces(self) -> Iterator[bytes]:
        try:
            with self.open() as file:
                while piece := file.read(PIECE):
                    yield piece
        except (OSError, RequestError) as error:
            raise StepError(
                f"{self.path} of the package can't be read: {error}",
                cure="see that the package is still there; if it is damaged, onboard it again.",
            ) from error


def not_as_planned(path: str) -> StepError:
    return StepError(
        f"{path} of the package is not the file that the operation was planned with.",
        cure="the package was replaced; fail or roll back the operation, and begin another.",
    )
