"""A page of a list of which nothing is kept but the names: the objects themselves may be large."""

from __future__ import annotations

import msgspec


class _Metadata(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata | None = None


class _ListMetadata(msgspec.Struct):
    following: str = msgspec.field(name="continue", default="")


class NameList(msgspec.Struct):
    items: list[_Named] | None = None
    metadata: _ListMetadata | None = None

    @property
    def names(self) -> list[str]:
        return [item.metadata.name if item.metadata else "" for item in self.items or ()]

    @property
    def following(self) -> str:
        """What the next page is asked for with; nothing, if this was the last."""
        return self.metadata.following if self.metadata else ""
