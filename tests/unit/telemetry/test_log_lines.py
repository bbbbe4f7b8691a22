"""A record is one line, whatever is in it, and says in whose context it was made."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.telemetry.logs import JsonLine, LogFormat, TextLine, add_log_context, escaped, log_context

HOSTILE = "name\r\n2026-01-01T00:00:00.000Z ERROR slipway: all is lost\x1b[2J\x9b31m\u2028\u202e\ud800\x00"
ANY_TEXT = st.text(st.characters(codec=None))  # halves of characters, too
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202e]")


@contextmanager
def logged_as(form: LogFormat) -> Iterator[tuple[logging.Logger, io.StringIO]]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(add_log_context)
    handler.setFormatter(JsonLine() if form == "json" else TextLine())
    logger = logging.Logger("slipway.test")
    logger.addHandler(handler)
    yield logger, stream


def test_text_has_time_level_logger_message_and_context() -> None:
    with (
        logged_as("text") as (log, stream),
        log_context(instance="i-1", operation="o-1"),
        log_context(step="make worker 1"),
    ):
        log.warning("machine %s is slow", "w1")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING slipway\.test: machine w1 is slow "
        r'\[instance=i-1 operation=o-1 step="make worker 1"\]\n',
        stream.getvalue(),
    )


def test_json_has_the_same_in_fields() -> None:
    with logged_as("json") as (log, stream), log_context(request="r-1"):
        log.info("hello %s", "you")
    document = json.loads(stream.getvalue())
    assert document.pop("time").endswith("Z")
    assert document == {"level": "INFO", "logger": "slipway.test", "message": "hello you", "request": "r-1"}


def test_without_a_log_context_a_line_shows_none() -> None:
    with logged_as("text") as (log, stream):
        log.info("ready")
    assert stream.getvalue().endswith(": ready\n")


@pytest.mark.parametrize("form", ["text", "json"])
def test_hostile_text_in_message_and_context_stays_in_its_line(form: LogFormat) -> None:
    with logged_as(form) as (log, stream), log_context(step=f'a" {HOSTILE}'):
        log.error("instance %s failed", HOSTILE)
    line, end = stream.getvalue()[:-1], stream.getvalue()[-1]
    assert end == "\n"
    assert not CONTROL.search(line)
    line.encode()  # so that a stream in UTF-8 takes it


@given(ANY_TEXT)
def test_any_text_is_one_line_of_printable_text(text: str) -> None:
    with logged_as("text") as (log, stream), log_context(step=text or "x"):
        log.info("%s", text)
    assert not CONTROL.search(stream.getvalue()[:-1])
    stream.getvalue().encode()


@given(ANY_TEXT)
def test_any_text_comes_back_from_json(text: str) -> None:
    with logged_as("json") as (log, stream), log_context(step=text):
        log.info("%s", text)
    assert stream.getvalue().count("\n") == 1
    document = json.loads(stream.getvalue())
    # Two halves that stand together are one character for JSON.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert (document["message"], document["step"]) == (whole, whole)


def test_a_traceback_is_set_in_and_the_errors_text_can_not_pose_as_a_record() -> None:
    with logged_as("text") as (log, stream):
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            log.exception("no")
    first, *rest = stream.getvalue()[:-1].split("\n")
    assert first.endswith("slipway.test: no")
    assert len(rest) > 3
    assert all(line.startswith("    ") and not CONTROL.search(line) for line in rest)


def test_json_has_the_traceback_in_a_field() -> None:
    with logged_as("json") as (log, stream):
        try:
            raise ValueError("bad")
        except ValueError:
            log.error("no", exc_info=sys.exc_info())
    assert stream.getvalue().count("\n") == 1
    assert "ValueError: bad" in json.loads(stream.getvalue())["exception"]


def test_plain_text_is_left_alone() -> None:
    assert escaped('Ünïcode, 日本語, C:\\path and "quotes"') == 'Ünïcode, 日本語, C:\\path and "quotes"'
