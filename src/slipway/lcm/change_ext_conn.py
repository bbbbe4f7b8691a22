"""Change of external connectivity: connection points move to other networks, or get other addresses there.

Machines stay. A port that is to be elsewhere is taken off its machine, and another one comes in its place; the rest of
the machine is left alone. A rollback gives the old ports back, with the addresses they had.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from slipway.lcm.affected_resources import changed_links
from slipway.lcm.link_checks import check_link_change, check_link_ports, check_links, check_named_ports
from slipway.lcm.operation_rules import OperationRules
from slipway.lcm.targets import change_to, info_of, target_at
from slipway.lcm.unsupported import refuse_links_elsewhere, refuse_unsupported_links
from slipway.model.connectivity import Links, connected, links_of, recorded_links
from slipway.model.instance import VimConnectionInfo, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import ChangeExtConnRequest
from slipway.model.situation import Situation
from slipway.model.target import Change
from slipway.vim_registry.choice import merged_connections, vim_key_of


def check(situation: Situation, request: ChangeExtConnRequest) -> None:
    vnf = situation.instance.vnf
    now = links_of(info_of(vnf))
    refuse_unsupported_links(request.ext_virtual_links)
    check_links(request.ext_virtual_links, situation.flavour)
    check_link_change(now, request.ext_virtual_links)
    after = connected(now, request.ext_virtual_links)
    check_link_ports(after)
    check_named_ports(request.ext_virtual_links, after)
    _connections(vnf, request)


def change(situation: Situation, request: ChangeExtConnRequest) -> Change:
    """The same members with the same ports, but for those that move."""
    info = info_of(situation.instance.vnf)
    after = target_at(situation, info.scale_levels, situation.flavour.level_of(info), _links(situation, request))
    return change_to(situation, after, reconnects=True)


def complete(situation: Situation, request: ChangeExtConnRequest) -> VnfInstance:
    vnf = situation.instance.vnf
    info = replace(info_of(vnf), ext_virtual_link_info=recorded_links(_links(situation, request), vim_key_of(vnf)))
    connections = _connections(vnf, request)
    return replace(vnf, instantiated_vnf_info=info, vim_connection_info=connections)


def _connections(vnf: VnfInstance, request: ChangeExtConnRequest) -> dict[str, VimConnectionInfo]:
    return merged_connections(vnf, request.vim_connection_info)


def _links(situation: Situation, request: ChangeExtConnRequest) -> Links:
    return connected(links_of(info_of(situation.instance.vnf)), request.ext_virtual_links)


def _check_vim(vnf: VnfInstance, vim: VimConnectionInfo, request: ChangeExtConnRequest) -> None:
    refuse_links_elsewhere(request, vim_key_of(vnf), vim)


def _report(before: VnfInstance, after: VnfInstance, request: ChangeExtConnRequest) -> dict[str, Any]:
    return {"changed_ext_connectivity": changed_links(before.instantiated_vnf_info, after.instantiated_vnf_info)}


RULES = OperationRules(
    operation=OperationType.CHANGE_EXT_CONN,
    request=ChangeExtConnRequest,
    hook="change_external_connectivity",
    check=check,
    check_vim=_check_vim,
    connections=_connections,
    change=change,
    complete=complete,
    report=_report,
)
