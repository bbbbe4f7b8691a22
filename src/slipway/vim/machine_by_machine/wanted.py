"""From a target to machines, networks, ports and volumes: the wanted value of drivers that make them one by one.

Members that stay keep what they hold. A renewed one gets the ports and volumes of the machine whose slot it takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from slipway.model.connectivity import asked_addresses, asked_mac, link_port
from slipway.model.descriptor import ConnectionPoint, Flavour, Vdu
from slipway.model.grant import ResourceType
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.machine import FoundMachine, FoundVolume, Machine, Network, Port, Volume, Wanted
from slipway.model.target import Change, VimResource, VnfcMember, VnfTarget
from slipway.vim.machine_by_machine.moved_ports import as_they_were, moved_ports, ports_of


def wanted_of(change: Change) -> Wanted:
    if change.after is None:
        dependencies = change.before.flavour.dependencies() if change.before else {}
        return Wanted(
            instance_id=change.instance_id,
            grace_seconds=change.grace_seconds,
            dependencies=dependencies,
            retained=tuple(sorted(change.retained)),
        )
    after = _wanted(change, change.after)
    if change.before is None or not (change.reconnects or change.renewal.reversible):
        return after
    there, before = ports_of(change.inventory.machines), _wanted(change, change.before)
    if change.renewal.reversible:
        return replace(after, former=as_they_were(there, before, change.renewal.members))
    moved = moved_ports(there, before, after)
    holders = {machine.id for machine in before.machines if any(port.id in moved for port in machine.ports)}
    return replace(_wanted(change, change.after, moved), former=as_they_were(there, before, holders))


def resources(wanted: Wanted) -> Iterator[VimResource]:
    for machine in wanted.machines:
        yield VimResource(id=machine.id, type=ResourceType.COMPUTE, template=machine.vdu)
        for port in machine.ports:
            yield VimResource(id=port.id, type=ResourceType.LINKPORT, template=port.name, of=machine.id)
        for volume in machine.volumes:
            yield VimResource(id=volume.id, type=ResourceType.STORAGE, template=volume.name, of=machine.id)
    for network in wanted.networks:
        yield VimResource(id=network.id, type=ResourceType.VL, template=network.name)


def _wanted(change: Change, target: VnfTarget, new_ports: Collection[str] = ()) -> Wanted:
    builder = _Builder(change, target, new_ports)
    return Wanted(
        instance_id=change.instance_id,
        networks=tuple(builder.networks.values()),
        machines=tuple(builder.machine(member) for member in target.members),
        dependencies=target.flavour.dependencies(),
    )


class _Builder:
    """`new_ports`: ids of ports that others take the place of."""

    def __init__(self, change: Change, target: VnfTarget, new_ports: Collection[str]) -> None:
        self.change, self.target, self.flavour = change, target, target.flavour
        self.new_ports = new_ports
        self.there = {machine.name: machine for machine in change.inventory.machines}
        self.networks = self._networks()

    def machine(self, member: VnfcMember) -> Machine:
        vdu, old = self.flavour.vdus[member.vdu], self.there.get(member.name)
        stays = old is not None and old.id == member.id
        image, size, zone = vdu.image.name if vdu.image else None, vdu.flavour, old.zone if old else None
        if old is not None and stays:  # what stands is not made again
            image, size = old.image or image, old.flavour or size
        else:
            zone = self.target.zones.get(member.id) or zone
            image, size = self.target.images.get(vdu.name) or image, self.target.flavours.get(vdu.name) or size
        return Machine(
            id=member.id,
            name=member.name,
            vdu=vdu.name,
            image=image,
            flavour=size,
            cpus=vdu.cpus,
            memory_bytes=vdu.memory_bytes,
            disk_bytes=vdu.disk_bytes,
            boot_data=vdu.boot_data,
            metadata=vdu.metadata,
            zone=zone,
            ports=tuple(self._port(cp, member, old) for cp in self._points(vdu)),
            volumes=tuple(self._volume(name, member, old) for name in vdu.storages if self._is_block(name)),
        )

    def _points(self, vdu: Vdu) -> list[ConnectionPoint]:
        points = (cp for cp in self.flavour.connection_points.values() if cp.vdu == vdu.name)
        return sorted(points, key=lambda cp: (cp.order, cp.name))

    def _port(self, cp: ConnectionPoint, member: VnfcMember, old: FoundMachine | None) -> Port:
        kept = next((port.id for port in old.ports if port.name == cp.name), None) if old else None
        renewed = kept in self.new_ports or self._renews(old)
        link, asked = self._outside(cp.name)
        network = self.networks.get(cp.virtual_link or "")
        given = link.resource_id if link else self.target.managed_networks.get(cp.virtual_link or "")
        existing = link_port(link, asked, member.slot) if link and asked else None
        return Port(
            id=kept if kept and not renewed else self.change.new_id("port", member.name, cp.name),
            name=cp.name,
            network=network.id if network and link is None else None,
            external_network=given,
            addresses=asked_addresses(asked, member.slot) if asked else (),
            mac=asked_mac(asked, member.slot) if asked else None,
            vnic_type=cp.vnic_type,
            existing=existing.resource_handle.resource_id if existing else None,
        )

    def _outside(self, cp_name: str) -> tuple[ExtVirtualLink | None, VnfExtCpData | None]:
        """The network that the request connects the CP to, and how."""
        found = ((link, data) for link in self.target.links for data in link.ext_cps if data.cpd_id == cp_name)
        return next(found, (None, None))

    def _volume(self, storage: str, member: VnfcMember, old: FoundMachine | None) -> Volume:
        there = next((volume for volume in self._volumes_of(member, old) if volume.name == storage), None)
        kept = there if there and not self._renews(old) else None
        image = _image_of(self.flavour, storage)
        if kept and kept.image and not self._is_filled_anew(storage, member):
            image = kept.image
        return Volume(
            id=kept.id if kept else self.change.new_id("volume", member.name, storage),
            name=storage,
            size_bytes=self.flavour.storages[storage].size_bytes,
            image=image,
        )

    def _volumes_of(self, member: VnfcMember, old: FoundMachine | None) -> tuple[FoundVolume, ...]:
        """Those of a machine that a heal removed, and put no other in its place, wait for the next in its slot."""
        if old is not None:
            return old.volumes
        left = (volume for volume in self.change.inventory.volumes if volume.left_by == member.name)
        return () if self._renews_all() else tuple(left)

    def _is_filled_anew(self, storage: str, member: VnfcMember) -> bool:
        """Whether a change of package makes the machine anew, and has another image for the volume."""
        before = self.change.before
        if before is None or not self.change.renewal.reversible or member in before.members:
            return False
        return _image_of(before.flavour, storage) != _image_of(self.flavour, storage)

    def _is_block(self, storage: str) -> bool:
        return self.flavour.storages[storage].kind == "block"

    def _renews(self, old: FoundMachine | None) -> bool:
        """Whether what hangs on the machine goes with it."""
        return self.change.renewal.everything and old is not None and old.id in self.change.renewal.members

    def _renews_all(self) -> bool:
        renewal = self.change.renewal
        return renewal.everything and renewal.members >= {machine.id for machine in self.change.inventory.machines}

    def _networks(self) -> dict[str, Network]:
        """Of internal links, but for those whose networks exist."""
        known = {network.name: network.id for network in self.change.inventory.networks}
        all_new = self._renews_all()
        return {
            name: Network(
                id=known[name] if name in known and not all_new else self.change.new_id("network", name),
                name=name,
                cidr=link.cidr,
            )
            for name, link in self.flavour.virtual_links.items()
            if name not in self.target.managed_networks
        }


def _image_of(flavour: Flavour, storage: str) -> str | None:
    described = flavour.storages.get(storage)
    return described.image.name if described and described.image else None
