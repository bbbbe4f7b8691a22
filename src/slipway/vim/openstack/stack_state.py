"""What stands: a stack with its resources, and what Nova and Neutron say about its servers and ports.

One look is a list of one stack, one list of its resources, one of the servers that bear its tag, and one of each
hundred ports and floating IPs: it grows with nothing that belongs to others.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from msgspec.structs import replace

from slipway.model.machine import Address, Found, FoundMachine, FoundNetwork, FoundObject, FoundPort, FoundVolume
from slipway.vim.openstack.answers import FloatingIp, FloatingIps, Page, Port, Ports, Server, Servers, ShownServer
from slipway.vim.openstack.cloud import NEUTRON, NOVA, Cloud, Item, for_each, listed
from slipway.vim.openstack.heat import (
    FLOATING_IP,
    NETWORK,
    PORT,
    SERVER,
    VOLUME,
    Stack,
    StackResource,
    find_stack,
    resources_of,
)
from slipway.vim.openstack.stack_change import StackMember

PAGE = 1000  # servers of one list
LEAVING = 100  # servers that may be listed beside the stack's own and as many that those have replaced
IDS = 100  # ports or floating IPs, so that their ids fit into a URL
STACK = "OS::Heat::Stack"


@dataclass(frozen=True)
class StackState:
    """`servers` and `ports` by their ids; one that Heat has and the service has not is left out.

    `floating`: the floating IPs of the stack that lead to a port, by the port's id and their own names.
    """

    stack: Stack
    resources: tuple[StackResource, ...]
    servers: Mapping[str, Server]
    ports: Mapping[str, Port]
    floating: Mapping[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def _by_type(self) -> dict[str, list[StackResource]]:
        by_type: dict[str, list[StackResource]] = {}
        for one in self.resources:
            if one.id:
                by_type.setdefault(one.type, []).append(one)
        return by_type

    @cached_property
    def _ports_by_server(self) -> dict[str, list[StackResource]]:
        by_server: dict[str, list[StackResource]] = {}
        for one in sorted(self.of_type(PORT), key=lambda one: one.path):
            if server := self.device_of(one.id):
                by_server.setdefault(server, []).append(one)
        return by_server

    @cached_property
    def _volumes_by_id(self) -> dict[str, StackResource]:
        return {one.id: one for one in self.of_type(VOLUME)}

    @cached_property
    def _servers_by_top(self) -> dict[str, list[StackResource]]:
        by_top: dict[str, list[StackResource]] = {}
        for one in self.of_type(SERVER):
            by_top.setdefault(one.path[0], []).append(one)
        return by_top

    def of_type(self, type_: str) -> list[StackResource]:
        return self._by_type.get(type_, [])

    def servers_in(self, top: str) -> list[StackResource]:
        """Of a resource of the stack itself, or that resource."""
        return self._servers_by_top.get(top, [])

    def device_of(self, port_id: str) -> str | None:
        """The server that a port is on."""
        there = self.ports.get(port_id)
        return there.device_id or None if there else None

    def ports_on(self, server_id: str) -> list[FoundPort]:
        return [self.port(one) for one in self._ports_by_server.get(server_id, ())]

    def port(self, resource: StackResource) -> FoundPort:
        return self._port(resource.id, vnfd_name(resource))

    def existing_ports(self, machine: FoundMachine | None, server_id: str) -> list[FoundPort]:
        """Ports of the machine that are not the stack's, but for those that Neutron has on another server or on none.

        The account may not see ports of another project: then they are where they should be.
        """
        known = {port.resource_id: port.name for port in machine.ports if port.existing} if machine else {}
        on_it = {id_: name for id_, name in known.items() if id_ not in self.ports or self.device_of(id_) == server_id}
        return [replace(self._port(id_, name), existing=True) for id_, name in on_it.items()]

    def _port(self, id_: str, name: str) -> FoundPort:
        there = self.ports.get(id_) or Port(id=id_)
        return FoundPort(
            id=id_,
            name=name,
            resource_id=id_,
            addresses=tuple(Address(ip=one.ip_address, subnet=one.subnet_id) for one in there.fixed_ips or ()),
            mac=there.mac_address,
            network=there.network_id,
            floating=self.floating.get(id_, {}),
        )

    def volumes_on(self, server_id: str) -> list[FoundVolume]:
        there = self.servers.get(server_id)
        attached = {one.id for one in there.volumes} if there else set[str]()
        on_it = [self._volumes_by_id[id_] for id_ in attached if id_ in self._volumes_by_id]
        return [volume(one) for one in sorted(on_it, key=lambda one: one.path)]

    def ready(self, server_id: str) -> bool:
        there = self.servers.get(server_id)
        return there is not None and there.status == "ACTIVE"

    def host(self, server_id: str) -> str | None:
        there = self.servers.get(server_id)
        return there.own_host or there.host_id or None if there else None


def vnfd_name(resource: StackResource) -> str:
    """What the VNFD calls a port or a volume: the resource's name in a package's template, its end in ours."""
    return resource.name.rpartition(":")[2]


def volume(resource: StackResource) -> FoundVolume:
    return FoundVolume(id=resource.id, name=vnfd_name(resource), resource_id=resource.id)


async def look(cloud: Cloud, name: str, existing_ports: Iterable[str] = ()) -> StackState | None:
    stack = await find_stack(cloud, name)
    return None if stack is None else await look_at(cloud, stack, existing_ports)


async def look_at(cloud: Cloud, stack: Stack, existing_ports: Iterable[str] = ()) -> StackState:
    """`existing_ports`: ids of those that servers use and that are not the stack's."""
    resources = tuple(await resources_of(cloud, stack))
    ids: dict[str, list[str]] = {SERVER: [], PORT: list(existing_ports), FLOATING_IP: []}
    for one in resources:
        if one.id and one.type in ids:
            ids[one.type].append(one.id)
    servers, ports, floating = await asyncio.gather(
        _servers(cloud, stack.name, ids[SERVER]),
        _by_id(cloud, "/ports", Ports, ids[PORT]),
        _by_id(cloud, "/floatingips", FloatingIps, ids[FLOATING_IP]),
    )
    return StackState(stack, resources, servers, ports, _by_port(resources, floating))


