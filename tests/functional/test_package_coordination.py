"""Scripts that coordinate a change of package: after each VNFC, and after each that a rollback makes again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.descriptor import Descriptor
from slipway.model.errors import VimFault
from slipway.model.operation import OperationType, State
from slipway.model.requests import ChangePackageRequest, InstantiateRequest, ModifyRequest
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SAMPLE, SIMULATED_VIM, Rig, rig_in, settings_in
from tests.script_sandbox import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.sqlite_suffices]

SCRIPT = "Scripts/coordinate.py"
PASSWORD = "canary-password-of-the-vnfc"
# Notes each call in the VNF's metadata.
TELLING = """
import json, os, sys
given = json.load(sys.stdin)
told = {key: given[key] for key in ("operation", "vnfcInfoId", "sshIp", "isRollback")}
told["login"] = [given["vnfcParam"]["username"], len(given["vnfcParam"]["password"])]
told["occurrence"] = given["vnfLcmOpOccId"]
if given["vnfInstance"].get("metadata", {}).get("refuse") == given["sshIp"]:
    sys.exit("the VNFC says no to " + given["vnfcParam"]["password"])
print(json.dumps({"vnfInstance": {"metadata": {given["vnfcInfoId"]: told}}}))
"""
LOGIN = {"cp_name": "workerNode_CP1", "username": "ubuntu", "password": PASSWORD}
CHANGE = ChangePackageRequest(
    vnfd_id=NEXT_ID,
    additional_params={
        "lcm-operation-coordinate-new-vnf": f"./{SCRIPT}",
        "lcm-operation-coordinate-old-vnf": f"./{SCRIPT}",
        "vdu_params": [{"vdu_id": "workerNode", "new_vnfc_param": LOGIN, "old_vnfc_param": LOGIN}],
    },
)


def sample_in(directory: Path) -> Path:
    tree = directory / "sample"
    shutil.copytree(SAMPLE, tree)
    (tree / SCRIPT).parent.mkdir()
    (tree / SCRIPT).write_text(TELLING)
    return tree


def larger_workers(descriptor: Descriptor) -> Descriptor:
    flavour = descriptor.flavours["simple"]
    vdus = {**flavour.vdus, "workerNode": replace(flavour.vdus["workerNode"], flavour="m1.huge")}
    return replace(descriptor, flavours={"simple": replace(flavour, vdus=vdus)})


async def standing(rig: Rig, sample: Path, directory: Path) -> str:
    instance_id = await rig.create()
    await rig.run(OperationType.INSTANTIATE, instance_id, InstantiateRequest(flavour_id="simple"))
    await onboard_next(rig, sample, directory, NEXT_ID, hooks=(), change=larger_workers)
    return instance_id


async def workers(rig: Rig, instance_id: str) -> dict[str, str | None]:
    """Addresses, by the ids that VNFCs have in vnfcInfo."""
    info = (await rig.instance(instance_id)).vnf.instantiated_vnf_info
    found = {one.id: one for one in (await rig.inventory())[instance_id].machines}
    assert info is not None
    return {
        one.id: found[one.vnfc_resource_info_id or ""].ports[0].address
        for one in info.vnfc_info
        if one.vdu_id == "workerNode"
    }


async def test_each_vnfc_is_coordinated_before_the_next_is_touched(tmp_path: Path) -> None:
    sample = sample_in(tmp_path)
    async with rig_in(settings_in(tmp_path / "data"), sample=sample) as rig:
        instance_id = await standing(rig, sample, tmp_path)
        operation = await rig.run(OperationType.CHANGE_VNFPKG, instance_id, CHANGE)
        assert operation.operation_state is State.COMPLETED, operation.error
        journal = sorted(await rig.journal(operation.id), key=lambda step: step.ended_at or 0.0)
        assert [step.id for step in journal] == [
            word
            for slot in ("workerNode-0", "workerNode-1")
            for word in (
                f"coordinate {slot}: nothing but its rollback",
                f"remove machine {slot}",
                f"make machine {slot}",
                f"coordinate {slot}: {SCRIPT}",
            )
        ]
        told: dict[str, Any] = (await rig.instance(instance_id)).vnf.metadata
        assert told == {
            vnfc: {
                "operation": "lcm-operation-coordinate-new-vnf",
                "vnfcInfoId": vnfc,
                "sshIp": address,
                "isRollback": False,
                "login": ["ubuntu", len(PASSWORD)],
                "occurrence": operation.id,
            }
            for vnfc, address in (await workers(rig, instance_id)).items()
        }
        assert (await rig.instance(instance_id)).parameters == {}
        assert PASSWORD not in str(await rig.journal(operation.id))


async def test_on_the_way_back_the_old_package_coordinates_those_that_are_made_again(tmp_path: Path) -> None:
    sample = sample_in(tmp_path)
    async with rig_in(settings_in(tmp_path / "data"), sample=sample) as rig:
        instance_id = await standing(rig, sample, tmp_path)
        before = await workers(rig, instance_id)
        fault = Rule(call="make_machine", machine="workerNode-1", kind=RuleKind.ERROR, fault=VimFault.PERMANENT)
        await rig.slipway.simulated.set_rules(SIMULATED_VIM, [fault])
        operation = await rig.run(OperationType.CHANGE_VNFPKG, instance_id, CHANGE)
        assert operation.operation_state is State.FAILED_TEMP
        await rig.slipway.simulated.clear(SIMULATED_VIM)
        await rig.slipway.lcm.roll_back(operation.id)
        assert (await rig.rest(operation.id)).operation_state is State.ROLLED_BACK
        assert await workers(rig, instance_id) == before
        told = (await rig.instance(instance_id)).vnf.metadata
        assert {vnfc: (one["sshIp"], one["isRollback"]) for vnfc, one in told.items()} == {
            vnfc: (address, True) for vnfc, address in before.items()
        }


async def test_a_script_that_fails_stops_before_the_next_vnfc(tmp_path: Path) -> None:
    sample = sample_in(tmp_path)
    async with rig_in(settings_in(tmp_path / "data"), sample=sample) as rig:
        instance_id = await standing(rig, sample, tmp_path)
        before = await workers(rig, instance_id)
        first = next(iter(before.values()))
        await rig.run(OperationType.MODIFY_INFO, instance_id, ModifyRequest(metadata={"refuse": first}))
        operation = await rig.run(OperationType.CHANGE_VNFPKG, instance_id, CHANGE)
        assert operation.operation_state is State.FAILED_TEMP
        assert operation.error is not None
        assert f"{SCRIPT}, the script for lcm-operation-coordinate-new-vnf" in operation.error.detail
        assert PASSWORD not in operation.error.detail
        now = {one.name: one.flavour for one in (await rig.inventory())[instance_id].machines}
        assert now["workerNode-0"] == "m1.huge"
        assert now["workerNode-1"] != "m1.huge"
