"""Traces, as a collector gets them: an operation is a trace of its own id, each step a span in it."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from sqlalchemy.engine import URL

from tests.databases import setting
from tests.functional.otlp_receiver import Receiver, attributes
from tests.functional.processes import running
from tests.functional.rig import settings_in
from tests.functional.test_processes import LCM, Fleet, onboard, state_of, wait_for

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = "b7ad6b7169203331"
BUSY_ONCE = {"kind": "error", "call": "make_network", "fault": "temporary", "times": 1}
BROKEN = {"kind": "error", "call": "make_machine", "fault": "permanent"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().serving() as receiver:
        yield receiver


def of_trace(receiver: Receiver, trace_id: str) -> list[Span]:
    return [span for span in receiver.spans if span.trace_id.hex() == trace_id]


def test_an_operation_is_a_trace_and_each_step_a_span(tmp_path: Path, receiver: Receiver) -> None:
    with running("serve", tmp_path / "data", traces_endpoint=receiver.url) as server, server.client() as client:
        vnfd_id = onboard(client, tmp_path)
        client.put("/slipway/v1/vims/simulated/rules", json=[BUSY_ONCE, BROKEN])
        instance_id = client.post(f"{LCM}/vnf_instances", json={"vnfdId": vnfd_id}).json()["id"]
        answer = client.post(
            f"{LCM}/vnf_instances/{instance_id}/instantiate",
            json={"flavourId": "simple"},
            headers={"traceparent": f"00-{TRACE}-{TRACEPARENT}-01"},
        )
        operation_id = answer.headers["location"].rpartition("/")[2]
        wait_for(lambda: state_of(client, operation_id) == "FAILED_TEMP")
        steps = client.get(f"/slipway/v1/operations/{operation_id}/steps").json()["steps"]
        assert client.post(f"{LCM}/vnf_lcm_op_occs/{operation_id}/rollback").status_code == 202
        wait_for(lambda: state_of(client, operation_id) == "ROLLED_BACK")
        server.end()
    assert receiver.paths == {"/v1/traces"}
    assert receiver.resources[0]["service.name"] == "slipway"

    spans = of_trace(receiver, UUID(operation_id).hex)
    (root,) = (span for span in spans if not span.parent_span_id)
    assert root.name == "INSTANTIATE"
    about = {"slipway.instance.id": instance_id, "slipway.operation.id": operation_id}
    assert attributes(root).items() >= {**about, "slipway.operation.state": "FAILED_TEMP"}.items()
    assert root.status.code == Status.STATUS_CODE_ERROR
    assert "make_machine" in root.status.message or "machine" in root.status.message

    told = {attributes(span)["slipway.step.id"]: span for span in spans if span.parent_span_id == root.span_id
            and "slipway.step.id" in attributes(span)}  # fmt: skip
    assert set(told) == {step["id"] for step in steps if step["state"] in ("DONE", "FAILED")}
    for step in steps:
        if step["id"] not in told:
            continue
        span = told[step["id"]]
        assert span.name == step["action"]
        assert (
            attributes(span).items()
            >= {
                **about,
                "slipway.operation.type": "INSTANTIATE",
                "slipway.action": step["action"],
                "slipway.attempt": step["attempt"],
                "slipway.outcome": step["state"].lower(),
            }.items()
        )
        assert attributes(span)["slipway.nodes"] == step["nodes"]
        assert span.end_time_unix_nano >= span.start_time_unix_nano >= root.start_time_unix_nano
        if step["state"] == "FAILED":
            assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, step["error"])
        if "network" in step["action"]:
            assert [event.name for event in span.events] == ["retry"]
    assert any("network" in step["action"] and step["attempt"] == 2 for step in steps)

    # The rollback came later, and is found in the same trace.
    (back,) = (span for span in spans if attributes(span).get("slipway.operation.state") == "ROLLED_BACK")
    undone = [span for span in spans if span.parent_span_id == back.span_id]
    assert undone
    assert {attributes(span)["slipway.outcome"] for span in undone} == {"undone"}

    # The caller finds in its own trace what it asked for, and both lead to each other.
    (asked,) = of_trace(receiver, TRACE)
    assert (asked.name, asked.parent_span_id.hex()) == ("INSTANTIATE STARTING", TRACEPARENT)
    assert [(link.trace_id, link.span_id) for link in asked.links] == [(root.trace_id, root.span_id)]
    assert [(link.trace_id, link.span_id) for link in root.links] == [(asked.trace_id, asked.span_id)]


def test_a_worker_elsewhere_and_callers_without_a_usable_traceparent(
    tmp_path: Path, receiver: Receiver, postgresql_url: URL
) -> None:
    url = setting(postgresql_url)
    more = {"database_url": url, "traces_endpoint": f"{receiver.url}/v1/traces", "poll_seconds": 0.1}
    data = tmp_path / "data"
    ids = []
    with running("api", data, **more) as api, running("worker", data, **more) as worker:
        fleet = Fleet(api, tmp_path, settings_in(data, url))
        for caller in (None, "nonsense", f"00-{'0' * 32}-{'0' * 16}-01", f"00-{TRACE}-{TRACEPARENT}-01"):
            made = fleet.client.post(f"{LCM}/vnf_instances", json={"vnfdId": fleet.vnfd_id}).json()["id"]
            headers = {} if caller is None else {"traceparent": caller}
            path = f"{LCM}/vnf_instances/{made}/instantiate"
            answer = fleet.client.post(path, json={"flavourId": "simple"}, headers=headers)
            ids.append(answer.headers["location"].rpartition("/")[2])
        wait_for(lambda: {state_of(fleet.client, operation_id) for operation_id in ids} == {"COMPLETED"})
        fleet.client.close()
        worker.end()
        api.end()
    for operation_id in ids:
        (root,) = (s for s in of_trace(receiver, UUID(operation_id).hex) if not s.parent_span_id)
        assert attributes(root)["slipway.operation.state"] == "COMPLETED"
        assert root.status.code == Status.STATUS_CODE_UNSET
    assert {span.trace_id.hex() for span in receiver.spans} == {TRACE, *(UUID(one).hex for one in ids)}
    assert [link.trace_id.hex() for span in of_trace(receiver, TRACE) for link in span.links] == [UUID(ids[-1]).hex]


def test_a_collector_that_is_not_there_costs_no_operation_and_delays_no_end(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with running("serve", tmp_path / "data", traces_endpoint=endpoint) as server, server.client() as client:
            vnfd_id = onboard(client, tmp_path)
            instance_id = client.post(f"{LCM}/vnf_instances", json={"vnfdId": vnfd_id}).json()["id"]
            path = f"{LCM}/vnf_instances/{instance_id}/instantiate"
            answer = client.post(path, json={"flavourId": "simple"})
            operation_id = answer.headers["location"].rpartition("/")[2]
            wait_for(lambda: state_of(client, operation_id) == "COMPLETED")
            client.close()
            began = time.monotonic()
            assert server.end(signal.SIGTERM) == 0
            assert time.monotonic() - began < 10
