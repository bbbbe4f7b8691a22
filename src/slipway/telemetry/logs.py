"""The log: one line a record, as text or as JSON, each with the request, instance, operation and step it belongs to.

Much of what is logged came from outside: names, paths, answers of machines. None of it may end a line, begin another or
move a terminal's cursor.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO

from slipway.telemetry.course import COURSE

LogFormat = Literal["text", "json"]

TALKATIVE = ("alembic", "asyncssh", "httpcore", "httpx", "opentelemetry", "urllib3", "uvicorn")

# Controls of ASCII and Latin-1, line and paragraph separators, what turns the direction of text, halves of characters.
_HOSTILE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN = re.compile(r"[\w./:@+-]+")


def set_up(level: str, form: LogFormat, stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.addFilter(with_course)
    handler.setFormatter(JsonLine() if form == "json" else TextLine())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def with_course(record: logging.LogRecord) -> bool:
    """A filter that lets all pass, and notes in whose course the record was made."""
    record.course = COURSE.get()
    return True


def escaped(text: str) -> str:
    return _HOSTILE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


class TextLine(logging.Formatter):
    """Time, level, logger, message, [course]. A traceback follows, set in: no line of it looks like a record."""

    def format(self, record: logging.LogRecord) -> str:
        said = escaped(record.getMessage()) + _told(_course(record))
        line = f"{_time(record)} {record.levelname} {record.name}: {said}"
        behind = _exception(self, record)
        return "\n".join([line, *(f"    {escaped(one)}" for one in behind.split("\n"))]) if behind else line


class JsonLine(logging.Formatter):
    """One object a line, in ASCII: nothing in it means anything to a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, str] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_course(record),
        }
        if behind := _exception(self, record):
            document["exception"] = behind
        return json.dumps(document).replace("\x7f", "\\u007f")


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _course(record: logging.LogRecord) -> Mapping[str, str]:
    course: Mapping[str, str] = getattr(record, "course", {})
    return course


def _told(course: Mapping[str, str]) -> str:
    pairs = (f"{name}={value if _PLAIN.fullmatch(value) else _quoted(value)}" for name, value in course.items())
    return f" [{' '.join(pairs)}]" if course else ""


def _quoted(value: str) -> str:
    return '"' + escaped(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info and record.exc_info[0]:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)
