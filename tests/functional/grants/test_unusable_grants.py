"""Grants that can not be used are refused with the attribute that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slipway.model.operation import OperationType, State
from slipway.model.requests import (
    HealRequest,
)
from tests.functional.grants.grant_world import machines, refused, standing
from tests.functional.rig import Rig
from tests.functional.small_nfvo import SmallNfvo, a_grant
from tests.unit.outgoing.loopback_server import Answer, document

pytestmark = pytest.mark.sqlite_suffices


def raw(body: bytes) -> Callable[[dict[str, Any]], Answer]:
    return lambda _: Answer(201, {"Content-Type": "application/json"}, body)


def grant(**more: Any) -> Callable[[dict[str, Any]], Answer]:
    return lambda request: document(a_grant(request, **more), 201)


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Answer]:
    def decide(request: dict[str, Any]) -> Answer:
        document_ = a_grant(request)
        change(document_)
        return document(document_, 201)

    return decide


def infos(zone: str | None = None, vim: str | None = None) -> Callable[[dict[str, Any]], Answer]:
    return changed(
        lambda g: g["addResources"][0].update({k: v for k, v in (("zoneId", zone), ("vimConnectionId", vim)) if v})
    )


BAD = {
    "nothing": (raw(b""), "it is not JSON"),
    "html": (raw(b"<html>granted</html>"), "it is not JSON"),
    "a list": (raw(b"[]"), "Expected `object`"),
    "no id": (changed(lambda g: g.pop("id")), "missing required field `id`"),
    "deep": (raw(b'{"additionalParams":' + b'{"a":' * 100 + b"1" + b"}" * 101), "nested deeper"),
    "very deep": (raw(b"[" * 100_000), "it is not JSON"),
    "zero": (grant(additionalParams={"a": "b\0"}), "zero character"),
    "large number": (grant(additionalParams={"a": 2**70}), "more than 64 bits"),
    "control characters": (grant(id="a\nb"), "id: Expected `str` matching"),
    "long id": (grant(id="a" * 300), "id: Expected `str` of length <= 255"),
    "wrong type": (grant(zones="az-1"), "zones: Expected `array`"),
    "somebody's secret": (grant(additionalParams={"a": {"$secret": "x"}}), "is reserved"),
    "another instance": (grant(vnfInstanceId="x"), "vnfInstanceId: it is for 'x'"),
    "another operation": (grant(vnfLcmOpOccId="x"), "vnfLcmOpOccId: it is for 'x'"),
    "never asked for": (
        changed(lambda g: g["addResources"].append({"resourceDefinitionId": "extra"})),
        "addResources[8]: 'extra' was not asked for",
    ),
    "removal never asked for": (
        grant(removeResources=[{"resourceDefinitionId": "x"}]),
        "removeResources[0]: 'x' was not asked for",
    ),
    "twice": (changed(lambda g: g["addResources"].append(g["addResources"][0])), "is there twice"),
    "in part": (changed(lambda g: g["addResources"].pop()), "addResources: it leaves out"),
    "no such zone": (infos(zone="z9"), "addResources[0].zoneId: its zones have no 'z9'"),
    "no such VIM": (infos(vim="v9"), "it does not describe 'v9'"),
    "unknown VIM": (
        grant(vimConnectionInfo={"v": {"vimId": "nowhere"}}),
        "vimConnectionInfo.v.vimId: ",
    ),
    "two VIMs": (grant(vimConnectionInfo={"v": {"vimId": "a"}, "w": {"vimId": "b"}}), "it names v, w"),
    "no such connection point": (
        grant(extVirtualLinks=[{"id": "l", "resourceId": "n", "extCps": [{"cpdId": "nothing"}]}]),
        "has no connection point 'nothing'",
    ),
}


@pytest.mark.parametrize("name", list(BAD))
async def test_an_answer_that_can_not_be_used(rig: Rig, nfvo: SmallNfvo, name: str) -> None:
    nfvo.decide, words = BAD[name]
    why = await refused(rig)
    assert why.startswith("The NFVO's grant can't be used: ")
    assert words in why
    assert why.endswith("Cure: mend what the NFVO answers, then begin again.")


async def test_an_answer_without_end(rig: Rig, nfvo: SmallNfvo) -> None:
    nfvo.decide = raw(b" " * (9 << 20))
    assert "larger than 8388608 bytes" in await refused(rig)


async def test_parameters_of_a_grant_turn_no_small_heal_into_a_large_one(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    before = await machines(rig, instance_id)
    nfvo.decide = grant(additionalParams={"all": True})
    operation = await rig.run(OperationType.HEAL, instance_id, HealRequest())
    assert operation.operation_state is State.ROLLED_BACK
    assert operation.error is not None
    assert "would change what the operation was granted to make" in operation.error.detail
    assert await machines(rig, instance_id) == before
