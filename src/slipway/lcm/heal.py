"""Heal: named VNFCs, or the whole VNF, made anew in their slots. What hangs on them stays, unless `all` is asked."""

from __future__ import annotations

from slipway.lcm.rules import Rules
from slipway.lcm.targets import change_to, info_of, target_now
from slipway.lcm.unsupported import refuse_unsupported
from slipway.model.errors import BadRequest
from slipway.model.instance import VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest
from slipway.model.situation import Situation
from slipway.model.target import Change, Renewal


def check(situation: Situation, request: HealRequest) -> None:
    refuse_unsupported(request)
    _renewal(situation, request)


def change(situation: Situation, request: HealRequest) -> Change:
    renewal = _renewal(situation, request)
    return change_to(situation, target_now(situation, renewal=renewal), renewal=renewal)


def complete(situation: Situation, request: HealRequest) -> VnfInstance:
    return situation.instance.vnf


def _renewal(situation: Situation, request: HealRequest) -> Renewal:
    info = info_of(situation.instance.vnf)
    everything = request.additional_params.get("all", False)
    if not isinstance(everything, bool):
        raise BadRequest(f"additionalParams.all: true or false is wanted, not {everything!r}.")
    # A VNFC is known by its vnfcInfo id, and, to those who read only the resources, by its vnfcResourceInfo id.
    known = {vnfc.id: vnfc.id for vnfc in info.vnfc_resource_info}
    known |= {vnfc.id: vnfc.vnfc_resource_info_id for vnfc in info.vnfc_info if vnfc.vnfc_resource_info_id}
    for at, name in enumerate(request.vnfc_instance_id):
        if name not in known:
            raise BadRequest(
                f"vnfcInstanceId[{at}]: the VNF has no VNFC {name!r}; it has: "
                f"{', '.join(vnfc.id for vnfc in info.vnfc_info) or 'none'}."
            )
    chosen = request.vnfc_instance_id or tuple(known)
    return Renewal(members=frozenset(known[name] for name in chosen), everything=everything)


RULES = Rules(OperationType.HEAL, HealRequest, "heal", check, complete, change)
