"""Terminate: nothing is left, whatever state the VNF was in."""

from __future__ import annotations

from msgspec.structs import replace

from slipway.lcm.rules import Rules, hooked, must_be_instantiated
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.errors import BadRequest
from slipway.model.instance import InstantiationState, VnfInstance
from slipway.model.machine import Wanted
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import TerminateRequest, TerminationType
from slipway.model.situation import Situation
from slipway.vim.contract import VimDriver

DEFAULT_GRACE = 10


def check(situation: Situation, request: TerminateRequest) -> None:
    must_be_instantiated(situation.instance.vnf)
    if request.termination_type is TerminationType.FORCEFUL and request.graceful_termination_timeout is not None:
        raise BadRequest("gracefulTerminationTimeout: it has no meaning with terminationType FORCEFUL; leave it out.")


def plan(situation: Situation, request: TerminateRequest, driver: VimDriver, management: ManagementDrivers) -> Plan:
    return hooked(situation, nothing(situation, request), "terminate", driver, management)


def nothing(situation: Situation, request: TerminateRequest) -> Wanted:
    grace = 0
    if request.termination_type is TerminationType.GRACEFUL:
        grace = request.graceful_termination_timeout or DEFAULT_GRACE
    dependencies = situation.flavour.dependencies()
    return Wanted(instance_id=situation.instance.vnf.id, grace_seconds=grace, dependencies=dependencies)


def complete(situation: Situation, request: TerminateRequest) -> VnfInstance:
    return replace(
        situation.instance.vnf,
        instantiation_state=InstantiationState.NOT_INSTANTIATED,
        instantiated_vnf_info=None,
        vim_connection_info={},
    )


RULES = Rules(OperationType.TERMINATE, TerminateRequest, check, plan, complete, nothing)
