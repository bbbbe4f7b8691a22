"""Runs user data as its step does, in the sandbox, with records that a test gives."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.mgmt.script_limits import ScriptLimits
from slipway.mgmt.user_data import UserDataScripts
from slipway.model.action import VimConnection
from slipway.model.grant import Granting, GrantRequest, ResourceDefinition, ResourceType
from slipway.model.instance import (
    InstantiatedVnfInfo,
    InstantiationState,
    ResourceHandle,
    ScaleInfo,
    VnfcInfo,
    VnfcResourceInfo,
    VnfInstance,
)
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.operation import OperationType
from slipway.model.package_content import PackageContent
from slipway.model.secrets import replace_references
from slipway.model.target import VimResource
from slipway.model.user_data import STACK, UserDataArgs, UserDataOperation

PACKAGE = Path(__file__).with_name("user_data_package")
FILE = "UserData/data.py"
INSTANCE_ID, OPERATION_ID = "3f1b1e9e-0000-4000-8000-000000000001", "3f1b1e9e-0000-4000-8000-000000000002"
QUICK = ScriptLimits(seconds=30)

INSTANTIATE: dict[str, Any] = {
    "flavourId": "simple",
    "extVirtualLinks": [
        {
            "id": "link-1",
            "resourceId": "net-1",
            "extCps": [
                {
                    "cpdId": "worker_CP1",
                    "cpConfig": {
                        "one": {
                            "cpProtocolData": [
                                {
                                    "layerProtocol": "IP_OVER_ETHERNET",
                                    "ipOverEthernet": {
                                        "ipAddresses": [
                                            {"type": "IPV4", "fixedAddresses": ["10.0.0.5"], "subnetId": "subnet-1"}
                                        ]
                                    },
                                }
                            ]
                        }
                    },
                }
            ],
        }
    ],
    "additionalParams": {"image_name": "from the request", "other": 1},
}
SCALE_OUT: dict[str, Any] = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}


def vnf(*members: tuple[str, int], scale_level: int = 0) -> VnfInstance:
    """With members of VDUs, by their slots; none: not instantiated."""
    info = InstantiatedVnfInfo(
        flavour_id="simple",
        vnf_state="STARTED",
        scale_status=(ScaleInfo(aspect_id="workers", scale_level=scale_level),),
        vnfc_resource_info=tuple(
            VnfcResourceInfo(
                id=f"vnfc-{vdu}-{slot}",
                vdu_id=vdu,
                compute_resource=ResourceHandle(resource_id=f"server-{vdu}-{slot}"),
                metadata={"slot": slot, "name": f"{vdu}-{slot}"},
            )
            for vdu, slot in members
        ),
        vnfc_info=tuple(
            VnfcInfo(
                id=f"info-{vdu}-{slot}", vdu_id=vdu, vnfc_state="STARTED", vnfc_resource_info_id=f"vnfc-{vdu}-{slot}"
            )
            for vdu, slot in members
        ),
    )
    return VnfInstance(
        id=INSTANCE_ID,
        vnfd_id="vnfd-1",
        vnf_provider="Company",
        vnf_product_name="Sample",
        vnf_software_version="1.0",
        vnfd_version="1.0",
        instantiation_state=InstantiationState.INSTANTIATED if members else InstantiationState.NOT_INSTANTIATED,
        instantiated_vnf_info=info if members else None,
        metadata={"owner": "me"},
    )


def asked(
    operation: OperationType,
    add: Sequence[tuple[str, int]] = (),
    remove: Sequence[tuple[str, int]] = (),
    update: Sequence[tuple[str, int]] = (),
    **more: Any,
) -> GrantRequest:
    return GrantRequest(
        vnf_instance_id=INSTANCE_ID,
        vnf_lcm_op_occ_id=OPERATION_ID,
        vnfd_id="vnfd-1",
        flavour_id="simple",
        operation=operation,
        is_automatic_invocation=False,
        add_resources=tuple(_definition(*one, new=True) for one in add),
        remove_resources=tuple(_definition(*one) for one in remove),
        update_resources=tuple(_definition(*one) for one in update),
        **more,
    )


def _definition(vdu: str, slot: int, *, new: bool = False) -> ResourceDefinition:
    resource = None if new else ResourceHandle(resource_id=f"server-{vdu}-{slot}")
    id_ = f"new-{vdu}-{slot}" if new else f"vnfc-{vdu}-{slot}"
    return ResourceDefinition(id=id_, type=ResourceType.COMPUTE, resource_template_id=vdu, resource=resource)


@dataclass
class Records:
    """What Slipway knows, for the script; and the package with its user data."""

    code: str = ""
    package: Path = PACKAGE
    file: str = FILE
    given: dict[str, Any] = field(default_factory=lambda: INSTANTIATE)
    recorded: VnfInstance = field(default_factory=vnf)
    asked: GrantRequest = field(
        default_factory=lambda: asked(OperationType.INSTANTIATE, add=[("master", 0), ("worker", 0), ("worker", 1)])
    )
    granted: Granting | None = None

    async def request(self, operation_id: str) -> dict[str, Any]:
        return self.given

    async def instance(self, operation_id: str, *, ahead: bool) -> VnfInstance:
        return self.recorded

    async def grant_request(self, operation_id: str, left: Sequence[VimResource]) -> GrantRequest:
        return self.asked

    async def granting(self, operation_id: str) -> Granting | None:
        return self.granted

    async def error_data(self, operation_id: str) -> dict[str, Any] | None:
        raise AssertionError("user data has none")

    async def unpack(self, operation_id: str, vnfd_id: str, directory: Path) -> None:
        _unpack(self.package, {self.file: self.code} if self.code else {}, directory)


def _unpack(package: Path, more: dict[str, str], directory: Path) -> None:
    shutil.copytree(package, directory, dirs_exist_ok=True)
    for name, code in more.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(textwrap.dedent(code))
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755)


@dataclass
class Context:
    secrets: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    operation_id: str = OPERATION_ID
    instance_id: str = INSTANCE_ID
    cancelled: bool = False

    async def connection(self) -> VimConnection:
        raise AssertionError("user data sees no VIM")

    async def machine(self, machine_id: str) -> FoundMachine:
        raise AssertionError("user data sees no VIM")

    async def port(self, name: str) -> FoundPort:
        raise AssertionError("user data sees no VIM")

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        raise AssertionError("user data sees the whole package")

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        raise AssertionError("user data sees the whole package")

    async def decrypt_secrets(self, document: Any) -> Any:
        return replace_references(document, self.secrets.__getitem__)

    def arguments(self, step_id: str) -> dict[str, Any]:
        raise AssertionError("user data has arguments of its own")

    def outcome(self, step_id: str) -> Outcome | None:
        return self.outcomes.get(step_id)

    def progress(self, text: str) -> None:
        pass


async def stack(
    records: Records,
    operation: UserDataOperation = "instantiate",
    class_name: str = "Data",
    limits: ScriptLimits = QUICK,
    context: Context | None = None,
    **more: Any,
) -> Any:
    """What the step leaves for the one that changes the stack."""
    (action,) = UserDataScripts(records, limits).actions
    args = UserDataArgs(vnfd_id="vnfd-1", path=records.file, class_name=class_name, operation=operation, **more)
    outcome = await action.run(args, context or Context())
    assert outcome.data.keys() == {STACK}
    return outcome.data[STACK]
