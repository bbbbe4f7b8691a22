"""What makes an operation: its checks, the change that it is, and what its success means. One value for each."""

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
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.situation import Situation
from slipway.model.target import Change
from slipway.vim.contract import VimDriver


@dataclass(frozen=True)
class Rules:
    """`hook` begins the names of its hooks. `check` refuses what can be known to fail, before anything is accepted.

    `change` is what it makes of the instance, before a grant says where; without it no VIM is touched and no NFVO is
    asked. `complete` gives the instance after success, before the outcomes of the steps are added to it (record.py).
    """

    operation: OperationType
    request: type[Any]
    hook: str
    check: Callable[[Situation, Any], None]
    complete: Callable[[Situation, Any], VnfInstance]
    change: Callable[[Situation, Any], Change] | None = None

    def plan(self, situation: Situation, driver: VimDriver, management: ManagementDrivers) -> Plan:
        """The VIM's work between the VNFD's hooks, which know what it will lead to. Pure."""
        if self.change is None:
            return self.hooks_only(situation, management)
        change = granted(situation, self.change(situation, situation.request))
        hooks = management.plan(self.hook, dataclasses.replace(situation, change=change))
        work = driver.steps(dataclasses.replace(change, batches=hooks.batches()), situation.found)
        return woven(hooks, work)

    def hooks_only(self, situation: Situation, management: ManagementDrivers) -> Plan:
        """Where nothing runs, nobody has to be told."""
        if situation.instance.vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
            return Plan()
        hooks = management.plan(self.hook, situation)
        return Plan.chain(hooks.start, hooks.end)


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
