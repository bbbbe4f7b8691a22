"""Types are built before there are threads.

msgspec builds what it knows of a Struct type when that is first encoded or decoded. Of two threads that do so at once,
one may see a nested type half built, and the process dies (seen with 0.22.0).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


def build_struct_types() -> None:
    """All that are imported by now."""
    for type_ in set(_subclasses(msgspec.Struct)):
        try:
            msgspec.json.Decoder(type_)
        except (TypeError, NameError):
            continue  # it holds what JSON has no word for, or names what only type checkers see: nobody decodes it


def _subclasses(type_: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for subclass in type_.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
