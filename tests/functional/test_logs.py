"""The server's log, written by hostile callers: every line is a record of ours, in both formats."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy.engine import URL

from tests.functional.processes import Process, serving_on
from tests.functional.test_processes import LCM, instantiate, onboard, state_of, wait_for

pytestmark = pytest.mark.sqlite_suffices

FORGED = "2026-01-01T00:00:00.000Z CRITICAL slipway: forged"
HOSTILE = f"evil\r\n{FORGED}\x1b[2J\x1b]0;owned\x07\u2028\u202e"
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARNING|ERROR) [\w.]+: \S.*")
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]")


def live(server: Process, client: httpx.Client, place: Path) -> str:
    """Hostile names, paths and headers; one operation that completes and one that breaks. The first one's id."""
    vnfd_id = onboard(client, place)
    names = {"vnfdId": vnfd_id, "vnfInstanceName": HOSTILE, "vnfInstanceDescription": HOSTILE}
    for rules in ([], [{"kind": "error", "call": "make_machine", "fault": "permanent"}]):
        client.put("/slipway/v1/vims/simulated/rules", json=rules)
        made = client.post(f"{LCM}/vnf_instances", json=names)
        assert made.status_code == 201, made.text
        path = f"{LCM}/vnf_instances/{made.json()['id']}/instantiate"
        begun = client.post(path, json={"flavourId": "simple"}, headers={"X-Request-Id": "asked-by-me"})
        operation_id = begun.headers["location"].rpartition("/")[2]
        wait_for(lambda o=operation_id: state_of(client, o) in ("COMPLETED", "FAILED_TEMP"))  # type: ignore[misc]
    client.post(f"{LCM}/vnf_instances", json={"vnfdId": HOSTILE})
    client.get(f"/nothing/%0D%0A{FORGED}%1B%5B2J")
    url = httpx.URL(client.base_url)
    for value in (b"\x1b[31mred", b"a\tb", b"\x9b31m", b"one\r\n " + FORGED.encode()):
        raw(url, b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: " + value + b"\r\n\r\n")
    raw(url, b"GARBAGE \x1b[2J\r\n\r\n")
    return instantiate(client, vnfd_id)[1]


def raw(url: httpx.URL, request: bytes) -> None:
    """What no well-behaved client sends. Whatever comes back has no control character in a header."""
    with socket.create_connection((url.host, url.port or 80), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert not re.search(rb"[\x1b\x9b]", answer)
    assert FORGED.encode() not in answer


@pytest.mark.parametrize("level", ["info", "debug"])
def test_text(database_url: URL, tmp_path: Path, level: str) -> None:
    with serving_on(database_url, tmp_path / "data", log_level=level) as (server, client):
        operation_id = live(server, client, tmp_path)
        wait_for(lambda: state_of(client, operation_id) == "FAILED_TEMP")
        server.end()
    text = server.log.read_text()
    assert not CONTROL.search(text)
    for line in text.split("\n")[:-1]:
        assert LINE.fullmatch(line) or line.startswith("    "), line
        assert not line.startswith(FORGED)
    assert re.search(r"INSTANTIATE: STARTING \[request=asked-by-me instance=\S+ operation=\S+\]", text)
    assert re.search(rf"WARNING slipway\.operations: operation {operation_id} INSTANTIATE: FAILED_TEMP: Step ", text)
    if level == "debug":
        assert f"/nothing/\\r\\n{FORGED}\\x1b[2J 404" in text


def test_json(database_url: URL, tmp_path: Path) -> None:
    settings = {"log_format": "json", "log_level": "debug"}
    with serving_on(database_url, tmp_path / "data", **settings) as (server, client):
        operation_id = live(server, client, tmp_path)
        wait_for(lambda: state_of(client, operation_id) == "FAILED_TEMP")
        server.end()
    records: list[dict[str, Any]] = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert all({"time", "level", "logger", "message"} <= record.keys() for record in records)
    assert all(re.fullmatch(r"[0-9T:.-]+Z", record["time"]) for record in records)
    states = [r for r in records if r["logger"] == "slipway.operations"]
    assert len(states) == 9
    assert all(r["instance"] and r["operation"] in r["message"] for r in states)
    assert [r["message"].rpartition(" ")[2] for r in states if r.get("request") == "asked-by-me"] == ["STARTING"] * 2
    assert any(
        FORGED in r["message"] and r["request"] for r in records if r["logger"] == "slipway.api.telemetry_middleware"
    )
