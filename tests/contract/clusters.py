"""Wanted states for contract tests: a small cluster with a network, a volume and an outside connection."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from slipway.model.machine import Address, Found, Machine, Network, Port, Volume, Wanted

CIDR = "10.10.0.0/24"
FIXED = "10.10.0.5"


@dataclass(frozen=True)
class Cluster:
    """What a driver needs to be told to make machines: its own names for an image, a size, an outside network."""

    image: str | None = None
    flavour: str | None = None
    external_network: str | None = "public"

    def wanted(self, instance_id: str, workers: int = 2) -> Wanted:
        """One master with a volume and a fixed address, and some workers."""
        network = Network(id=f"{instance_id}-net", name="internalVL", cidr=CIDR)
        master = self.machine(instance_id, "masterNode-1", address=FIXED)
        others = (self.machine(instance_id, f"workerNode-{number + 1}") for number in range(workers))
        return Wanted(instance_id=instance_id, networks=(network,), machines=(master, *others))

    def machine(self, instance_id: str, slot: str, address: str | None = None) -> Machine:
        prefix = f"{instance_id}-{slot}"
        inside = Port(id=f"{prefix}-p1", name="CP1", network=f"{instance_id}-net", addresses=_asked(address))
        outside = Port(id=f"{prefix}-p2", name="CP2", external_network=self.external_network)
        return Machine(
            id=f"{prefix}-vnfc",
            name=slot,
            vdu=slot.partition("-")[0],
            image=self.image,
            flavour=self.flavour,
            ports=(inside, outside) if self.external_network else (inside,),
            volumes=(Volume(id=f"{prefix}-vol", name="data", size_bytes=1 << 30),),
        )


def healed(wanted: Wanted, slot: str) -> Wanted:
    """A new machine in the slot, with the ports and volumes of the old one."""
    machines = tuple(
        msgspec.structs.replace(machine, id=f"{machine.id}-healed") if machine.name == slot else machine
        for machine in wanted.machines
    )
    return msgspec.structs.replace(wanted, machines=machines)


def replugged(wanted: Wanted, slot: str, address: str, before: Found | None = None) -> Wanted:
    """Another first port on the machine, with this address; with `before` the machine can be made as it was."""
    old = next(machine for machine in wanted.machines if machine.name == slot)
    first = msgspec.structs.replace(old.ports[0], id=f"{old.ports[0].id}-new", addresses=_asked(address))
    new = msgspec.structs.replace(old, ports=(first, *old.ports[1:]))
    machines = tuple(new if machine.name == slot else machine for machine in wanted.machines)
    there = {port.id: port for port in before.ports} if before else {}
    held = tuple(
        msgspec.structs.replace(port, addresses=there[port.id].addresses, mac=there[port.id].mac)
        for port in old.ports
        if port.id in there
    )
    former = (msgspec.structs.replace(old, ports=held),) if held else ()
    return msgspec.structs.replace(wanted, machines=machines, former=former)


def _asked(address: str | None) -> tuple[Address, ...]:
    return (Address(ip=address),) if address else ()


def nothing(instance_id: str) -> Wanted:
    return Wanted(instance_id=instance_id)


def differences(found: Found, wanted: Wanted) -> list[str]:
    """In words, what a VIM holds otherwise than wanted. Empty when they agree."""
    ports = {port.id for machine in wanted.machines for port in machine.ports}
    volumes = {volume.id for machine in wanted.machines for volume in machine.volumes}
    said = [
        *_differ("networks", [network.id for network in found.networks], {network.id for network in wanted.networks}),
        *_differ("machines", [machine.id for machine in found.machines], {machine.id for machine in wanted.machines}),
        *_differ("ports", [port.id for port in found.ports], ports),
        *_differ("volumes", [volume.id for volume in found.volumes], volumes),
    ]
    there = {machine.id: machine for machine in found.machines}
    for machine in wanted.machines:
        if (stands := there.get(machine.id)) is None:
            continue
        if (stands.name, stands.vdu) != (machine.name, machine.vdu):
            said.append(f"{machine.id} is {stands.name} of {stands.vdu}")
        if not stands.ready:
            said.append(f"{machine.id} is not ready")
        said += _differ(f"ports of {machine.id}", [p.id for p in stands.ports], {p.id for p in machine.ports})
        said += _differ(f"volumes of {machine.id}", [v.id for v in stands.volumes], {v.id for v in machine.volumes})
    return said


def _differ(what: str, found: list[str], wanted: set[str]) -> list[str]:
    if sorted(found) == sorted(wanted):
        return []
    return [f"{what}: found {sorted(found)}, wanted {sorted(wanted)}"]
