"""What an instance should have at given scale levels: kept members keep their ids, new ones get new ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from slipway.model.descriptor import ConnectionPoint, Level, Vdu
from slipway.model.instance import CpConfig, ExtVirtualLink, InstantiatedVnfInfo, VnfcResourceInfo
from slipway.model.machine import Machine, Network, Port, Volume, Wanted
from slipway.model.situation import Situation


@dataclass(frozen=True)
class Renewal:
    """What is made anew: machines by VNFC id, and with `everything` also what hangs on them; single ports by id."""

    machines: Collection[str] = ()
    everything: bool = False
    ports: Collection[str] = ()


def wanted_at(
    situation: Situation,
    scale: dict[str, int],
    level: Level,
    ext_links: Iterable[ExtVirtualLink],
    renewal: Renewal = Renewal(),  # noqa: B008 - frozen
) -> Wanted:
    builder = _Builder(situation, tuple(ext_links), renewal)
    return Wanted(
        instance_id=situation.instance.vnf.id,
        networks=tuple(builder.networks.values()),
        machines=tuple(
            machine
            for name, vdu in situation.flavour.vdus.items()
            if not vdu.container
            for machine in builder.members(vdu, situation.flavour.members(name, scale, level))
        ),
        dependencies=situation.flavour.dependencies(),
    )


def slot_of(vnfc: VnfcResourceInfo) -> int:
    return int(vnfc.metadata["slot"])


class _Builder:
    def __init__(self, situation: Situation, ext_links: tuple[ExtVirtualLink, ...], renewal: Renewal) -> None:
        self.situation = situation
        self.flavour = situation.flavour
        self.renewal = renewal
        self.ext_links = ext_links
        self.networks = self._networks(situation.instance.vnf.instantiated_vnf_info)

    def members(self, vdu: Vdu, count: int) -> list[Machine]:
        """Those in the lowest slots stay; the lowest free slots are filled."""
        info = self.situation.instance.vnf.instantiated_vnf_info
        there = {slot_of(vnfc): vnfc for vnfc in (info.vnfc_resource_info if info else ()) if vnfc.vdu_id == vdu.name}
        slots = sorted(there)[:count]
        free = (slot for slot in range(len(there) + count) if slot not in there)
        slots += [next(free) for _ in range(count - len(slots))]
        return [self._machine(vdu, slot, there.get(slot)) for slot in sorted(slots)]

    def _machine(self, vdu: Vdu, slot: int, old: VnfcResourceInfo | None) -> Machine:
        name = f"{vdu.name}-{slot}"
        renewed = old is None or old.id in self.renewal.machines
        made_from = {} if renewed or old is None else old.metadata  # what stands is not made again
        return Machine(
            id=self.situation.new_id("machine", name) if renewed or old is None else old.id,
            name=name,
            vdu=vdu.name,
            image=made_from.get("image", vdu.image.name if vdu.image else None),
            flavour=made_from.get("flavour", vdu.flavour),
            cpus=vdu.cpus,
            memory_bytes=vdu.memory_bytes,
            disk_bytes=vdu.disk_bytes,
            boot_data=vdu.boot_data,
            zone=old.zone_id if old else None,
            ports=tuple(self._port(cp, slot, name, old) for cp in self._points(vdu)),
            volumes=tuple(self._volume(storage, name, old) for storage in vdu.storages if self._is_block(storage)),
            apart_from=tuple(rule.name for rule in self.flavour.placement if rule.apart and vdu.name in rule.targets),
            together_with=tuple(
                rule.name for rule in self.flavour.placement if not rule.apart and vdu.name in rule.targets
            ),
        )

    def _points(self, vdu: Vdu) -> list[ConnectionPoint]:
        points = (cp for cp in self.flavour.connection_points.values() if cp.vdu == vdu.name)
        return sorted(points, key=lambda cp: (cp.order, cp.name))

    def _port(self, cp: ConnectionPoint, slot: int, machine: str, old: VnfcResourceInfo | None) -> Port:
        kept = next((info.id for info in old.vnfc_cp_info if info.cpd_id == cp.name), None) if old else None
        renewed = kept in self.renewal.ports or self._renews(old)
        link, config = self._outside(cp.name, slot)
        address, mac = _asked(config)
        network = self.networks.get(cp.virtual_link or "")
        return Port(
            id=kept if kept and not renewed else self.situation.new_id("port", machine, cp.name),
            name=cp.name,
            network=network.id if network and link is None else None,
            external_network=link.resource_id if link else None,
            address=address,
            mac=mac,
        )

    def _outside(self, cp_name: str, slot: int) -> tuple[ExtVirtualLink | None, CpConfig | None]:
        """The network that the request connects the CP to, and the slot's own part of the CP's configuration."""
        for link in self.ext_links:
            for data in link.ext_cps:
                if data.cpd_id == cp_name:
                    # In the order of their names: no database has to keep the order of an object's members.
                    configs = [config for _, config in sorted(data.cp_config.items())]
                    return link, configs[slot] if slot < len(configs) else None
        return None, None

    def _volume(self, storage: str, machine: str, old: VnfcResourceInfo | None) -> Volume:
        info = self.situation.instance.vnf.instantiated_vnf_info
        known = info.virtual_storage_resource_info if info and old else ()
        held = old.storage_resource_ids if old else ()
        kept = next((s.id for s in known if s.virtual_storage_desc_id == storage and s.id in held), None)
        return Volume(
            id=kept if kept and not self._renews(old) else self.situation.new_id("volume", machine, storage),
            name=storage,
            size_bytes=self.flavour.storages[storage].size_bytes,
        )

    def _is_block(self, storage: str) -> bool:
        return self.flavour.storages[storage].kind == "block"

    def _renews(self, old: VnfcResourceInfo | None) -> bool:
        return self.renewal.everything and old is not None and old.id in self.renewal.machines

    def _networks(self, info: InstantiatedVnfInfo | None) -> dict[str, Network]:
        known = {link.vnf_virtual_link_desc_id: link.id for link in info.vnf_virtual_link_resource_info} if info else {}
        all_new = (
            self.renewal.everything and info is not None and len(self.renewal.machines) == len(info.vnfc_resource_info)
        )
        return {
            name: Network(
                id=known[name] if name in known and not all_new else self.situation.new_id("network", name),
                name=name,
                cidr=link.cidr,
            )
            for name, link in self.flavour.virtual_links.items()
        }


def _asked(config: CpConfig | None) -> tuple[str | None, str | None]:
    """The first address and MAC that a CP configuration asks for."""
    for data in config.cp_protocol_data if config else ():
        if ethernet := data.ip_over_ethernet:
            fixed = [address for ips in ethernet.ip_addresses for address in ips.fixed_addresses]
            return (fixed[0] if fixed else None), ethernet.mac_address
    return None, None
