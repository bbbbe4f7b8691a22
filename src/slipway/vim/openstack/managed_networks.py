"""Networks, subnets and ports that a request names: those that exist already, in place of those of a template."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any
from uuid import UUID

from slipway.model.connectivity import all_asked_addresses, used_link_ports
from slipway.model.errors import Unprocessable
from slipway.model.target import VnfTarget
from slipway.vim.openstack.heat import NETWORK, SUBNET
from slipway.vim.openstack.hot_template import calls, properties_of, resources_of


def refuse_names(target: VnfTarget) -> None:
    """Unprocessable for what is no id: Heat would take a name, but Neutron tells ids, and so both would differ."""
    for link, network in target.managed_networks.items():
        if not _is_id(network):
            raise Unprocessable(
                f"extManagedVirtualLinks: resourceId of the virtual link {link}: {network!r} is no id of a network; "
                "take it from: openstack network show NAME -c id."
            )
    for point, subnet in _subnets(target):
        if not _is_id(subnet):
            raise Unprocessable(
                f"extVirtualLinks: subnetId of the connection point {point}: {subnet!r} is no id of a subnet; "
                "take it from: openstack subnet show NAME -c id."
            )
    for cp, port in (one for link in target.links for one in used_link_ports(link)):
        if not _is_id(resource := port.resource_handle.resource_id):
            raise Unprocessable(
                f"extVirtualLinks: resourceId of the port {port.id} of the connection point {cp.cpd_id}: {resource!r} "
                "is no id of a port; take it from: openstack port show NAME -c id."
            )


def refuse_unread_ports(path: str, target: VnfTarget, read: Collection[str]) -> None:
    """Unprocessable for a port that exists and that the template would not use. `read`: points whose ports it reads."""
    for cp, port in (one for link in target.links for one in used_link_ports(link)):
        if cp.cpd_id not in read:
            raise Unprocessable(
                f"extVirtualLinks: linkPortId {port.id} of the connection point {cp.cpd_id}: {path} does not read "
                f"nfv.CP.{cp.cpd_id}.port, so it would not use the port; leave it out, or let the template read it."
            )


def with_networks(template: dict[str, Any], networks: Mapping[str, str]) -> dict[str, Any]:
    """The top template without the networks of those links and their subnets; what refers to a network names its id."""
    if not networks:
        return template
    gone = _not_made(template, networks)
    resources = {
        name: _with_ids(_after_others(resource, gone), networks)
        for name, resource in resources_of(template).items()
        if name not in gone
    }
    return {**template, "resources": resources}


def refuse_unused(path: str, template: dict[str, Any], networks: Mapping[str, str], read: Collection[str]) -> None:
    """Unprocessable when the template would not use one of the networks, or still needs what is not made for it.

    `read`: links whose networks the template reads of `nfv`.
    """
    made = {name for name, one in resources_of(template).items() if one["type"] == NETWORK}
    for link in networks:
        if link not in made and link not in read:
            raise Unprocessable(
                f"extManagedVirtualLinks: {path} has no {NETWORK} named {link}, and reads no nfv.CP.<cp>.network of "
                "its connection points, so it would not use the network; leave the link out, or add one of the two."
            )
    after, gone = with_networks(template, networks), _not_made(template, networks)
    for argument in (one for name in ("get_resource", "get_attr") for one in calls(after, name)):
        needed = argument[0] if isinstance(argument, list) and argument else argument
        if isinstance(needed, str) and needed in gone:
            raise Unprocessable(
                f"extManagedVirtualLinks: {path} still refers to {needed}, which is not made when its network is "
                "given; leave the link out, or let the template do without."
            )


def _not_made(template: dict[str, Any], networks: Mapping[str, str]) -> set[str]:
    resources = resources_of(template)
    gone = {name for name, one in resources.items() if one["type"] == NETWORK and name in networks}
    return gone | {name for name, one in resources.items() if one["type"] == SUBNET and _network_of(one) in gone}


def _network_of(subnet: dict[str, Any]) -> str:
    properties = properties_of(subnet)
    return _named(properties.get("network", properties.get("network_id")))


def _after_others(resource: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    if "depends_on" not in resource:
        return resource
    named = resource["depends_on"]
    others = [name for name in ([named] if isinstance(named, str) else named) if name not in gone]
    rest = {key: value for key, value in resource.items() if key != "depends_on"}
    return {**rest, "depends_on": others} if others else rest


def _with_ids(value: Any, networks: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_with_ids(one, networks) for one in value]
    if not isinstance(value, dict):
        return value
    if (name := _named(value)) in networks:
        return networks[name]
    return {key: _with_ids(one, networks) for key, one in value.items()}


def _named(value: Any) -> str:
    """The resource that a value refers to; an empty text when it is none."""
    name = value.get("get_resource") if isinstance(value, dict) and len(value) == 1 else None
    return name if isinstance(name, str) else ""


def _subnets(target: VnfTarget) -> Iterator[tuple[str, str]]:
    for cp in (cp for link in target.links for cp in link.ext_cps):
        for addresses in all_asked_addresses(cp):
            yield from ((cp.cpd_id, one.subnet) for one in addresses if one.subnet)


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
