"""What steps do on one engine, in blocking calls: look, make what is missing, answer what is there.

Locks order everything: the one on a machine's id, and inside it, one at a time, those on ranges (addresses, networks,
loop devices) and on the firewall, which all engines of a host share. They are between processes, so that two workers
with the same step make its thing once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Found, FoundMachine, FoundNetwork, FoundVolume, Machine, Network
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox import disks, labels, machines, networks, records, seed
from slipway.vim.sandbox.cgroups import remove_cgroups
from slipway.vim.sandbox.connection import Access
from slipway.vim.sandbox.engine import Engine, Thing
from slipway.vim.sandbox.keys import login_key
from slipway.vim.sandbox.labels import engine_name
from slipway.vim.sandbox.locks import Locks
from slipway.vim.sandbox.machines import Parts, found_machine
from slipway.vim.sandbox.networks import Wire
from slipway.vim.sandbox.paths import SandboxPaths
from slipway.vim.sandbox.ports import ensure_port, wires
from slipway.vim.sandbox.records import PORT, VOLUME, Record

RANGES = "addresses and ranges"
FIREWALL = "the host's firewall"


@dataclass(frozen=True)
class EngineOperations:
    engine: Engine
    locks: Locks
    paths: SandboxPaths

    def find(self, instance_id: str) -> Found:
        """All that carries the instance's label."""
        mine = {labels.INSTANCE: instance_id}
        held = records.all_of(self.engine, instance_id)
        listed = [self.engine.container(str(one["Id"])) for one in self.engine.containers(mine)]
        containers = [one for one in listed if one is not None]
        found = [found_machine(one, _held_by(held, labels.of(one)[labels.ID])) for one in containers]
        there = [networks.found_network(thing) for thing in self.engine.networks(mine)]
        return Found(
            networks=tuple(sorted(there, key=lambda network: (network.name, network.id))),
            machines=tuple(sorted(found, key=lambda machine: (machine.name, machine.id))),
            ports=tuple(record.found_port() for record in held if record.kind == PORT),
            volumes=tuple(record.found_volume() for record in held if record.kind == VOLUME),
        )

    def make_network(self, network: Network, maker: Maker) -> FoundNetwork:
        with self.locks.hold(RANGES):
            return networks.ensure_network(self.engine, network, maker)

    def remove_network(self, network_id: str, maker: Maker, *, own: bool = False) -> bool:
        """Whether it is gone now. `own`: only when this operation made it."""
        name = engine_name("network", network_id)
        with self.locks.hold(RANGES):
            thing = self.engine.network(name)
            if thing is None or labels.of(thing).get(labels.INSTANCE) != maker.instance_id:
                return True
            if own and labels.of(thing).get(labels.OPERATION) != maker.operation_id:
                return False
            if used := len(self.engine.volumes({labels.KIND: PORT, labels.NETWORK: name})):
                raise VimError(f"Network {network_id} is in use by {used} ports.", VimFault.TEMPORARY)
            networks.remove_network(self.engine, thing)
        return True

    def make_machine(self, machine: Machine, maker: Maker, access: Access) -> FoundMachine:
        """There, whole and started; whether SSH answers yet is for the caller to see."""
        with self.locks.hold(self._lock(machine.id)):
            container = self._existing(machine, maker)
            image = self._image(machine) if container is None else ""
            parts = self._parts(machine, maker)
            if container is None:
                machines.make(self.engine, machine, image, maker, parts, self._logins(machine, access))
            elif not machines.is_ready(container) or any(one.said_holder() != machine.id for one in parts.held):
                machines.complete(self.engine, container, machine.id, parts)
            self._run(engine_name("machine", machine.id))
            return self._found(machine.id, maker, parts.held)

    def look(self, machine: Machine, maker: Maker) -> FoundMachine | None:
        container = machines.existing_container(self.engine, machine.id, maker.instance_id)
        return None if container is None else found_machine(container, self._held(machine))

    def remove_machine(self, machine_id: str, maker: Maker, *, own: bool = False, grace: int = 0) -> bool:
        """The machine goes; its ports and volumes stay. Whether it is gone; `own`: only the operation's."""
        name = engine_name("machine", machine_id)
        with self.locks.hold(self._lock(machine_id), seconds=60.0 + grace):
            container = self.engine.container(name)
            if container is None or labels.of(container).get(labels.INSTANCE) != maker.instance_id:
                return True
            if own and labels.of(container).get(labels.OPERATION) != maker.operation_id:
                return False
            if grace and machines.is_ready(container):
                self.engine.stop(name, grace)
            with self.locks.hold(FIREWALL):
                self.engine.remove_container(name)
            remove_cgroups(name)
        return True

    def remove_held(
        self, kind: str, ids: Iterable[str], maker: Maker, *, held_by: str | None = None, own: bool = False
    ) -> list[str]:
        """Remove what no machine holds, or `held_by` does; with `own` the operation's only. Answers which are gone."""
        gone = []
        for id_ in ids:
            record = records.read(self.engine, kind, id_)
            if record is not None:
                if not record.belongs_to(maker.instance_id) or (own and not record.made_by(maker.operation_id)):
                    continue
                if (holder := record.holder()) not in (None, held_by):
                    continue
                if holder is not None:
                    self._take_off(record, holder)
                self._erase(record)
            gone.append(id_)
        return gone

    def release(self, kind: str, ids: Iterable[str], machine_id: str) -> None:
        """Take ports or volumes off a machine and keep them."""
        for id_ in ids:
            record = records.read(self.engine, kind, id_)
            if record is not None and record.said_holder() == machine_id:
                self._take_off(record, machine_id)

    def retain_volumes(self, ids: Iterable[str], maker: Maker) -> list[FoundVolume]:
        """Leave them to people: the file stays, and no instance has it."""
        found = [record for id_ in ids if (record := records.read(self.engine, VOLUME, id_))]
        own = [record for record in found if record.belongs_to(maker.instance_id)]
        for record in own:
            with self.locks.hold(RANGES):
                disks.detach(record)
            record.retain()
        return [record.found_volume() for record in own]

    def ways(self, machine: Machine | FoundMachine) -> list[tuple[Wire, str]]:
        """The machine's networks, with its address on each."""
        held = [record for record in self._held(machine) if record.kind == PORT]
        known = wires(self.engine, held)
        return [(known[record.id], record.labels[labels.ADDRESS]) for record in held]

    def holder(self, kind: str, id_: str) -> str | None:
        record = records.read(self.engine, kind, id_)
        return None if record is None else record.holder()

    def _lock(self, machine_id: str) -> str:
        return f"machine {machine_id} on {self.engine.url}"

    def _run(self, name: str) -> None:
        container = self.engine.container(name)
        if container is None or machines.is_ready(container):
            return
        with self.locks.hold(FIREWALL):
            if machines.status(container) == "paused":
                self.engine.unpause(name)
            else:
                self.engine.start(name)

    def _existing(self, machine: Machine, maker: Maker) -> Thing | None:
        """The machine's container if it is worth keeping; else it goes."""
        container = machines.existing_container(self.engine, machine.id, maker.instance_id)
        if container is not None and machines.status(container) in machines.NEVER_STARTED:
            self.engine.remove_container(engine_name("machine", machine.id))
            return None
        return container

    def _parts(self, machine: Machine, maker: Maker) -> Parts:
        with self.locks.hold(RANGES):
            held_ports = [ensure_port(self.engine, port, machine, maker) for port in machine.ports]
            held_disks = [disks.ensure_disk(self.engine, volume, maker) for volume in machine.volumes]
            for record in (*held_ports, *held_disks):
                if (holder := record.holder()) not in (None, machine.id):
                    raise VimError(
                        f"The {record.kind} {record.name} ({record.id}) for {machine.name} is held by {holder}.",
                        VimFault.PERMANENT,
                        cure="remove that machine first.",
                    )
            for disk in held_disks:
                disks.loop_of(disk)
        return Parts(held_ports, held_disks, wires(self.engine, held_ports))

    def _image(self, machine: Machine) -> str:
        from slipway.vim.sandbox.image.engine_images import find_image  # all that makes images comes with it

        return find_image(self.engine, self.paths, self.locks, machine.image or machines.DEFAULT_IMAGE)

    def _logins(self, machine: Machine, access: Access) -> dict[str, bytes]:
        with self.locks.hold("login key"):
            own = login_key(self.paths.key)
        return seed.login_files(access, own, machine.boot_data)

    def _found(self, machine_id: str, maker: Maker, held: list[Record]) -> FoundMachine:
        container = machines.existing_container(self.engine, machine_id, maker.instance_id)
        if container is None:
            raise VimError(f"Machine {machine_id} vanished while it was made.", VimFault.TEMPORARY)
        return found_machine(container, held)

    def _held(self, machine: Machine | FoundMachine) -> list[Record]:
        """Of what the machine should hold, what it does."""
        wanted = [(PORT, port.id) for port in machine.ports] + [(VOLUME, volume.id) for volume in machine.volumes]
        read = (records.read(self.engine, kind, id_) for kind, id_ in wanted)
        return [record for record in read if record is not None and record.said_holder() == machine.id]

    def _take_off(self, record: Record, machine_id: str) -> None:
        if record.kind == PORT:
            self.engine.disconnect(engine_name("machine", machine_id), record.labels[labels.NETWORK])
        record.give_to(None)
        if record.kind == VOLUME:
            left = records.all_of(self.engine, record.labels[labels.INSTANCE])
            staying = [one for one in _held_by(left, machine_id) if one.kind == VOLUME]
            machines.take_disks(self.engine, machine_id, staying)

    def _erase(self, record: Record) -> None:
        if record.kind == VOLUME:
            with self.locks.hold(RANGES):
                disks.detach(record)
        self.engine.remove_volume(record.engine_name)


def _held_by(held: list[Record], machine_id: str) -> list[Record]:
    return [record for record in held if record.said_holder() == machine_id]
