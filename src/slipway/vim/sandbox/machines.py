"""Machines: containers with systemd and SSH, made from a machine's ports and volumes and found again by its id.

Everything here is called under the lock on the machine's id. A container that never started is worth nothing,
because it may lack its seed: it is made anew. One that has started keeps its root, and is only started again.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import FoundMachine, Machine
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox import labels
from slipway.vim.sandbox.disks import disk_table
from slipway.vim.sandbox.engine import Engine, Thing
from slipway.vim.sandbox.keys import new_key
from slipway.vim.sandbox.labels import engine_name
from slipway.vim.sandbox.networks import Wire
from slipway.vim.sandbox.records import PORT, Record
from slipway.vim.sandbox.seed import ADDRESSES, DISKS, HOST_KEY, Files, archive
from slipway.vim.sandbox.specification import Endpoint, Specification

DEFAULT_IMAGE = "machine"
INIT = "/usr/local/sbin/init"
NEVER_STARTED = frozenset({"created", "configured", "initialized", "removing", "dead"})
# Not --privileged: systemd inside would write the real machine's sysctls and see its devices. These are what systemd,
# mounts, nested containers and keepalived need.
CAPABILITIES = (
    "SYS_ADMIN", "NET_ADMIN", "NET_RAW", "MKNOD", "SYS_PTRACE", "SYS_NICE", "IPC_LOCK", "DAC_READ_SEARCH",
    "NET_BROADCAST", "AUDIT_WRITE", "SYS_BOOT", "SYSLOG",
)  # fmt: skip
DEVICES = ("/dev/fuse", "/dev/net/tun", "/dev/kmsg")
OWN_DISK = ("/var/lib/containerd", "/var/lib/docker", "/var/lib/kubelet")  # an overlay does not lie on an overlay


@dataclass(frozen=True)
class Parts:
    """What a machine is made of, in the order in which it has them."""

    ports: list[Record]
    disks: list[Record]
    wires: dict[str, Wire]  # by the port's id

    @property
    def held(self) -> list[Record]:
        return [*self.ports, *self.disks]


def status(container: Thing) -> str:
    return str(container["State"]["Status"]).lower()


def is_ready(container: Thing) -> bool:
    return status(container) == "running"


def found_machine(container: Thing, held: list[Record]) -> FoundMachine:
    """From the container and the records it holds, by id: the same whoever looks."""
    text = labels.of(container)
    mine = sorted(held, key=lambda record: record.id)
    return FoundMachine(
        id=text[labels.ID],
        name=text[labels.NAME],
        vdu=text[labels.VDU],
        resource_id=str(container["Id"]),
        ready=is_ready(container),
        ports=tuple(record.found_port() for record in mine if record.kind == PORT),
        volumes=tuple(record.found_volume() for record in mine if record.kind != PORT),
        zone=text.get(labels.ZONE) or None,
        host=platform.node() or None,
        host_key=text[labels.HOST_KEY],
        image=text.get(labels.IMAGE) or None,
        flavour=text.get(labels.FLAVOUR) or None,
    )


def existing_container(engine: Engine, machine_id: str, instance_id: str) -> Thing | None:
    """The machine's container, unless it never came to life. Refuses another instance's."""
    container = engine.container(engine_name("machine", machine_id))
    if container is None:
        return None
    owner = labels.of(container).get(labels.INSTANCE)
    if owner != instance_id:
        raise VimError(f"Machine {machine_id} belongs to another instance, {owner}.", VimFault.PERMANENT)
    return container


def make(engine: Engine, machine: Machine, image: str, maker: Maker, parts: Parts, logins: Files) -> None:
    """A new container: created, plugged and seeded. Only then may it be started."""
    name, key = engine_name("machine", machine.id), new_key()
    engine.create_container(_specification(machine, image, maker, parts, key.public))
    engine.put(name, archive({HOST_KEY: key.private, **logins, **_surroundings(parts)}))
    for record in parts.held:
        record.give_to(machine.id)


def complete(engine: Engine, container: Thing, machine_id: str, parts: Parts) -> None:
    """Give a machine that exists what it lacks. It may be started then."""
    name = engine_name("machine", machine_id)
    plugged = (container.get("NetworkSettings") or {}).get("Networks") or {}
    for port in parts.ports:
        wire = parts.wires[port.id]
        if wire.engine_name not in plugged:
            engine.connect(name, _endpoint(port, wire))
    new_disks = [disk for disk in parts.disks if disk.said_holder() != machine_id]
    running = is_ready(container)
    if new_disks or not running:
        engine.put(name, archive(_surroundings(parts)))
    if running and new_disks:
        refresh_disks(engine, name)
    for record in parts.held:
        record.give_to(machine_id)


def take_disks(engine: Engine, machine_id: str, left: list[Record]) -> None:
    """Let a running machine see only the disks that are left."""
    name = engine_name("machine", machine_id)
    container = engine.container(name)
    if container is not None:
        engine.put(name, archive({DISKS: disk_table(left)}))
        if is_ready(container):
            refresh_disks(engine, name)


def refresh_disks(engine: Engine, name: str) -> None:
    code, said = engine.execute(name, ["/usr/local/sbin/slipway-disks"])
    if code:
        raise VimError(f"The disks of {name} could not be changed: {said.strip()}.", VimFault.TEMPORARY)


def _endpoint(port: Record, wire: Wire) -> Endpoint:
    return Endpoint(wire.engine_name, wire.for_engine(port.labels[labels.ADDRESS]), port.labels[labels.MAC])


def _surroundings(parts: Parts) -> dict[str, bytes]:
    """What may differ from one start to the next: numbers of loop devices, addresses that the engine doesn't know."""
    lines = [
        f"{port.labels[labels.MAC]} {port.labels[labels.ADDRESS]}/{parts.wires[port.id].cidr.prefixlen}\n"
        for port in parts.ports
        if parts.wires[port.id].isolated
    ]
    return {DISKS: disk_table(parts.disks), ADDRESSES: "".join(lines).encode()}


def _specification(machine: Machine, image: str, maker: Maker, parts: Parts, host_key: str) -> Specification:
    name = engine_name("machine", machine.id)
    asked = {"zone": machine.zone or "", "image": machine.image or "", "flavour": machine.flavour or ""}
    more = {"vdu": machine.vdu, "host_key": host_key, **asked}
    return Specification(
        name=name,
        image=image,
        hostname=labels.hostname(machine.name),
        command=INIT,
        labels=labels.labels("machine", machine.id, machine.name, maker, **more),
        environment={"SLIPWAY_CGROUP": name},
        capabilities=CAPABILITIES,
        devices=tuple(device for device in DEVICES if Path(device).exists()),
        own_disks=OWN_DISK,
        endpoints=tuple(_endpoint(port, parts.wires[port.id]) for port in parts.ports),
    )
