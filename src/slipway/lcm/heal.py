"""Heal: named VNFCs, or the whole VNF, made anew in their slots. What hangs on them stays, unless `all` is asked."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection

from slipway.lcm.operation_rules import OperationRules
from slipway.lcm.targets import change_to, info_of, target_now
from slipway.lcm.unsupported import refuse_unsupported_attributes
from slipway.model.errors import BadRequest
from slipway.model.instance import Instance, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest
from slipway.model.situation import Situation
from slipway.model.target import Change, Renewal
from slipway.vim_registry.cluster_users import refuse_used_cluster

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
    everything = _flag(request, "all")
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
    if _is_whole(instance.vnf, request.vnfc_instance_id) and not _flag(request, EVEN_IF_USED):
        refuse_used_cluster(
            connection,
            instance,
            "They are lost when the whole cluster is made anew: terminate them first, heal single VNFCs, or say "
            f"additionalParams.{EVEN_IF_USED}: true.",
        )


def _is_whole(vnf: VnfInstance, chosen: Collection[str]) -> bool:
    """Whether a heal makes all VNFCs anew, named or not."""
    known = vnf.instantiated_vnf_info.vnfc_resource_ids if vnf.instantiated_vnf_info else {}
    return not chosen or set(known.values()) <= {known.get(name) for name in chosen}


def _flag(request: HealRequest, name: str) -> bool:
    given = request.additional_params.get(name, False)
    if not isinstance(given, bool):
        raise BadRequest(f"additionalParams.{name}: it must be true or false, not {given!r}.")
    return given


RULES = OperationRules(
    operation=OperationType.HEAL,
    request=HealRequest,
    hook="heal",
    check=check,
    check_stored=_check_stored,
    change=change,
    complete=complete,
)
