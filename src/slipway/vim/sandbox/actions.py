"""The steps' hands as the engine room calls them: blocking work in threads, waiting for SSH in the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from slipway.model.action import Action, Connection, StepContext
from slipway.model.machine import Outcome
from slipway.vim.machine_by_machine.arguments import (
    MakeMachine,
    MakeNetwork,
    RemoveLeftovers,
    RemoveMachine,
    RemoveNetwork,
    TakePorts,
    Unplug,
)
from slipway.vim.sandbox.connection import access
from slipway.vim.sandbox.hands import Hands
from slipway.vim.sandbox.labels import Maker
from slipway.vim.sandbox.readiness import until_ssh
from slipway.vim.sandbox.records import PORT, VOLUME

TIMEOUT = 240.0  # seconds for one attempt at a step
PREFIX = "sandbox"
T = TypeVar("T")


class Room(Protocol):
    """Where blocking work is done, on the engine that a connection names."""

    async def work(self, connection: Connection, work: Callable[[Hands], T]) -> T: ...


class Actions:
    def __init__(self, room: Room) -> None:
        self._room = room
        self.all: tuple[Action[Any], ...] = (
            Action(f"{PREFIX}.make_network", MakeNetwork, self.make_network, self.unmake_network, timeout=TIMEOUT),
            Action(f"{PREFIX}.remove_network", RemoveNetwork, self.remove_network, timeout=TIMEOUT),
            Action(f"{PREFIX}.make_machine", MakeMachine, self.make_machine, self.unmake_machine, timeout=TIMEOUT),
            Action(f"{PREFIX}.remove_machine", RemoveMachine, self.remove_machine, timeout=TIMEOUT),
            Action(f"{PREFIX}.unplug", Unplug, self.unplug, timeout=TIMEOUT),
            Action(f"{PREFIX}.take_ports", TakePorts, self.take_ports, self.give_ports_back, timeout=TIMEOUT),
            Action(f"{PREFIX}.remove_leftovers", RemoveLeftovers, self.remove_leftovers, timeout=TIMEOUT),
        )

    async def make_network(self, args: MakeNetwork, ctx: StepContext) -> Outcome:
        return await self._do(ctx, lambda hands, by: Outcome(networks=(hands.make_network(args.network, by),)))

    async def unmake_network(self, args: MakeNetwork, ctx: StepContext) -> Outcome:
        gone = await self._do(ctx, lambda hands, by: hands.remove_network(args.network.id, by, own=True))
        return Outcome(removed=(args.network.id,) if gone else ())

    async def remove_network(self, args: RemoveNetwork, ctx: StepContext) -> Outcome:
        await self._do(ctx, lambda hands, by: hands.remove_network(args.network, by))
        return Outcome(removed=(args.network,))

    async def make_machine(self, args: MakeMachine, ctx: StepContext) -> Outcome:
        connection, by = await ctx.connection(), _maker(ctx)
        found = await self._room.work(
            connection, lambda hands: hands.make_machine(args.machine, by, access(connection))
        )

        def probe(work: Callable[[Hands], T]) -> Awaitable[T]:
            return self._room.work(connection, work)

        await until_ssh(args.machine, probe)
        return Outcome(machines=(found,))

    async def unmake_machine(self, args: MakeMachine, ctx: StepContext) -> Outcome:
        """Remove what this operation made. What was there before it stays, and so does what another machine holds."""
        machine = args.machine
        ports, volumes = [port.id for port in machine.ports], [volume.id for volume in machine.volumes]

        def work(hands: Hands, by: Maker) -> Outcome:
            removed = [machine.id] if hands.remove_machine(machine.id, by, own=True) else []
            removed += hands.remove_held(PORT, ports, by, held_by=machine.id, own=True)
            removed += hands.remove_held(VOLUME, volumes, by, held_by=machine.id, own=True)
            return Outcome(removed=tuple(removed))

        return await self._do(ctx, work)

    async def remove_machine(self, args: RemoveMachine, ctx: StepContext) -> Outcome:
        def work(hands: Hands, by: Maker) -> Outcome:
            hands.remove_machine(args.machine, by, grace=args.grace_seconds)
            ports = hands.remove_held(PORT, args.ports, by)
            volumes = hands.remove_held(VOLUME, args.volumes, by)
            return Outcome(removed=(args.machine, *ports, *volumes))

        return await self._do(ctx, work)

    async def unplug(self, args: Unplug, ctx: StepContext) -> Outcome:
        def work(hands: Hands, by: Maker) -> Outcome:
            hands.release(PORT, args.moving_ports, args.machine)
            hands.release(VOLUME, args.moving_volumes, args.machine)
            ports = hands.remove_held(PORT, args.ports, by, held_by=args.machine)
            volumes = hands.remove_held(VOLUME, args.volumes, by, held_by=args.machine)
            left = tuple(one for one in hands.find(ctx.instance_id).machines if one.id == args.machine)
            return Outcome(machines=left, removed=(*ports, *volumes))

        return await self._do(ctx, work)

    async def take_ports(self, args: TakePorts, ctx: StepContext) -> Outcome:
        machine = args.machine
        return await self.unplug(Unplug(machine=machine.id, name=machine.name, vdu=machine.vdu, ports=args.ports), ctx)

    async def give_ports_back(self, args: TakePorts, ctx: StepContext) -> Outcome:
        """The machine as it was: ports with the same ids, networks, addresses and MACs."""
        return await self.make_machine(MakeMachine(machine=args.machine), ctx)

    async def remove_leftovers(self, args: RemoveLeftovers, ctx: StepContext) -> Outcome:
        """A leftover that turns out to be held belongs to a machine that came to light since."""

        def work(hands: Hands, by: Maker) -> Outcome:
            removed = list[str]()
            for kind, ids in ((PORT, args.ports), (VOLUME, args.volumes)):
                for id_ in ids:
                    machine = hands.holder(kind, id_)
                    if machine is not None and machine not in args.wanted:
                        hands.remove_machine(machine, by)
                        removed.append(machine)
                    removed += hands.remove_held(kind, [id_], by, held_by=machine)
            return Outcome(removed=tuple(removed))

        return await self._do(ctx, work)

    async def _do(self, ctx: StepContext, work: Callable[[Hands, Maker], T]) -> T:
        by = _maker(ctx)
        return await self._room.work(await ctx.connection(), lambda hands: work(hands, by))


def _maker(ctx: StepContext) -> Maker:
    return Maker(ctx.instance_id, ctx.operation_id)
