"""What the steps of a VIM that works machine by machine carry: plain JSON in the plan, these types in the hand."""

from __future__ import annotations

import msgspec

from slipway.model.machine import Machine, Network


class Arguments(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class MakeNetwork(Arguments, frozen=True, kw_only=True):
    network: Network


class RemoveNetwork(Arguments, frozen=True, kw_only=True):
    network: str


class MakeMachine(Arguments, frozen=True, kw_only=True):
    machine: Machine


class RemoveMachine(Arguments, frozen=True, kw_only=True):
    """`ports` and `volumes` go with the machine; others that it holds stay, for the next in its slot.

    It gets `grace_seconds` to shut down by itself.
    """

    machine: str
    name: str
    vdu: str
    grace_seconds: int = 0
    ports: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()


class Unplug(Arguments, frozen=True, kw_only=True):
    """`ports` and `volumes` go; the moving ones stay, for another machine. The machine itself stays."""

    machine: str
    name: str
    vdu: str
    ports: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    moving_ports: tuple[str, ...] = ()
    moving_volumes: tuple[str, ...] = ()


class TakePorts(Arguments, frozen=True, kw_only=True):
    """`ports` go, and others will come in their place. `machine` is as it was with them, which undo makes it again."""

    machine: Machine
    ports: tuple[str, ...]


class RemoveLeftovers(Arguments, frozen=True, kw_only=True):
    """Ports and volumes that no machine seemed to hold. `wanted`: the ids of machines that stay in any case."""

    ports: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
