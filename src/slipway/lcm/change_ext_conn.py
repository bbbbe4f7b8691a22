"""Change of external connectivity: connection points move to other networks, or get other addresses there.

Machines stay. A port that is to be elsewhere is taken off its machine, and another one comes in its place; the rest of
the machine is left alone. A rollback gives the old ports back, with the addresses they had.
"""

from __future__ import annotations

from msgspec.structs import replace

from slipway.lcm.outside import as_they_were, check_change, moved_ports, ports_of
from slipway.lcm.record import recorded_machine
from slipway.lcm.rules import Rules, hooked
from slipway.lcm.standing import check_links, info_of, level_of, scale_levels, wanted_now
from slipway.lcm.unsupported import refuse_unsupported
from slipway.lcm.vim_choice import connections_with, key_of
from slipway.lcm.wanted import Renewal, wanted_at
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.connectivity import Links, connected, links_of, recorded_links
from slipway.model.instance import VnfInstance
from slipway.model.machine import Wanted
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import ChangeExtConnRequest
from slipway.model.situation import Situation
from slipway.vim.contract import VimDriver


def check(situation: Situation, request: ChangeExtConnRequest) -> None:
    vnf = situation.instance.vnf
    now = links_of(info_of(vnf))
    refuse_unsupported(request)
    check_links(request.ext_virtual_links, situation.flavour)
    check_change(now, request.ext_virtual_links)
    connections_with(vnf, request.vim_connection_info)


def plan(situation: Situation, request: ChangeExtConnRequest, driver: VimDriver, management: ManagementDrivers) -> Plan:
    return hooked(situation, wanted(situation, request), "change_external_connectivity", driver, management)


def complete(situation: Situation, request: ChangeExtConnRequest) -> VnfInstance:
    vnf = situation.instance.vnf
    info = replace(info_of(vnf), ext_virtual_link_info=recorded_links(_links(situation, request), key_of(vnf)))
    connections = connections_with(vnf, request.vim_connection_info)
    return replace(vnf, instantiated_vnf_info=info, vim_connection_info=connections)


def _links(situation: Situation, request: ChangeExtConnRequest) -> Links:
    return connected(links_of(info_of(situation.instance.vnf)), request.ext_virtual_links)


def wanted(situation: Situation, request: ChangeExtConnRequest) -> Wanted:
    """The same machines with the same ports, but for those that move."""
    info, links = info_of(situation.instance.vnf), _links(situation, request)
    scale, level = scale_levels(info), level_of(situation)
    there = ports_of(recorded_machine(info, vnfc.id) for vnfc in info.vnfc_resource_info)
    before = wanted_now(situation)
    moved = moved_ports(there, before, wanted_at(situation, scale, level, links))
    then = wanted_at(situation, scale, level, links, Renewal(ports=moved))
    return replace(then, former=as_they_were(there, before, moved))


RULES = Rules(OperationType.CHANGE_EXT_CONN, ChangeExtConnRequest, check, plan, complete, wanted)
