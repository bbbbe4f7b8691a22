"""Machines, networks, ports and volumes: as an instance should have them, and as a VIM reports them.

Everything has an id that Slipway gives before anything is made, and that a driver writes into the names and labels of
what it makes. So a step finds its own work again after a crash, and nothing is made twice. A heal gives a machine a
new id in the same slot, with the same ports and volumes; then the old id is simply no longer wanted.
"""

from __future__ import annotations

from typing import Any

import msgspec

PREREQUISITE = "prerequisite/"  # begins the id of an object that was there already: it is not ours to remove


class MachineStruct(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class Network(MachineStruct, frozen=True, kw_only=True):
    """An internal virtual link of the VNF: made and removed with it."""

    id: str
    name: str  # the virtual link's name in the VNFD
    cidr: str | None = None


class Address(MachineStruct, frozen=True, kw_only=True):
    """Of a port. What is asked for and None is for the VIM to choose; what it has and None the VIM doesn't tell."""

    ip: str | None = None
    subnet: str | None = None  # the VIM's own id


class Port(MachineStruct, frozen=True, kw_only=True):
    """Where a machine meets a network: one that is made (`network`), or one that exists (`external_network`).

    `existing`: the VIM's own id of a port that exists. It is used, and neither made nor removed.
    """

    id: str
    name: str  # the connection point's name in the VNFD
    network: str | None = None  # id of a wanted Network
    external_network: str | None = None  # the VIM's own id of a network
    addresses: tuple[Address, ...] = ()  # asked for; without any it is one, of the VIM's choice
    mac: str | None = None
    vnic_type: str | None = None
    existing: str | None = None

    @property
    def address(self) -> str | None:
        """For VIMs that give a port one."""
        return self.addresses[0].ip if self.addresses else None


class Volume(MachineStruct, frozen=True, kw_only=True):
    id: str
    name: str  # the storage's name in the VNFD
    size_bytes: int
    image: str | None = None  # what it is filled with when it is made, when the VNFD says so


class Machine(MachineStruct, frozen=True, kw_only=True):
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
    metadata: dict[str, str] = {}
    ports: tuple[Port, ...] = ()
    volumes: tuple[Volume, ...] = ()


class Wanted(MachineStruct, frozen=True, kw_only=True):
    """All an instance should have. Nothing in it: everything goes, after `grace_seconds` to shut down in order."""

    instance_id: str
    grace_seconds: int = 0
    networks: tuple[Network, ...] = ()
    machines: tuple[Machine, ...] = ()
    dependencies: dict[
        str, tuple[str, ...]
    ] = {}  # VDU -> VDUs whose machines are made before, and removed after, its own
    retained: tuple[str, ...] = ()  # ids of volumes that stay, and are the instance's no more
    former: tuple[Machine, ...] = ()  # machines whose ports change or that others replace, as they were: undo goes back


class FoundNetwork(MachineStruct, frozen=True, kw_only=True):
    id: str
    name: str
    resource_id: str


class FoundPort(MachineStruct, frozen=True, kw_only=True):
    id: str
    name: str
    resource_id: str
    addresses: tuple[Address, ...] = ()
    mac: str | None = None
    network: str | None = None  # a Network's id, or the VIM's own id of one that exists; None when it can't be told
    floating: dict[str, str] = {}  # floating IPs that lead to it, by their names in the VIM's template
    existing: bool = False  # it was there before the VNF, and stays

    @property
    def address(self) -> str | None:
        """The first: the one that it is called by."""
        return self.addresses[0].ip if self.addresses else None


class FoundVolume(MachineStruct, frozen=True, kw_only=True):
    id: str
    name: str
    resource_id: str
    image: str | None = None  # what it was filled with, where that is known
    left_by: str | None = None  # the slot whose machine had it, in a record where that is gone


class FoundMachine(MachineStruct, frozen=True, kw_only=True):
    """A VNFC: a machine, a pod. `type` is what its VIM calls it ("OS::Nova::Server", "Pod"): vimLevelResourceType."""

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
    host_key: str | None = None  # SSH host key, where the VIM can tell it, or as the first contact showed it

    def with_learnt_key(self, resource_id: str, host_key: str | None) -> FoundMachine:
        """With the key that the VIM's machine of this id has shown: a VIM that can't tell keys reports machines again,
        and what was learnt of them is not forgotten."""
        if self.host_key is not None or self.resource_id != resource_id:
            return self
        return msgspec.structs.replace(self, host_key=host_key)


class FoundObject(MachineStruct, frozen=True, kw_only=True):
    """What is neither machine, network nor volume: a Kubernetes object, a Helm release.

    Its id is the VIM's own, or made from its name: the same name with other content is another `digest`.
    """

    id: str
    kind: str
    name: str
    namespace: str | None = None
    api_version: str | None = None
    digest: str | None = None
    fields: str | None = None  # a digest of which fields Slipway set there and nobody else has set since; a revision
    vdu: str | None = None  # that it is, where the VIM can tell it
    ready: bool = True
    expires: bool = False  # it goes by itself once it has ended


class Found(MachineStruct, frozen=True, kw_only=True):
    """All a VIM holds for an instance, whoever made it and whether or not our records know it."""

    networks: tuple[FoundNetwork, ...] = ()
    machines: tuple[FoundMachine, ...] = ()
    broken: tuple[str, ...] = ()  # ids of machines that do not run, says the VIM, whatever our records say
    volumes: tuple[FoundVolume, ...] = ()  # all, attached or not
    ports: tuple[FoundPort, ...] = ()  # all, plugged or not
    objects: tuple[FoundObject, ...] = ()

    @property
    def own_ids(self) -> set[str]:
        """Without what was there before: of that a driver may only repeat what the record says."""
        return {id_ for id_ in self.ids if not id_.startswith(PREREQUISITE)}

    @property
    def ids(self) -> set[str]:
        """Of everything, what machines hold included."""
        ids = {one.id for one in self.networks} | {one.id for one in self.objects}
        ids |= {one.id for one in self.ports} | {one.id for one in self.volumes}
        for machine in self.machines:
            ids |= {machine.id, *(one.id for one in machine.ports), *(one.id for one in machine.volumes)}
        return ids


class Outcome(MachineStruct, frozen=True, kw_only=True):
    """What a step changed. The instance's record is the sum of the outcomes of its steps (lcm/record.py)."""

    networks: tuple[FoundNetwork, ...] = ()
    machines: tuple[FoundMachine, ...] = ()
    ports: tuple[
        FoundPort, ...
    ] = ()  # that no machine holds: those of a template beyond the VNFD, like a shared address
    objects: tuple[FoundObject, ...] = ()
    removed: tuple[str, ...] = ()  # ids of machines, networks, volumes, ports and objects that are gone
    instance: dict[str, Any] = {}  # a merge patch for the instance (RFC 7396), from management drivers
    data: dict[str, Any] = {}  # for the steps that come after
