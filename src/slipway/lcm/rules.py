"""What makes an operation: its checks, its plan, and what its success means. One value for each, in its own file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from slipway.lcm.granted import granted
from slipway.lcm.weaving import woven
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.descriptor import Descriptor
from slipway.model.errors import Conflict
from slipway.model.instance import InstantiationState, VnfInstance
from slipway.model.machine import Wanted
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.situation import Situation
from slipway.vim.contract import VimDriver


@dataclass(frozen=True)
class Rules:
    """`check` refuses what can be known to fail, before anything is accepted. `plan` is pure. `complete` gives the
    instance after success, before the outcomes of the steps are added to it (record.py). `wanted` is what `plan` leads
    to, before a grant says where; without it, no NFVO is asked.
    """

    operation: OperationType
    request: type[Any]
    check: Callable[[Situation, Any], None]
    plan: Callable[[Situation, Any, VimDriver, ManagementDrivers], Plan]
    complete: Callable[[Situation, Any], VnfInstance]
    wanted: Callable[[Situation, Any], Wanted] | None = None


def hooked(situation: Situation, wanted: Wanted, name: str, driver: VimDriver, management: ManagementDrivers) -> Plan:
    """The VIM's work between the VNFD's hooks, which know what it will lead to."""
    wanted = granted(situation, wanted)
    ahead = dataclasses.replace(situation, wanted=wanted)
    return woven(management.plan(name, ahead), driver.steps_towards(wanted, situation.found))


def made_from(vnf: VnfInstance, descriptor: Descriptor) -> VnfInstance:
    """The same VNF, of another package from now on."""
    return replace(
        vnf,
        vnfd_id=descriptor.vnfd_id,
        vnf_provider=descriptor.provider,
        vnf_product_name=descriptor.product_name,
        vnf_software_version=descriptor.software_version,
        vnfd_version=descriptor.vnfd_version,
    )


def must_be_instantiated(vnf: VnfInstance) -> None:
    if vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        raise Conflict(f"VNF instance {vnf.id} is not instantiated; instantiate it first.")
