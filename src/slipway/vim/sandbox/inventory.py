"""All that sandboxes hold on an engine, by instance, and its removal: for people who list and prune."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from slipway.model.machine import FoundMachine
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox import labels, machines, networks
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.records import PORT, VOLUME, Record


@dataclass
class Holdings:
    """What one instance has."""

    machines: list[FoundMachine] = field(default_factory=list)
    networks: list[dict[str, Any]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def names(self) -> list[str]:
        """In words, machines first."""
        return [
            *(f"machine {machine.name}" for machine in self.machines),
            *(f"network {labels.of(network)[labels.NAME]}" for network in self.networks),
            *(f"{record.kind} {record.name}" for record in self.records),
        ]


def everything(operations: EngineOperations) -> dict[str, Holdings]:
    """By instance id."""
    found: defaultdict[str, Holdings] = defaultdict(Holdings)
    for thing in operations.engine.volumes({labels.INSTANCE: ""}):
        record = Record(operations.engine, thing)
        found[record.labels[labels.INSTANCE]].records.append(record)
    for thing in operations.engine.networks({labels.INSTANCE: ""}):
        found[labels.of(thing)[labels.INSTANCE]].networks.append(thing)
    for listed in operations.engine.containers({labels.INSTANCE: ""}):
        container = operations.engine.container(str(listed["Id"]))
        if container is not None:
            instance = labels.of(container)[labels.INSTANCE]
            held = [one for one in found[instance].records if one.said_holder() == labels.of(container)[labels.ID]]
            found[instance].machines.append(machines.found_machine(container, held))
    for holdings in found.values():
        holdings.machines.sort(key=lambda machine: (machine.name, machine.id))
    return dict(sorted(found.items()))


def remove(operations: EngineOperations, instance_id: str, holdings: Holdings) -> None:
    """All of it, in the order in which nothing is in use any more."""
    by = Maker(instance_id, "prune")
    for machine in holdings.machines:
        operations.remove_machine(machine.id, by)
    for kind in (PORT, VOLUME):
        operations.remove_held(kind, [record.id for record in holdings.records if record.kind == kind], by)
    for network in holdings.networks:
        operations.remove_network(labels.of(network)[labels.ID], by)


def remove_outside(operations: EngineOperations) -> None:
    """The network that all instances shared. No machine may be on it."""
    for thing in operations.engine.networks({labels.KIND: "outside"}):
        networks.remove_network(operations.engine, thing)
