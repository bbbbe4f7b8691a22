"""From found to wanted, one step for each machine: networks first, removals before what takes their place.

Pure. A found machine that isn't wanted goes, with those of its ports and volumes that are not wanted; a wanted one that
isn't there, isn't ready or lacks something is made, after whatever holds its slot, ports, volumes or addresses is gone,
and after the machines of the VDUs that its own VDU depends on. Machines that go for good go in the opposite order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import msgspec

from slipway.model.machine import (
    Found,
    FoundMachine,
    FoundNetwork,
    FoundPort,
    FoundVolume,
    Machine,
    Network,
    Port,
    Volume,
    Wanted,
)
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.target import Change, VimResource, VnfTarget
from slipway.vim.machine_by_machine.arguments import (
    MachineArguments,
    MakeMachine,
    MakeNetwork,
    RemoveLeftovers,
    RemoveMachine,
    RemoveNetwork,
    RetainVolumes,
    TakeMachine,
    TakePorts,
    Unplug,
)
from slipway.vim.machine_by_machine.refusals import refuse_unheld
from slipway.vim.machine_by_machine.wanted import resources, wanted_of

LEFTOVERS = "remove leftovers"
RETAIN = "retain volumes"


H = TypeVar("H", FoundPort, FoundVolume)


@dataclass(frozen=True)
class MachineByMachine:
    """How one driver's plans are made. `timeout` is for one attempt, without the time a machine has to shut down."""

    prefix: str  # of its actions
    words: str  # what people call the VIM: "A simulated VIM"
    timeout: float

    def steps_towards(self, wanted: Wanted, found: Found) -> Plan:
        """What turns `found` into `wanted`; nothing when they agree."""
        return _Comparison(self, wanted, found).plan()

    def refuse(self, change: Change) -> None:
        if change.after:
            refuse_unheld(change.after, self.words)


class MachineByMachineDriver:
    """The planning verbs of a driver that makes machine after machine. The rest of the contract is the driver's own."""

    planner: ClassVar[MachineByMachine]

    def refuse(self, change: Change) -> None:
        self.planner.refuse(change)

    def package_files(self, target: VnfTarget) -> tuple[str, ...]:
        return ()

    def resources(self, change: Change) -> tuple[VimResource, ...]:
        return tuple(resources(wanted_of(change)))

    def steps(self, change: Change, found: Found) -> Plan:
        return self.steps_towards(wanted_of(change), found)

    def steps_towards(self, wanted: Wanted, found: Found) -> Plan:
        return self.planner.steps_towards(wanted, found)


