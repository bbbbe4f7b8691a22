"""Change of external connectivity: connection points move to other networks, or get other addresses there.

Machines stay. A port that is to be elsewhere is taken off its machine, and another one comes in its place; the rest of
the machine is left alone. A rollback gives the old ports back, with the addresses they had.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import TypeVar

from msgspec.structs import replace

from slipway.lcm.rules import Rules
from slipway.lcm.targets import change_to, check_links, info_of, level_of, scale_levels, target_at
from slipway.lcm.unsupported import refuse_unsupported
from slipway.lcm.vim_choice import connections_with, key_of
from slipway.model.connectivity import Links, connected, links_of, recorded_links
from slipway.model.errors import BadRequest
from slipway.model.instance import CpConfig, IpOverEthernet, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import ChangeExtConnRequest
from slipway.model.situation import Situation
from slipway.model.target import Change

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)
VERSIONS = {"IPV4": 4, "IPV6": 6}
T = TypeVar("T")


def check(situation: Situation, request: ChangeExtConnRequest) -> None:
    vnf = situation.instance.vnf
    now = links_of(info_of(vnf))
    refuse_unsupported(request)
    check_links(request.ext_virtual_links, situation.flavour)
    check_change(now, request.ext_virtual_links)
    connections_with(vnf, request.vim_connection_info)


def change(situation: Situation, request: ChangeExtConnRequest) -> Change:
    """The same members with the same ports, but for those that move."""
    scale = scale_levels(info_of(situation.instance.vnf))
    after = target_at(situation, scale, level_of(situation), _links(situation, request))
    return change_to(situation, after, reconnects=True)


def complete(situation: Situation, request: ChangeExtConnRequest) -> VnfInstance:
    vnf = situation.instance.vnf
    info = replace(info_of(vnf), ext_virtual_link_info=recorded_links(_links(situation, request), key_of(vnf)))
    connections = connections_with(vnf, request.vim_connection_info)
    return replace(vnf, instantiated_vnf_info=info, vim_connection_info=connections)


def _links(situation: Situation, request: ChangeExtConnRequest) -> Links:
    return connected(links_of(info_of(situation.instance.vnf)), request.ext_virtual_links)


def check_change(now: Links, asked: Links) -> None:
    """BadRequest when a link can't be meant as it is said."""
    known = {link.id for link in now}
    links, points, addresses = set[str](), set[str](), set[tuple[str, str]]()
    for at, link in enumerate(asked):
        path = f"extVirtualLinks[{at}]"
        for name, value in (("id", link.id), ("resourceId", link.resource_id)):
            if not value.strip():
                raise BadRequest(f"{path}.{name}: it is empty; name the {'link' if name == 'id' else 'network'}.")
        _once(link.id, links, f"{path}.id: the link {link.id!r}")
        if not link.ext_cps and link.id not in known:
            raise BadRequest(
                f"{path}.extCps: the VNF has no link {link.id!r}, and the request connects nothing to it; name the "
                f"connection points. It has: {', '.join(sorted(known)) or 'none'}."
            )
        for cp in link.ext_cps:
            here = f"{path}.extCps"
            _once(cp.cpd_id, points, f"{here}: the connection point {cp.cpd_id!r}")
            for key, config in cp.cp_config.items():
                for address in _checked(config, f"{here}.{cp.cpd_id}.cpConfig.{key}"):
                    _once((link.resource_id, address), addresses, f"{here}: the address {address}")


def _once(value: T, seen: set[T], what: str) -> None:
    if value in seen:
        raise BadRequest(f"{what} is there twice; name it once.")
    seen.add(value)


def _checked(config: CpConfig, path: str) -> Iterator[str]:
    """The addresses asked for."""
    for data in config.cp_protocol_data:
        if ethernet := data.ip_over_ethernet:
            if ethernet.mac_address is not None and not MAC.fullmatch(ethernet.mac_address):
                raise BadRequest(f"{path}.macAddress: {ethernet.mac_address!r} is none; write it as 02:00:00:00:00:01.")
            yield from _addresses(ethernet, path)


def _addresses(ethernet: IpOverEthernet, path: str) -> Iterator[str]:
    for ips in ethernet.ip_addresses:
        if ips.type not in VERSIONS:
            raise BadRequest(f"{path}.ipAddresses.type: IPV4 or IPV6 is wanted, not {ips.type!r}.")
        for text in ips.fixed_addresses:
            try:
                address = ipaddress.ip_address(text)
            except ValueError:
                raise BadRequest(f"{path}.fixedAddresses: {text!r} is no address; write one like 10.0.0.5.") from None
            if address.version != VERSIONS[ips.type]:
                raise BadRequest(f"{path}.fixedAddresses: {text!r} is not of the type {ips.type}; correct one of them.")
            yield str(address)


RULES = Rules(
    OperationType.CHANGE_EXT_CONN, ChangeExtConnRequest, "change_external_connectivity", check, complete, change
)
