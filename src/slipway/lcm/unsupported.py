"""Attributes of the standard's requests that nothing is done about yet: refused by name rather than ignored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from slipway.model.errors import Unprocessable
from slipway.model.instance import CpConfig, ExtManagedVirtualLink, ExtVirtualLink, IpAddresses, VimConnectionInfo
from slipway.model.requests import ChangeExtConnRequest, ChangePackageRequest, InstantiateRequest

ETHERNET = "IP_OVER_ETHERNET"
MOST_ADDRESSES = 16  # of one connection point
NOTHING = "it does nothing yet; leave it out"


def refuse_unsupported_attributes(attributes: Mapping[str, object]) -> None:
    """Unprocessable that names all of them. Empty ones ask for nothing."""
    _refuse((name, NOTHING) for name, value in attributes.items() if value)


def refuse_unsupported_links(links: Iterable[ExtVirtualLink], managed: Iterable[ExtManagedVirtualLink] = ()) -> None:
    """Unprocessable that names all that nothing is done about."""
    ports = ((at, link.vnf_link_port) for at, link in enumerate(managed))
    _refuse([*_in_links(links), *((f"extManagedVirtualLinks[{at}].vnfLinkPort", NOTHING) for at, one in ports if one)])


def refuse_links_elsewhere(
    request: InstantiateRequest | ChangeExtConnRequest | ChangePackageRequest, key: str, vim: VimConnectionInfo
) -> None:
    """Unprocessable when a link is said to be on another VIM than the VNF itself: ports are made on that one alone.

    `key` is what the VNF calls its VIM.
    """
    given = request.vim_connection_info
    names = [name for name in dict.fromkeys((key, vim.vim_id, given.get(key, vim).vim_id)) if name]
    links = [(f"extVirtualLinks[{at}]", link.vim_connection_id) for at, link in enumerate(request.ext_virtual_links)]
    managed = request.ext_managed_virtual_links if not isinstance(request, ChangeExtConnRequest) else ()
    links += [(f"extManagedVirtualLinks[{at}]", link.vim_connection_id) for at, link in enumerate(managed)]
    links += [
        (f"extVirtualLinks[{at}].extLinkPorts[{number}].resourceHandle", port.resource_handle.vim_connection_id)
        for at, link in enumerate(request.ext_virtual_links)
        for number, port in enumerate(link.ext_link_ports)
    ]
    for path, named in links:
        if named and named not in names:
            raise Unprocessable(
                f"{path}.vimConnectionId: {named!r} is not the VIM that the VNF is on; "
                f"leave it out, or name that one: {' or '.join(names)}."
            )


def _refuse(found: Iterable[tuple[str, str]]) -> None:
    if said := " ".join(f"{path}: {why}." for path, why in found):
        raise Unprocessable(said)


def _in_links(links: Iterable[ExtVirtualLink]) -> Iterator[tuple[str, str]]:
    """An id that refers to nothing in the request asks for nothing: the record has it as it was given."""
    links = tuple(links)
    configs = {key for link in links for cp in link.ext_cps for key in cp.cp_config}
    for at, link in enumerate(links):
        for number, cp in enumerate(link.ext_cps):
            for key, config in cp.cp_config.items():
                path = f"extVirtualLinks[{at}].extCps[{number}].cpConfig.{key}"
                if config.parent_cp_config_id in configs:
                    yield f"{path}.parentCpConfigId", NOTHING
                yield from _in_config(config, path)


def _in_config(config: CpConfig, path: str) -> Iterator[tuple[str, str]]:
    if len(config.cp_protocol_data) > 1:
        yield f"{path}.cpProtocolData", "a connection point has one; put all its addresses there"
    for data in config.cp_protocol_data:
        if data.layer_protocol != ETHERNET:
            yield f"{path}.layerProtocol", f"it must be {ETHERNET}"
        yield from _in_addresses(data.ip_over_ethernet.ip_addresses if data.ip_over_ethernet else (), path)


def _in_addresses(asked: tuple[IpAddresses, ...], path: str) -> Iterator[tuple[str, str]]:
    number = sum(len(ips.fixed_addresses) or ips.num_dynamic_addresses or 1 for ips in asked)
    if number > MOST_ADDRESSES:
        yield f"{path}.ipAddresses", f"a connection point gets at most {MOST_ADDRESSES} addresses, not {number}"
    for ips in asked:
        if ips.address_range:
            yield f"{path}.addressRange", NOTHING
        elif number > 1 and not ips.fixed_addresses and not ips.subnet_id:
            yield (
                f"{path}.numDynamicAddresses",
                "of several addresses those that the VIM chooses need a subnetId; name it, or ask for one address",
            )
