"""Groups failures with the same cause: their messages differ in names and addresses of nodes only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

NAMED = 10  # that a message names
_OWN = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # a UUID
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b"  # an IPv4 address
    r"|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,7}",  # an IPv6 address
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Failure:
    """`who` failed on `nodes`, if on any, and `why`."""

    who: str
    why: str
    nodes: tuple[str, ...] = ()


def grouped(failures: Iterable[Failure]) -> list[list[Failure]]:
    """Failures of the same cause together, in their order."""
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(_cause(failure), []).append(failure)
    return list(groups.values())


def listed(names: Iterable[str]) -> str:
    """Names in one line: the first ten, and how many more."""
    every = list(dict.fromkeys(names))
    more = len(every) - NAMED
    return ", ".join(every[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _cause(failure: Failure) -> str:
    why = _OWN.sub("*", failure.why)
    for node in failure.nodes:
        why = re.sub(rf"{re.escape(node)}(?!\d)", "*", why, flags=re.IGNORECASE)
    return why