class _Comparison:
    """Both sides, and which step frees what."""

    def __init__(self, driver: MachineByMachine, wanted: Wanted, found: Found) -> None:
        self.driver = driver
        self.wanted, self.found = wanted, found
        self.machines = {machine.id: machine for machine in wanted.machines}
        self.former = {machine.id: machine for machine in wanted.former}
        self.there = {machine.id: machine for machine in found.machines}
        self.needed = {id_ for machine in wanted.machines for id_ in _holds(machine)} | set(wanted.retained)
        self.existing = {*_ids(found.ports), *_ids(found.volumes), *_held(found.machines)}
        self.freed_by: defaultdict[tuple[str, str], list[str]] = defaultdict(list)

    def plan(self) -> Plan:
        networks = self._make_networks()
        gone = self._dependents_first(self._remove_machines())
        removals = [*gone, *self._unplug_machines(), *self._remove_leftovers()]
        made = {step.args["network"]["id"]: step.id for step in networks}
        makes = self._dependencies_first(self._make_machines(made))
        ids = tuple(step.id for step in removals)
        return Plan.of(*networks, *removals, *makes, *self._retain_volumes(ids), *self._remove_networks(ids))

    def _make_networks(self) -> list[Step]:
        there = {network.id for network in self.found.networks}
        missing = [network for network in self.wanted.networks if network.id not in there]
        names = _names(missing)
        return [
            self._step(
                f"make network {names[network.id]}",
                "make_network",
                MakeNetwork(network=network),
                effects=(Effect(Verb.MAKE, "network", network.name),),
            )
            for network in missing
        ]

    def _remove_networks(self, after: tuple[str, ...]) -> list[Step]:
        stay = {network.id for network in self.wanted.networks}
        gone = [network for network in self.found.networks if network.id not in stay]
        names = _names(gone)
        return [
            self._step(
                f"remove network {names[network.id]}",
                "remove_network",
                RemoveNetwork(network=network.id),
                after=after,
                effects=(Effect(Verb.REMOVE, "network", network.name),),
                irreversible=True,
            )
            for network in gone
        ]

    def _remove_machines(self) -> list[Step]:
        gone = [machine for machine in self.found.machines if machine.id not in self.machines]
        names = _names(gone)
        steps = []
        for machine in gone:
            step_id = f"remove machine {names[machine.id]}"
            ports, volumes = self._unwanted(machine.ports), self._unwanted(machine.volumes)
            self.freed_by["slot", machine.name].append(step_id)
            self._frees(step_id, (*machine.ports, *machine.volumes))
            steps.append(self._remove_machine(step_id, machine, ports, volumes))
        return steps

    def _remove_machine(
        self, step_id: str, machine: FoundMachine, ports: tuple[FoundPort, ...], volumes: tuple[FoundVolume, ...]
    ) -> Step:
        effects = (Effect(Verb.REMOVE, "machine", machine.name), *_effects(Verb.REMOVE, machine, ports, volumes))
        former = self.former.get(machine.id)
        if former and not volumes and _is_back(former, ports):
            taken = TakeMachine(machine=former, ports=_ids(ports))
            return self._step(step_id, "take_machine", taken, node=machine.name, effects=effects)
        grace = self.wanted.grace_seconds
        args = RemoveMachine(
            machine=machine.id,
            name=machine.name,
            vdu=machine.vdu,
            grace_seconds=grace,
            ports=_ids(ports),
            volumes=_ids(volumes),
        )
        limit = self.driver.timeout + grace
        return self._step(
            step_id, "remove_machine", args, node=machine.name, effects=effects, timeout=limit, irreversible=True
        )

    def _unplug_machines(self) -> list[Step]:
        """Wanted machines that hold what they shouldn't."""
        staying = [machine for machine in self.found.machines if machine.id in self.machines]
        names = _names(staying)
        steps = []
        for machine in staying:
            wanted = self.machines[machine.id]
            own = set(_holds(wanted))
            ports = tuple(port for port in machine.ports if port.id not in own)
            volumes = tuple(volume for volume in machine.volumes if volume.id not in own)
            if not ports and not volumes:
                continue
            step_id = f"unplug from machine {names[machine.id]}"
            self._frees(step_id, (*ports, *volumes))
            self.freed_by["machine", machine.id].append(step_id)
            former = self.former.get(machine.id)
            if former and not volumes and _is_back(former, ports) and self._unwanted(ports) == ports:
                steps.append(self._take_ports(step_id, former, ports))
            else:
                steps.append(self._unplug(step_id, machine, ports, volumes))
        return steps

    def _take_ports(self, step_id: str, former: Machine, ports: tuple[FoundPort, ...]) -> Step:
        args = TakePorts(machine=former, ports=_ids(ports))
        effects = (Effect(Verb.CHANGE, "machine", former.name), *_effects(Verb.REMOVE, former, ports, ()))
        return self._step(step_id, "take_ports", args, node=former.name, effects=effects)

    def _unplug(
        self, step_id: str, machine: FoundMachine, ports: tuple[FoundPort, ...], volumes: tuple[FoundVolume, ...]
    ) -> Step:
        args = Unplug(
            machine=machine.id,
            name=machine.name,
            vdu=machine.vdu,
            ports=_ids(self._unwanted(ports)),
            volumes=_ids(self._unwanted(volumes)),
            moving_ports=tuple(port.id for port in ports if port.id in self.needed),
            moving_volumes=tuple(volume.id for volume in volumes if volume.id in self.needed),
        )
        gone = _effects(Verb.REMOVE, machine, self._unwanted(ports), self._unwanted(volumes))
        effects = (Effect(Verb.CHANGE, "machine", machine.name), *gone)
        return self._step(step_id, "unplug", args, node=machine.name, effects=effects, irreversible=True)

    def _remove_leftovers(self) -> list[Step]:
        held = _held(self.found.machines)
        ports = tuple(port for port in self._unwanted(self.found.ports) if port.id not in held)
        volumes = tuple(volume for volume in self._unwanted(self.found.volumes) if volume.id not in held)
        if not ports and not volumes:
            return []
        self._frees(LEFTOVERS, ports)
        args = RemoveLeftovers(ports=_ids(ports), volumes=_ids(volumes), wanted=tuple(self.machines))
        effects = (
            *(Effect(Verb.REMOVE, "port", port.name) for port in ports),
            *(Effect(Verb.REMOVE, "volume", volume.name) for volume in volumes),
        )
        return [self._step(LEFTOVERS, "remove_leftovers", args, effects=effects)]

    def _retain_volumes(self, after: tuple[str, ...]) -> list[Step]:
        volumes = [volume for volume in self.found.volumes if volume.id in self.wanted.retained]
        if not volumes:
            return []
        args = RetainVolumes(volumes=_ids(volumes))
        effects = tuple(Effect(Verb.CHANGE, "volume", f"{volume.name}, which stays") for volume in volumes)
        return [self._step(RETAIN, "retain_volumes", args, after=after, effects=effects, irreversible=True)]

    def _make_machines(self, networks: dict[str, str]) -> list[Step]:
        lacking = [machine for machine in self.wanted.machines if not self._is_complete(machine)]
        names = _names(lacking)
        return [self._make_machine(machine, names[machine.id], networks) for machine in lacking]

    def _make_machine(self, machine: Machine, name: str, networks: dict[str, str]) -> Step:
        verb, word = (Verb.CHANGE, "repair") if machine.id in self.there else (Verb.MAKE, "make")
        after = [networks[port.network] for port in machine.ports if port.network in networks]
        after += self.freed_by.get(("slot", machine.name), ())
        after += self.freed_by.get(("machine", machine.id), ())
        for id_ in _holds(machine):
            after += self.freed_by.get(("id", id_), ())
        for port in machine.ports:
            for ip in _ips(port) if port.id not in self.existing else ():
                after += self.freed_by.get(("address", ip), ())
        ports = tuple(port for port in machine.ports if port.id not in self.existing)
        volumes = tuple(volume for volume in machine.volumes if volume.id not in self.existing)
        return self._step(
            f"{word} machine {name}",
            "make_machine",
            MakeMachine(machine=machine),
            node=machine.name,
            after=tuple(dict.fromkeys(after)),
            effects=(Effect(verb, "machine", machine.name), *_effects(Verb.MAKE, machine, ports, volumes)),
        )

    def _dependencies_first(self, makes: list[Step]) -> list[Step]:
        by_vdu: defaultdict[str, list[str]] = defaultdict(list)
        for step in makes:
            by_vdu[step.args["machine"]["vdu"]].append(step.id)
        before = {vdu: [id_ for one in self._needed_by(vdu) for id_ in by_vdu.get(one, ())] for vdu in by_vdu}
        return [_later(step, before[step.args["machine"]["vdu"]]) for step in makes]

    def _dependents_first(self, removals: list[Step]) -> list[Step]:
        """Only those that go for good: what is replaced may have to wait for others to be back, not to be gone."""
        stay = {machine.name for machine in self.wanted.machines}
        before: defaultdict[str, list[str]] = defaultdict(list)
        for step in removals:
            for needed in self._needed_by(step.args["vdu"]) if stay.isdisjoint(step.nodes) else ():
                before[needed].append(step.id)
        return [
            _later(step, before.get(step.args["vdu"], ())) if stay.isdisjoint(step.nodes) else step for step in removals
        ]

    def _needed_by(self, vdu: str) -> list[str]:
        """All that it depends on, directly or not: those in between may have nothing to do."""
        found: dict[str, None] = {}
        waiting = [vdu]
        for one in waiting:
            new = [needed for needed in self.wanted.dependencies.get(one, ()) if needed not in found and needed != vdu]
            found |= dict.fromkeys(new)
            waiting += new
        return list(found)

    def _step(
        self,
        step_id: str,
        action: str,
        args: MachineArguments,
        *,
        node: str | None = None,
        after: tuple[str, ...] = (),
        effects: tuple[Effect, ...],
        timeout: float | None = None,
        irreversible: bool = False,
    ) -> Step:
        plain = msgspec.json.decode(msgspec.json.encode(args))  # as the journal will give it back
        name = f"{self.driver.prefix}.{action}"
        return Step(
            id=step_id,
            action=name,
            args=plain,
            nodes=(node,) if node else (),
            timeout=timeout,
            after=after,
            effects=effects,
            irreversible=irreversible,
        )

    def _is_complete(self, machine: Machine) -> bool:
        """Whether it is there, runs, and holds all it should."""
        there = self.there.get(machine.id)
        if there is None or not there.ready:
            return False
        return set(_holds(machine)) <= set(_holds(there))

    def _unwanted(self, items: Iterable[H]) -> tuple[H, ...]:
        return tuple(item for item in items if item.id not in self.needed)

    def _frees(self, step_id: str, items: Iterable[FoundPort | FoundVolume]) -> None:
        """Note that ids move on after the step, and addresses of what is not wanted are free."""
        for item in items:
            self.freed_by["id", item.id].append(step_id)
            for ip in _ips(item) if isinstance(item, FoundPort) and item.id not in self.needed else ():
                self.freed_by["address", ip].append(step_id)