async def _servers(cloud: Cloud, tag: str, ids: list[str]) -> dict[str, Server]:
    """By the stack's tag, and one by one those that don't bear it yet: a package's template gives none."""
    if not ids:
        return {}
    most = 2 * len(ids) + LEAVING
    tagged = await listed(cloud, NOVA, "/servers/detail", Servers, {"tags": tag, "limit": PAGE}, most=most)
    own = set(ids)
    found = {one.id: one for one in tagged if one.id in own}
    missing = [id_ for id_ in ids if id_ not in found]
    alone = await for_each(missing, lambda id_: cloud.find(NOVA, f"/servers/{id_}", ShownServer))
    return found | {id_: one.server for id_, one in zip(missing, alone, strict=True) if one}


async def _by_id(cloud: Cloud, path: str, kind: type[Page[Item]], ids: list[str]) -> dict[str, Item]:
    """Ports or floating IPs of Neutron's."""
    parts = [ids[at : at + IDS] for at in range(0, len(ids), IDS)]
    lists = await for_each(parts, lambda part: listed(cloud, NEUTRON, path, kind, {"id": part}, most=IDS))
    own = set(ids)
    return {one.id: one for part in lists for one in part if one.id in own}


def _by_port(resources: Iterable[StackResource], floating: Mapping[str, FloatingIp]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for resource in resources:
        there = floating.get(resource.id)
        if resource.type == FLOATING_IP and there and there.port_id:
            found.setdefault(there.port_id, {})[resource.name] = there.floating_ip_address
    return found


def found(state: StackState, inventory: Found) -> Found:
    """As the contract has it. A server is known by the record; one that is not has its own id."""
    known = _known(state, inventory)
    return Found(
        networks=networks(state),
        machines=tuple(_machine(state, one, known.get(one.id)) for one in state.of_type(SERVER)),
        volumes=tuple(volume(one) for one in state.of_type(VOLUME)),
        ports=tuple(state.port(one) for one in state.of_type(PORT)),
        objects=(as_object(state.stack),),
    )


def _known(state: StackState, inventory: Found) -> dict[str, FoundMachine]:
    """Machines of the record by the servers that they are now.

    Somebody else, or a heal that was given up, may have made a server anew: it has the ports of the one before, or its
    place in the stack.
    """
    servers = state.of_type(SERVER)
    by_server = {machine.resource_id: machine for machine in inventory.machines}
    known = {one.id: by_server[one.id] for one in servers if one.id in by_server}
    missing = [machine for machine in inventory.machines if machine.resource_id not in known]
    by_name = {machine.name: machine for machine in missing}
    by_port = {port.id: machine for machine in missing for port in machine.ports}
    taken = set[str]()
    for server in servers if missing else ():
        if server.id not in known:
            held = (by_port.get(port.id) for port in state.ports_on(server.id))
            like = (machine for machine in (by_name.get(server.path[0]), *held) if machine and machine.id not in taken)
            if machine := next(like, None):
                known[server.id] = machine
                taken.add(machine.id)
    return known


def networks(state: StackState) -> tuple[FoundNetwork, ...]:
    return tuple(FoundNetwork(id=one.id, name=one.name, resource_id=one.id) for one in state.of_type(NETWORK))


def unattached_ports(state: StackState) -> tuple[FoundPort, ...]:
    """Those that are there for their address, like one that servers share. At the top, where each has its own name."""
    top = [one for one in state.of_type(PORT) if len(one.path) == 1 and one.id in state.ports]
    return tuple(state.port(one) for one in top if not state.device_of(one.id))


def as_object(stack: Stack) -> FoundObject:
    return FoundObject(id=stack.id, kind=STACK, name=stack.name, digest=stack.digest, ready=stack.complete)


def _machine(state: StackState, resource: StackResource, known: FoundMachine | None) -> FoundMachine:
    """What it was made from is what was asked for: a name that Heat turned into an id would look like a change."""
    return FoundMachine(
        id=known.id if known else resource.id,
        name=known.name if known else "/".join(resource.path),
        vdu=known.vdu if known else resource.name,
        type=SERVER,
        resource_id=resource.id,
        ready=state.ready(resource.id),
        ports=(*state.ports_on(resource.id), *state.existing_ports(known, resource.id)),
        volumes=tuple(state.volumes_on(resource.id)),
        zone=known.zone if known else None,
        image=known.image if known else None,
        flavour=known.flavour if known else None,
        host=state.host(resource.id),
    )


def servers_of(state: StackState, members: Iterable[StackMember]) -> dict[str, StackResource]:
    """Who is who: members by id, and their servers' resources. One without a server is left out."""
    members = tuple(members)
    placed: dict[str, StackResource] = {}
    for member in members:
        if not member.group and (servers := _in(state, member.top, member.vdu)):
            placed[member.id] = servers[0]
    for (top, vdu), several in _groups(members).items():
        placed |= _in_group(state, _in(state, top, vdu), several)
    return placed


def surplus(state: StackState, members: Iterable[StackMember]) -> set[str]:
    """Servers of groups whose members are all known by theirs, and that are none of them: an undo lets those go.

    One that holds the port of a member was put in its place.
    """
    found = set[str]()
    for (top, vdu), several in _groups(members).items():
        known = {one.server for one in several}
        if None not in known:
            known |= {state.device_of(port) for one in several for port in one.ports}
            found |= {one.id for one in _in(state, top, vdu)} - known
    return found


def _groups(members: Iterable[StackMember]) -> dict[tuple[str | None, str], list[StackMember]]:
    groups: dict[tuple[str | None, str], list[StackMember]] = {}
    for member in members:
        if member.group:
            groups.setdefault((member.top, member.vdu), []).append(member)
    return groups


def _in(state: StackState, top: str | None, vdu: str) -> list[StackResource]:
    """Without a `top` wherever they are: templates of user data name servers after the VDU, or VDU and number."""
    if top is None:
        named = re.compile(f"{re.escape(vdu)}(-[0-9]+)?")
        return [one for one in state.of_type(SERVER) if named.fullmatch(one.name)]
    return [one for one in state.servers_in(top) if len(one.path) == 1 or one.name == vdu]


def _in_group(state: StackState, servers: list[StackResource], members: list[StackMember]) -> dict[str, StackResource]:
    left = {one.id: one for one in sorted(servers, key=lambda one: one.path)}
    placed = {one.id: left.pop(one.server) for one in members if one.server in left}
    for member in members:
        holder = next((on for port in member.ports if (on := state.device_of(port)) in left), None)
        if member.id not in placed and holder is not None:
            placed[member.id] = left.pop(holder)
    tops = {one.path[0]: id_ for id_, one in reversed(left.items())}
    for member in members:  # user data may have made a resource for each: in a group none is called so
        own = tops.get(member.name)
        if member.id not in placed and own in left:
            placed[member.id] = left.pop(own)
    for member in members:
        if member.id not in placed and left:
            placed[member.id] = left.pop(next(iter(left)))
    return placed


def machine_of(state: StackState, member: StackMember, server: StackResource) -> FoundMachine:
    as_known = FoundMachine(
        id=member.id,
        name=member.name,
        vdu=member.vdu,
        resource_id=server.id,
        ready=True,
        zone=member.zone,
        image=member.image,
        flavour=member.flavour,
        ports=tuple(
            FoundPort(id=id_, name=name, resource_id=id_, existing=True) for name, id_ in member.existing_ports.items()
        ),
    )
    machine = _machine(state, server, as_known)
    filled = (replace(one, image=member.volume_images.get(one.name)) for one in machine.volumes)
    return replace(machine, volumes=tuple(filled))
