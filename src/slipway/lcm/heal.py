"""Heal: named VNFCs, or the whole VNF, made anew in their slots. What hangs on them stays, unless `all` is asked."""

from __future__ import annotations

from slipway.lcm.rules import Rules, hooked
from slipway.lcm.standing import info_of, wanted_now
from slipway.lcm.unsupported import refuse_unsupported
from slipway.lcm.wanted import Renewal
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.errors import BadRequest
from slipway.model.instance import VnfInstance
from slipway.model.machine import Wanted
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import HealRequest
from slipway.model.situation import Situation
from slipway.vim.contract import VimDriver


def check(situation: Situation, request: HealRequest) -> None:
    refuse_unsupported(request)
    _renewal(situation, request)


def plan(situation: Situation, request: HealRequest, driver: VimDriver, management: ManagementDrivers) -> Plan:
    return hooked(situation, wanted(situation, request), "heal", driver, management)


def wanted(situation: Situation, request: HealRequest) -> Wanted:
    return wanted_now(situation, renewal=_renewal(situation, request))


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
    return Renewal(machines=frozenset(known[name] for name in chosen), everything=everything)


RULES = Rules(OperationType.HEAL, HealRequest, check, plan, complete, wanted)
