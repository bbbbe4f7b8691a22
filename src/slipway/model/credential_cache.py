"""A short-lived cache of what was found out about credentials, keyed by their hashes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Generic, TypeVar

T = TypeVar("T")


class CredentialCache(Generic[T]):
    """Bounded: the least recently used entry is dropped. A key is whatever text holds the whole credential."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, credential: str) -> T | None:
        key = _key(credential)
        until, found = self._kept.get(key, (0.0, None))
        if until <= self._clock():
            self._kept.pop(key, None)
            return None
        self._kept.move_to_end(key)
        return found

    def keep(self, credential: str, found: T, until: float) -> None:
        if until <= self._clock():
            return
        self._kept[_key(credential)] = (until, found)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def forget(self, credential: str) -> None:
        self._kept.pop(_key(credential), None)


def _key(credential: str) -> bytes:
    return sha256(credential.encode()).digest()
