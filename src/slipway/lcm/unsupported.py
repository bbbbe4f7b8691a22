"""Attributes of the standard's requests that nothing is done about yet: refused by name rather than ignored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from slipway.lcm.vim_choice import key_for_new, key_of
from slipway.model.errors import Unprocessable
from slipway.model.instance import CpConfig, ExtVirtualLink, VimConnectionInfo, VnfInstance
from slipway.model.requests import (
    AnyRequest,
    ChangeExtConnRequest,
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
)

ETHERNET = "IP_OVER_ETHERNET"
NOTHING = "it does nothing yet; leave it out"
ONE = "a connection point gets one address; ask for one"


def refuse_unsupported(request: InstantiateRequest | HealRequest | ChangeExtConnRequest | ChangePackageRequest) -> None:
    """Unprocessable that names all of them. Empty ones ask for nothing."""
    found: list[tuple[str, str]] = []
    if isinstance(request, HealRequest):
        found += [("healScript", NOTHING)] if request.heal_script else []
    else:
        found += _in_links(request.ext_virtual_links)
    if isinstance(request, InstantiateRequest | ChangePackageRequest) and request.ext_managed_virtual_links:
        found.append(("extManagedVirtualLinks", NOTHING))
    if found:
        raise Unprocessable(" ".join(f"{path}: {why}." for path, why in found))


def refuse_other_vims(request: AnyRequest, vnf: VnfInstance, vim: VimConnectionInfo | None) -> None:
    """Unprocessable when a link is said to be on another VIM than the VNF itself: ports are made on that one alone."""
    if vim is None or not isinstance(request, InstantiateRequest | ChangeExtConnRequest | ChangePackageRequest):
        return
    key = key_for_new(request) if isinstance(request, InstantiateRequest) else key_of(vnf)
    asked = request.vim_connection_info.get(key, vim)
    names = [name for name in dict.fromkeys((key, vim.vim_id, asked.vim_id)) if name]
    for at, link in enumerate(request.ext_virtual_links):
        if link.vim_connection_id and link.vim_connection_id not in names:
            raise Unprocessable(
                f"extVirtualLinks[{at}].vimConnectionId: {link.vim_connection_id!r} is not the VIM that the VNF is on; "
                f"leave it out, or name that one: {' or '.join(names)}."
            )


def _in_links(links: Iterable[ExtVirtualLink]) -> Iterator[tuple[str, str]]:
    for at, link in enumerate(links):
        path = f"extVirtualLinks[{at}]"
        if link.resource_provider_id:
            yield f"{path}.resourceProviderId", NOTHING
        if link.ext_link_ports:
            yield f"{path}.extLinkPorts", NOTHING
        for number, cp in enumerate(link.ext_cps):
            for key, config in cp.cp_config.items():
                yield from _in_config(config, f"{path}.extCps[{number}].cpConfig.{key}")


def _in_config(config: CpConfig, path: str) -> Iterator[tuple[str, str]]:
    if config.parent_cp_config_id:
        yield f"{path}.parentCpConfigId", NOTHING
    if config.link_port_id:
        yield f"{path}.linkPortId", NOTHING
    if len(config.cp_protocol_data) > 1:
        yield f"{path}.cpProtocolData", ONE
    for data in config.cp_protocol_data:
        if data.layer_protocol != ETHERNET:
            yield f"{path}.layerProtocol", f"it must be {ETHERNET}"
        asked = data.ip_over_ethernet.ip_addresses if data.ip_over_ethernet else ()
        if len(asked) > 1:
            yield f"{path}.ipAddresses", ONE
        for ips in asked:
            if ips.subnet_id:
                yield f"{path}.subnetId", NOTHING
            if ips.address_range:
                yield f"{path}.addressRange", NOTHING
            if (ips.num_dynamic_addresses or 1) > 1:
                yield f"{path}.numDynamicAddresses", ONE
            if len(ips.fixed_addresses) > 1:
                yield f"{path}.fixedAddresses", ONE
