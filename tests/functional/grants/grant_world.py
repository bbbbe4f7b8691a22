"""What tests of grants share: requests, what they ask for, and a look at the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL

from slipway.model.instance import ExtVirtualLink, InstantiatedVnfInfo, VnfExtCpData
from slipway.model.machine import FoundMachine
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import (
    AnyRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.settings import Settings
from tests.databases import setting
from tests.functional.agreement import assert_agreement
from tests.functional.rig import Rig, settings_in
from tests.functional.small_nfvo import SmallNfvo

INSTANTIATE = InstantiateRequest(flavour_id="simple")
OUT = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers")
IN = ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="workers")
FORCEFUL = TerminateRequest(termination_type=TerminationType.FORCEFUL)
MASTER = [("COMPUTE", "masterNode"), ("LINKPORT", "masterNode_CP1"), ("STORAGE", "masterData")]
WORKER = [("COMPUTE", "workerNode"), ("LINKPORT", "workerNode_CP1")]
NETWORK = [("VL", "clusterNet")]
ALL = sorted([*MASTER, *WORKER, *WORKER, *NETWORK])
COMPUTES = [("COMPUTE", "masterNode"), ("COMPUTE", "workerNode"), ("COMPUTE", "workerNode")]
LISTS = ("addResources", "removeResources", "updateResources")


def settings_for(database_url: URL, place: Path, nfvo: SmallNfvo, **more: Any) -> Settings:
    usual = {"nfvo_url": nfvo.url, "grant_seconds": 20.0, "lease_seconds": 0.5}
    return settings_in(place / "data", setting(database_url), **{**usual, **more})


async def standing(rig: Rig, request: InstantiateRequest = INSTANTIATE) -> str:
    instance_id = await rig.create()
    done = await rig.run(OperationType.INSTANTIATE, instance_id, request)
    assert done.operation_state is State.COMPLETED, done.error
    return instance_id


async def completed(rig: Rig, kind: OperationType, instance_id: str, request: AnyRequest) -> Operation:
    done = await rig.run(kind, instance_id, request)
    assert done.operation_state is State.COMPLETED, done.error
    return done


async def info_of(rig: Rig, instance_id: str) -> InstantiatedVnfInfo:
    info = (await rig.instance(instance_id)).vnf.instantiated_vnf_info
    assert info is not None
    return info


async def machines(rig: Rig, instance_id: str) -> dict[str, FoundMachine]:
    found = (await rig.inventory())[instance_id]
    assert_agreement(await info_of(rig, instance_id), found)
    return {machine.name: machine for machine in found.machines}


async def refused(rig: Rig, request: AnyRequest = INSTANTIATE, kind: OperationType = OperationType.INSTANTIATE) -> str:
    """Why; nothing was made."""
    instance_id = await rig.create()
    operation = await rig.run(kind, instance_id, request)
    assert operation.operation_state is State.ROLLED_BACK
    assert operation.error is not None
    assert await rig.inventory() == {}
    assert (await rig.instance(instance_id)).vnf.instantiated_vnf_info is None
    assert await rig.journal(operation.id) == []
    return operation.error.detail


def on(network: str, link: str = "outside") -> tuple[ExtVirtualLink, ...]:
    return (ExtVirtualLink(id=link, resource_id=network, ext_cps=(VnfExtCpData(cpd_id="workerNode_CP1"),)),)
