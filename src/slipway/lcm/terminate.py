"""Terminate: nothing is left, whatever state the VNF was in; but for its volumes, when their data is to be retained."""

from __future__ import annotations

from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.lcm.operation_rules import OperationRules, flag_parameter, must_be_instantiated
from slipway.lcm.targets import change_to
from slipway.model.errors import BadRequest
from slipway.model.instance import Instance, InstantiationState, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import TerminateRequest, TerminationType
from slipway.model.situation import Situation
from slipway.model.target import Change
from slipway.vim_registry.cluster_users import refuse_used_cluster

DEFAULT_GRACE = 10
RETAIN_DATA = "retain_data"  # in additionalParams


def check(situation: Situation, request: TerminateRequest) -> None:
    must_be_instantiated(situation.instance.vnf)
    if request.termination_type is TerminationType.FORCEFUL and request.graceful_termination_timeout is not None:
        raise BadRequest("gracefulTerminationTimeout: it has no meaning with terminationType FORCEFUL; leave it out.")
    flag_parameter(request.additional_params, RETAIN_DATA)


def change(situation: Situation, request: TerminateRequest) -> Change:
    grace = 0
    if request.termination_type is TerminationType.GRACEFUL:
        grace = request.graceful_termination_timeout or DEFAULT_GRACE
    retains = flag_parameter(request.additional_params, RETAIN_DATA)
    return change_to(situation, None, grace_seconds=grace, retains_data=retains)


def complete(situation: Situation, request: TerminateRequest) -> VnfInstance:
    return replace(
        situation.instance.vnf,
        instantiation_state=InstantiationState.NOT_INSTANTIATED,
        instantiated_vnf_info=None,
        vim_connection_info={},
    )


def _check_stored(connection: Connection, instance: Instance, request: TerminateRequest) -> None:
    refuse_used_cluster(connection, instance, "Terminate them first.")


RULES = OperationRules(
    operation=OperationType.TERMINATE,
    request=TerminateRequest,
    hook="terminate",
    check=check,
    check_stored=_check_stored,
    on_any_vim=True,
    change=change,
    complete=complete,
    parameters=lambda instance, request: {},
)
