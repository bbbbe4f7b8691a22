from __future__ import annotations

import json

import msgspec

from slipway.api.links import LCM_V1, Links, linked
from slipway.model.clock import utcnow
from slipway.model.operation import Operation, OperationType, State


def operation(grant_id: str | None) -> bytes:
    now = utcnow()
    return msgspec.json.encode(
        Operation(
            id="o",
            vnf_instance_id="i",
            operation=OperationType.SCALE,
            operation_state=State.COMPLETED,
            state_entered_time=now,
            start_time=now,
            is_automatic_invocation=False,
            is_cancel_pending=False,
            grant_id=grant_id,
        )
    )


def test_an_operation_leads_to_its_grant_at_the_nfvo_whatever_the_nfvo_calls_it() -> None:
    for lcm in ({}, {"lcm": LCM_V1}):
        links = Links("http://here", nfvo_url="https://nfvo.example/", **lcm)
        document = operation('a/../"b')
        shown = json.loads(linked(document, links.operation(document)))
        assert shown["grantId"] == 'a/../"b'
        assert shown["_links"]["grant"] == {"href": "https://nfvo.example/grant/v1/grants/a%2F..%2F%22b"}
        assert set(shown["_links"]) == {"self", "vnfInstance", "grant"}


def test_without_a_grant_or_without_an_nfvo_there_is_no_link() -> None:
    assert "grant" not in json.loads(Links("http://here", nfvo_url="https://n").operation(operation(None)))
    assert "grant" not in json.loads(Links("http://here").operation(operation("g")))
