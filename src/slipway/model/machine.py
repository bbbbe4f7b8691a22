"""What an instance wants of a VIM, and what a VIM says it has.

Everything has an id that Slipway gives before anything is made, and that a driver writes into the names and labels of
what it makes. So a step finds its own work again after a crash, and nothing is made twice. A heal gives a machine a
new id in the same slot, with the same ports and volumes; then the old id is simply no longer wanted.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Record(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class Network(Record, frozen=True, kw_only=True):
    """An internal virtual link of the VNF: made and removed with it."""

    id: str
    name: str  # the virtual link's name in the VNFD
    cidr: str | None = None


class Port(Record, frozen=True, kw_only=True):
    """Where a machine meets a network: one that is made (`network`), or one that exists (`external_network`)."""

    id: str
    name: str  # the connection point's name in the VNFD
    network: str | None = None  # id of a wanted Network
    external_network: str | None = None  # the VIM's own id of a network
    address: str | None = None  # asked for; the VIM chooses when None
    mac: str | None = None


class Volume(Record, frozen=True, kw_only=True):
    id: str
    name: str  # the storage's name in the VNFD
    size_bytes: int


class Machine(Record, frozen=True, kw_only=True):
    id: str
    name: str  # its slot: VDU and number, as in "workerNode-2"; stays over a heal
    vdu: str
    image: str | None = None
    flavour: str | None = None  # the VIM's name for a size, when the VNFD gives one
    cpus: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    zone: str | None = None
    boot_data: str | None = None
    ports: tuple[Port, ...] = ()
    volumes: tuple[Volume, ...] = ()
    apart_from: tuple[str, ...] = ()  # anti-affinity: names of groups whose members go on different hosts
    together_with: tuple[str, ...] = ()  # affinity: names of groups whose members go on one host


class Wanted(Record, frozen=True, kw_only=True):
    """All an instance should have. Nothing in it: everything goes, after `grace_seconds` to shut down in order."""

    instance_id: str
    grace_seconds: int = 0
    networks: tuple[Network, ...] = ()
    machines: tuple[Machine, ...] = ()
    dependencies: dict[
        str, tuple[str, ...]
    ] = {}  # VDU -> VDUs whose machines are made before, and removed after, its own
    former: tuple[Machine, ...] = ()  # machines that stay and whose ports change, as they were: undo can go back


class FoundNetwork(Record, frozen=True, kw_only=True):
    id: str
    name: str
    resource_id: str


class FoundPort(Record, frozen=True, kw_only=True):
    id: str
    name: str
    resource_id: str
    address: str | None = None
    mac: str | None = None
    network: str | None = None  # a Network's id, or the VIM's own id of one that exists; None when it can't be told


class FoundVolume(Record, frozen=True, kw_only=True):
    id: str
    name: str
    resource_id: str


class FoundMachine(Record, frozen=True, kw_only=True):
    """A VNFC: a machine, or where `type` says so something else that runs, such as a Pod."""

    id: str
    name: str
    vdu: str
    type: str | None = None
    resource_id: str
    ready: bool  # it runs, says the VIM; False while it is being made or is broken
    ports: tuple[FoundPort, ...] = ()
    volumes: tuple[FoundVolume, ...] = ()
    zone: str | None = None
    image: str | None = None  # what it was made from, where the VIM can tell it
    flavour: str | None = None  # and of which size
    host: str | None = None  # the compute host it runs on, where the VIM can tell it
    host_key: str | None = None  # SSH host key, where the VIM can tell it


class FoundObject(Record, frozen=True, kw_only=True):
    """What is neither machine, network nor volume: a Kubernetes object, a Helm release.

    Its id is the VIM's own, or made from its name: the same name with other content is another `digest`.
    """

    id: str
    kind: str
    name: str
    namespace: str | None = None
    api_version: str | None = None
    digest: str | None = None
    ready: bool = True


class Found(Record, frozen=True, kw_only=True):
    """All a VIM holds for an instance, whoever made it and whether or not our records know it."""

    networks: tuple[FoundNetwork, ...] = ()
    machines: tuple[FoundMachine, ...] = ()
    broken: tuple[str, ...] = ()  # ids of machines that do not run, says the VIM, whatever our records say
    volumes: tuple[FoundVolume, ...] = ()  # all, attached or not
    ports: tuple[FoundPort, ...] = ()  # all, plugged or not
    objects: tuple[FoundObject, ...] = ()


class Outcome(Record, frozen=True, kw_only=True):
    """What a step changed. The instance's record is the sum of the outcomes of its steps (lcm/record.py)."""

    networks: tuple[FoundNetwork, ...] = ()
    machines: tuple[FoundMachine, ...] = ()
    objects: tuple[FoundObject, ...] = ()
    removed: tuple[str, ...] = ()  # ids of machines, networks, volumes, ports and objects that are gone
    instance: dict[str, Any] = {}  # a merge patch for the instance (RFC 7396), from management drivers
    data: dict[str, Any] = {}  # for the steps that come after
