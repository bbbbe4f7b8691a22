"""User data as a step of an operation, with what is in the records: run before the stack changes, which reads it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy.engine import URL

from slipway.model.journal import StepRecord
from slipway.model.machine import Found
from slipway.model.operation import Operation, OperationType, State
from slipway.model.plan import Plan, Step
from slipway.model.requests import HealRequest, InstantiateRequest, ScaleRequest, ScaleType
from slipway.model.secrets import find_references
from slipway.model.target import Change
from slipway.model.user_data import ACTION, CLASS, FILE, STACK, UserDataArgs, UserDataOperation, named_user_data
from tests.databases import setting
from tests.drivers.stack import StackDriver
from tests.functional.rig import SAMPLE, Rig, rig_in, settings_in
from tests.script_sandbox import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.sqlite_suffices]

STEP = "run user data"
CODE = """
from tacker.sol_refactored.common import common_script_utils as values
from tacker.sol_refactored.infra_drivers.openstack.userdata_utils import AbstractUserData


def told(req, inst, grant_req, grant, tmp_csar_dir):
    vnfd = values.get_vnfd(inst["vnfdId"], tmp_csar_dir)
    removed = grant_req.get("removeResources", [])
    vnfcs = inst.get("instantiatedVnfInfo", {}).get("vnfcResourceInfo", [])
    return {"parameters": {
        "operation": grant_req["operation"],
        "request": {key: value for key, value in req.items() if key != "additionalParams"},
        "workers": values.get_param_capacity("workerNode", inst, grant_req),
        "vdus": sorted(vnfd.get_vdu_nodes("simple")),
        "removed": [one["resource"]["resourceId"] for one in removed if one["type"] == "COMPUTE"],
        "numbers": [vnfc["metadata"]["vdu_idx"] for vnfc in vnfcs],
        "ssh_password": req.get("additionalParams", {}).get("ssh_password"),
    }}


class Data(AbstractUserData):
    instantiate = scale = heal = staticmethod(told)
"""


class WithUserData(StackDriver):
    def steps(self, change: Change, found: Found) -> Plan:
        plan = super().steps(change, found)
        if change.after is None:
            return plan
        params = {**change.after.parameters, **change.additional_params}
        named = named_user_data(params, change.after.file_names)
        assert named is not None
        args = UserDataArgs(
            vnfd_id=change.after.vnfd_id,
            path=named.path,
            class_name=named.class_name,
            operation=_operation(change),
            resources=self.resources(change),
            additional_params=dict(change.after.parameters),
        )
        return Plan.chain(Plan.of(Step(id=STEP, action=ACTION, args=msgspec.to_builtins(args))), plan)


def _operation(change: Change) -> UserDataOperation:
    if change.before is None:
        return "instantiate"
    return "heal" if change.renewal.members else "scale"


async def told(rig: Rig, kind: OperationType, instance_id: str, request: Any) -> dict[str, Any]:
    operation: Operation = await rig.run(kind, instance_id, request)
    assert operation.operation_state is State.COMPLETED, operation.error
    journal: dict[str, StepRecord] = {record.id: record for record in await rig.journal(operation.id)}
    step, stack = journal[STEP], next(one for one in journal.values() if one.action == "stack.change")
    assert step.ended_at is not None
    assert step.ended_at <= (stack.started_at or 0)
    assert step.outcome is not None
    parameters: dict[str, Any] = step.outcome.data[STACK]["parameters"]
    return parameters


async def test_user_data_is_given_what_the_records_have(tmp_path: Path, database_url: URL) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(SAMPLE, tree)
    (tree / "UserData").mkdir()
    (tree / "UserData" / "data.py").write_text(CODE)
    settings = settings_in(tmp_path / "data", setting(database_url))
    async with rig_in(settings, sample=tree, simulated=WithUserData) as rig:
        instance_id = await rig.create()
        params = {FILE: "./UserData/data.py", CLASS: "Data", "ssh_password": "canary-password"}
        request = InstantiateRequest(flavour_id="simple", additional_params=params)
        first = await told(rig, OperationType.INSTANTIATE, instance_id, request)
        assert first["operation"] == "INSTANTIATE"
        assert first["request"] == {"flavourId": "simple"}
        assert first["workers"] == 2
        assert "workerNode" in first["vdus"]
        assert (first["removed"], first["numbers"]) == ([], [])
        assert list(find_references(first["ssh_password"]))

        out = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers")
        second = await told(rig, OperationType.SCALE, instance_id, out)
        assert second["request"] == {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}
        assert second["workers"] == 3
        assert second["numbers"] == [0, 0, 1]

        info = (await rig.instance(instance_id)).vnf.instantiated_vnf_info
        assert info is not None
        worker = info.vnfcs_of("workerNode")[0]
        third = await told(rig, OperationType.HEAL, instance_id, HealRequest(vnfc_instance_id=(worker.id,)))
        assert third["removed"] == [worker.compute_resource.resource_id]
        assert third["workers"] == 3


async def test_a_failure_says_what_to_mend_and_is_retried(tmp_path: Path, database_url: URL) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(SAMPLE, tree)
    (tree / "UserData").mkdir()
    (tree / "UserData" / "data.py").write_text("class Data:\n    pass\n")
    settings = settings_in(tmp_path / "data", setting(database_url))
    async with rig_in(settings, sample=tree, simulated=WithUserData) as rig:
        instance_id = await rig.create()
        params = {FILE: "UserData/data.py", CLASS: "Data"}
        request = InstantiateRequest(flavour_id="simple", additional_params=params)
        operation = await rig.run(OperationType.INSTANTIATE, instance_id, request)
        assert operation.operation_state is State.FAILED_TEMP
        assert operation.error is not None
        assert "UserData/data.py, user data for instantiate: Data has no method instantiate()" in operation.error.detail
        await rig.slipway.lcm.roll_back(operation.id)
        assert (await rig.rest(operation.id)).operation_state is State.ROLLED_BACK
