"""Arguments of the steps of a VIM that works machine by machine (JSON in the plan), and who makes a thing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from slipway.model.action import StepContext
from slipway.model.machine import FoundVolume, Machine, Network, Outcome


@dataclass(frozen=True)
class Maker:
    """The instance and the operation for which something is made or removed: an undo removes only its own."""

    instance_id: str
    operation_id: str


def retained_outcome(volumes: Iterable[FoundVolume]) -> Outcome:
    """Which volumes stayed is said in the instance's metadata, by the VIM's own ids."""
    kept = tuple(volumes)
    said = {"metadata": {"retainedVolumes": {volume.resource_id: volume.name for volume in kept}}}
    return Outcome(removed=tuple(volume.id for volume in kept), instance=said if kept else {})


def maker_of(ctx: StepContext) -> Maker:
    return Maker(ctx.instance_id, ctx.operation_id)


class MachineArguments(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class MakeNetwork(MachineArguments, frozen=True, kw_only=True):
    network: Network


class RemoveNetwork(MachineArguments, frozen=True, kw_only=True):
    network: str


class MakeMachine(MachineArguments, frozen=True, kw_only=True):
    machine: Machine


class RemoveMachine(MachineArguments, frozen=True, kw_only=True):
    """`ports` and `volumes` go with the machine; others that it holds stay, for the next in its slot.

    It gets `grace_seconds` to shut down by itself.
    """

    machine: str
    name: str
    vdu: str
    grace_seconds: int = 0
    ports: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()


class TakeMachine(MachineArguments, frozen=True, kw_only=True):
    """The machine goes, and another takes its place; `ports` go with it. Undo makes it again as it was."""

    machine: Machine
    ports: tuple[str, ...] = ()

    @property
    def removal(self) -> RemoveMachine:
        machine = self.machine
        return RemoveMachine(machine=machine.id, name=machine.name, vdu=machine.vdu, ports=self.ports)


class Unplug(MachineArguments, frozen=True, kw_only=True):
    """`ports` and `volumes` go; the moving ones stay, for another machine. The machine itself stays."""

    machine: str
    name: str
    vdu: str
    ports: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    moving_ports: tuple[str, ...] = ()
    moving_volumes: tuple[str, ...] = ()


class TakePorts(MachineArguments, frozen=True, kw_only=True):
    """`ports` go, and others will come in their place. `machine` is as it was with them, which undo makes it again."""

    machine: Machine
    ports: tuple[str, ...]


class RetainVolumes(MachineArguments, frozen=True, kw_only=True):
    """Volumes stay, and are the instance's no more: a later one of the same instance neither finds nor removes them."""

    volumes: tuple[str, ...]


class RemoveLeftovers(MachineArguments, frozen=True, kw_only=True):
    """Ports and volumes that no machine seemed to hold. `wanted`: the ids of machines that stay in any case."""

    ports: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
