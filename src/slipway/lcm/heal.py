"""Heal: named VNFCs, or the whole VNF, made anew in their slots. What hangs on them stays, unless `all` is asked."""

from __future__ import annotations

from sqlalchemy import Connection

from slipway.cluster.parameters import with_storage_said
from slipway.lcm.operation_rules import OperationRules, flag_parameter
from slipway.lcm.targets import change_to, info_of, target_now
from slipway.lcm.unsupported import refuse_unsupported_attributes
from slipway.model.errors import BadRequest
from slipway.model.instance import Instance, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest
from slipway.model.situation import Situation
from slipway.model.target import Change, Renewal
from slipway.vim_registry.cluster_users import is_whole_heal, refuse_used_cluster

EVEN_IF_USED = "even_if_used"  # in additionalParams: a cluster is made anew though VNFs run on it


def check(situation: Situation, request: HealRequest) -> None:
    refuse_unsupported_attributes({"healScript": request.heal_script})
    _renewal(situation, request)


def change(situation: Situation, request: HealRequest) -> Change:
    renewal = _renewal(situation, request)
    return change_to(situation, target_now(situation, renewal=renewal), renewal=renewal)


def complete(situation: Situation, request: HealRequest) -> VnfInstance:
    return situation.instance.vnf


def _renewal(situation: Situation, request: HealRequest) -> Renewal:
    info = info_of(situation.instance.vnf)
    everything = flag_parameter(request.additional_params, "all")
    known = info.vnfc_resource_ids
    for at, name in enumerate(request.vnfc_instance_id):
        if name not in known:
            raise BadRequest(
                f"vnfcInstanceId[{at}]: the VNF has no VNFC {name!r}; it has: "
                f"{', '.join(vnfc.id for vnfc in info.vnfc_info) or 'none'}."
            )
    chosen = request.vnfc_instance_id or tuple(known)
    return Renewal(members=frozenset(known[name] for name in chosen), everything=everything, cause=request.cause)


def _check_stored(connection: Connection, instance: Instance, request: HealRequest) -> None:
    """A cluster that is built anew forgets what runs on it."""
    if is_whole_heal(instance.vnf, request.vnfc_instance_id) and not flag_parameter(
        request.additional_params, EVEN_IF_USED
    ):
        refuse_used_cluster(
            connection,
            instance,
            "They are lost when the whole cluster is made anew: terminate them first, heal single VNFCs, or say "
            f"additionalParams.{EVEN_IF_USED}: true.",
        )


RULES = OperationRules(
    operation=OperationType.HEAL,
    request=HealRequest,
    hook="heal",
    check=check,
    check_stored=_check_stored,
    change=change,
    complete=complete,
    parameters=lambda instance, request: with_storage_said(instance.parameters, request.additional_params),
)