def _ips(port: Port | FoundPort) -> list[str]:
    return [address.ip for address in port.addresses if address.ip is not None]


def _later(step: Step, after: Iterable[str]) -> Step:
    return msgspec.structs.replace(step, after=tuple(dict.fromkeys((*step.after, *after))))


def _is_back(former: Machine, ports: Iterable[FoundPort]) -> bool:
    """Whether the machine as it was says how to make all these ports again."""
    return {port.id for port in ports} <= {port.id for port in former.ports}


def _effects(
    verb: Verb,
    machine: Machine | FoundMachine,
    ports: Iterable[Port | FoundPort],
    volumes: Iterable[Volume | FoundVolume],
) -> tuple[Effect, ...]:
    return (
        *(Effect(verb, "port", f"{port.name} of {machine.name}") for port in ports),
        *(Effect(verb, "volume", f"{volume.name} of {machine.name}") for volume in volumes),
    )


def _holds(machine: Machine | FoundMachine) -> list[str]:
    return [*(port.id for port in machine.ports), *(volume.id for volume in machine.volumes)]


def _held(machines: Iterable[FoundMachine]) -> set[str]:
    return {id_ for machine in machines for id_ in _holds(machine)}


def _ids(items: Iterable[FoundPort | FoundVolume]) -> tuple[str, ...]:
    return tuple(item.id for item in items)


def _names(items: Sequence[Machine | FoundMachine | Network | FoundNetwork]) -> dict[str, str]:
    """A name for each id, unique among them: a part of the id where a name repeats, else all of it."""
    often = Counter(item.name for item in items)
    for length in (8, None):
        names = {item.id: f"{item.name} ({item.id[:length]})" if often[item.name] > 1 else item.name for item in items}
        if len(set(names.values())) == len(names):
            break
    return names
