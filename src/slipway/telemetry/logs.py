"""The log: one line a record, as text or as JSON, each with the request, instance, operation and step it belongs to.

Much of what is logged came from outside: names, paths, answers of machines. None of it may end a line, begin another or
move a terminal's cursor.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, TextIO

LogFormat = Literal["text", "json"]

# Which request, instance, operation and step the running code works for.
LOG_CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("log context", default=MappingProxyType({}))
# The `traceparent` header of the request that the running code works for.
TRACEPARENT: ContextVar[str | None] = ContextVar("traceparent", default=None)

# What they say of each request or step is too much, and may hold what nobody should read.
NOISY_LOGGERS = (
    "alembic", "asyncssh", "dogpile", "httpcore", "httpx", "keystoneauth", "openstack", "opentelemetry", "stevedore",
    "urllib3", "uvicorn",
)  # fmt: skip

# Controls of ASCII and Latin-1, line and paragraph separators, what turns the direction of text, halves of characters.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN = re.compile(r"[\w./:@+-]+")


@contextmanager
def log_context(**more: str) -> Iterator[None]:
    """Adds to the context of whatever is logged inside, also by tasks and journal writes that begin there."""
    before = LOG_CONTEXT.set({**LOG_CONTEXT.get(), **more})
    try:
        yield
    finally:
        LOG_CONTEXT.reset(before)


def set_up(level: str, form: LogFormat, stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.addFilter(add_log_context)
    handler.setFormatter(JsonLine() if form == "json" else TextLine())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def add_log_context(record: logging.LogRecord) -> bool:
    """A logging filter that drops nothing, and keeps the log context with the record."""
    record.context = LOG_CONTEXT.get()
    return True


def escaped(text: str) -> str:
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


class TextLine(logging.Formatter):
    """Time, level, logger, message, [context]. A traceback follows, indented: no line of it looks like a record."""

    def format(self, record: logging.LogRecord) -> str:
        message = escaped(record.getMessage()) + _pairs(_context(record))
        line = f"{_time(record)} {record.levelname} {record.name}: {message}"
        traceback = _exception(self, record)
        return "\n".join([line, *(f"    {escaped(one)}" for one in traceback.split("\n"))]) if traceback else line


class JsonLine(logging.Formatter):
    """One object a line, in ASCII: nothing in it means anything to a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, str] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_context(record),
        }
        if traceback := _exception(self, record):
            document["exception"] = traceback
        return json.dumps(document).replace("\x7f", "\\u007f")


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _context(record: logging.LogRecord) -> Mapping[str, str]:
    context: Mapping[str, str] = getattr(record, "context", {})
    return context


def _pairs(context: Mapping[str, str]) -> str:
    pairs = (f"{name}={value if _PLAIN.fullmatch(value) else _quoted(value)}" for name, value in context.items())
    return f" [{' '.join(pairs)}]" if context else ""


def _quoted(value: str) -> str:
    return '"' + escaped(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info and record.exc_info[0]:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)
