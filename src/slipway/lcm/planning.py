"""The checks of an operation, and its plan: the VIM's work between the VNFD's hooks. Pure."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

from slipway.lcm.grant_application import with_granted_placement
from slipway.lcm.hook_ordering import in_turns, with_hooks
from slipway.lcm.operations import OPERATIONS, change_in
from slipway.lcm.record import inventory
from slipway.lcm.targets import no_change
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.instance import InstantiationState, VimConnectionInfo
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.situation import Situation
from slipway.model.target import LoadedFiles
from slipway.vim.contract import VimDriver
from slipway.vim.drivers import Drivers

NO_FILES: LoadedFiles = MappingProxyType({})


def check_operation(
    situation: Situation,
    vim: VimConnectionInfo | None,
    drivers: Drivers,
    management: ManagementDrivers,
    *,
    grant_follows: bool = False,
) -> None:
    """RequestError for what can be known to fail, before anything is accepted, shown as a plan, or done as granted."""
    rules, request = OPERATIONS[situation.operation], situation.request
    rules.check(situation, request)
    touches_vim = rules.works_on_vim(request)
    if vim is not None and touches_vim:
        rules.check_vim(situation.instance.vnf, vim, request)
    management.check(situation)
    if vim is not None and touches_vim and rules.change is not None:
        change = with_granted_placement(situation, rules.change(situation, request))
        drivers.for_type(vim.vim_type or "").refuse(dataclasses.replace(change, grant_follows=grant_follows))


def plan_on_vim(
    situation: Situation,
    found: Found,
    driver: VimDriver,
    management: ManagementDrivers,
    files: LoadedFiles = NO_FILES,
    *,
    grant_follows: bool = False,
    namespace: str | None = None,
) -> Plan:
    """`found` is what the VIM has, `files` what the driver looks at of the packages. `namespace`: as a Change has it.

    Hooks know what the VIM's work will lead to, and say in which batches it goes; if they don't, the operation does.
    """
    rules = OPERATIONS[situation.operation]
    change = with_granted_placement(situation, change_in(situation)).with_files(files)
    hooks = management.plan(rules.hook, situation.planning(found, change))
    change = dataclasses.replace(change, grant_follows=grant_follows, namespace=namespace)
    if batches := hooks.batches():
        return with_hooks(hooks, driver.steps(dataclasses.replace(change, batches=batches), found))
    work = rules.coordinated(driver.steps(change, found), situation, change)
    return with_hooks(hooks, in_turns(work, change.batches))


def plan_hooks_only(situation: Situation, management: ManagementDrivers) -> Plan:
    """For an operation that touches no VIM. Of a VNF that is not instantiated no hook is called."""
    vnf = situation.instance.vnf
    if vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
        return Plan()
    unchanged = situation.planning(inventory(vnf.instantiated_vnf_info), no_change(situation))
    hooks = management.plan(OPERATIONS[situation.operation].hook, unchanged)
    return Plan.chain(hooks.start, hooks.end)
