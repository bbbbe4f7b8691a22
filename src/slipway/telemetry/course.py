"""In whose course something happens: which request, instance, operation and step. The log asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

COURSE: ContextVar[Mapping[str, str]] = ContextVar("course", default=MappingProxyType({}))
# The `traceparent` of the request in whose course we are, as it came.
CALLER: ContextVar[str | None] = ContextVar("caller", default=None)


@contextmanager
def within(**more: str) -> Iterator[None]:
    """What happens inside, tasks and journal writes that begin there included, belongs to these as well."""
    before = COURSE.set({**COURSE.get(), **more})
    try:
        yield
    finally:
        COURSE.reset(before)
