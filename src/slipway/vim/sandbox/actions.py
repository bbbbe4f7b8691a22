"""The actions of steps: blocking work in threads, waiting for SSH in the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.machine import Outcome
from slipway.vim.machine_by_machine.arguments import (
    MakeMachine,
    MakeNetwork,
    Maker,
    RemoveLeftovers,
    RemoveMachine,
    RemoveNetwork,
    RetainVolumes,
    TakeMachine,
    TakePorts,
    Unplug,
    maker_of,
    retained_outcome,
)
from slipway.vim.sandbox.connection import access
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.readiness import until_ssh
from slipway.vim.sandbox.records import PORT, VOLUME

TIMEOUT = 240.0  # seconds for one attempt at a step
PREFIX = "sandbox"
T = TypeVar("T")


class EngineCalls(Protocol):
    """Where blocking work is done, on the engine that a connection names."""

    async def work(self, connection: VimConnection, work: Callable[[EngineOperations], T]) -> T: ...


class SandboxActions:
    def __init__(self, calls: EngineCalls) -> None:
        self._calls = calls
        self.all: tuple[Action[Any], ...] = (
            Action(f"{PREFIX}.make_network", MakeNetwork, self.make_network, self.unmake_network, timeout=TIMEOUT),
            Action(f"{PREFIX}.remove_network", RemoveNetwork, self.remove_network, timeout=TIMEOUT),
            Action(f"{PREFIX}.make_machine", MakeMachine, self.make_machine, self.unmake_machine, timeout=TIMEOUT),
            Action(f"{PREFIX}.remove_machine", RemoveMachine, self.remove_machine, timeout=TIMEOUT),
            Action(f"{PREFIX}.take_machine", TakeMachine, self.take_machine, self.give_machine_back, timeout=TIMEOUT),
            Action(f"{PREFIX}.unplug", Unplug, self.unplug, timeout=TIMEOUT),
            Action(f"{PREFIX}.take_ports", TakePorts, self.take_ports, self.give_ports_back, timeout=TIMEOUT),
            Action(f"{PREFIX}.remove_leftovers", RemoveLeftovers, self.remove_leftovers, timeout=TIMEOUT),
            Action(f"{PREFIX}.retain_volumes", RetainVolumes, self.retain_volumes, timeout=TIMEOUT),
        )

    async def make_network(self, args: MakeNetwork, ctx: StepContext) -> Outcome:
        return await self._do(
            ctx, lambda operations, by: Outcome(networks=(operations.make_network(args.network, by),))
        )

    async def unmake_network(self, args: MakeNetwork, ctx: StepContext) -> Outcome:
        gone = await self._do(ctx, lambda operations, by: operations.remove_network(args.network.id, by, own=True))
        return Outcome(removed=(args.network.id,) if gone else ())

    async def remove_network(self, args: RemoveNetwork, ctx: StepContext) -> Outcome:
        await self._do(ctx, lambda operations, by: operations.remove_network(args.network, by))
        return Outcome(removed=(args.network,))

    async def make_machine(self, args: MakeMachine, ctx: StepContext) -> Outcome:
        connection, by = await ctx.connection(), maker_of(ctx)
        found = await self._calls.work(
            connection, lambda operations: operations.make_machine(args.machine, by, access(connection))
        )

        def probe(work: Callable[[EngineOperations], T]) -> Awaitable[T]:
            return self._calls.work(connection, work)

        await until_ssh(args.machine, probe)
        return Outcome(machines=(found,))

    async def unmake_machine(self, args: MakeMachine, ctx: StepContext) -> Outcome:
        """Remove what this operation made. What was there before it stays, and so does what another machine holds."""
        machine = args.machine
        ports, volumes = [port.id for port in machine.ports], [volume.id for volume in machine.volumes]

        def work(operations: EngineOperations, by: Maker) -> Outcome:
            removed = [machine.id] if operations.remove_machine(machine.id, by, own=True) else []
            removed += operations.remove_held(PORT, ports, by, held_by=machine.id, own=True)
            removed += operations.remove_held(VOLUME, volumes, by, held_by=machine.id, own=True)
            return Outcome(removed=tuple(removed))

        return await self._do(ctx, work)

    async def remove_machine(self, args: RemoveMachine, ctx: StepContext) -> Outcome:
        def work(operations: EngineOperations, by: Maker) -> Outcome:
            operations.remove_machine(args.machine, by, grace=args.grace_seconds)
            ports = operations.remove_held(PORT, args.ports, by)
            volumes = operations.remove_held(VOLUME, args.volumes, by)
            return Outcome(removed=(args.machine, *ports, *volumes))

        return await self._do(ctx, work)

    async def take_machine(self, args: TakeMachine, ctx: StepContext) -> Outcome:
        return await self.remove_machine(args.removal, ctx)

    async def give_machine_back(self, args: TakeMachine, ctx: StepContext) -> Outcome:
        """Made from what it was made from, with the ports and volumes that it had."""
        return await self.make_machine(MakeMachine(machine=args.machine), ctx)

    async def unplug(self, args: Unplug, ctx: StepContext) -> Outcome:
        def work(operations: EngineOperations, by: Maker) -> Outcome:
            operations.release(PORT, args.moving_ports, args.machine)
            operations.release(VOLUME, args.moving_volumes, args.machine)
            ports = operations.remove_held(PORT, args.ports, by, held_by=args.machine)
            volumes = operations.remove_held(VOLUME, args.volumes, by, held_by=args.machine)
            left = tuple(one for one in operations.find(ctx.instance_id).machines if one.id == args.machine)
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

        def work(operations: EngineOperations, by: Maker) -> Outcome:
            removed = list[str]()
            for kind, ids in ((PORT, args.ports), (VOLUME, args.volumes)):
                for id_ in ids:
                    machine = operations.holder(kind, id_)
                    if machine is not None and machine not in args.wanted:
                        operations.remove_machine(machine, by)
                        removed.append(machine)
                    removed += operations.remove_held(kind, [id_], by, held_by=machine)
            return Outcome(removed=tuple(removed))

        return await self._do(ctx, work)

    async def retain_volumes(self, args: RetainVolumes, ctx: StepContext) -> Outcome:
        return await self._do(ctx, lambda operations, by: retained_outcome(operations.retain_volumes(args.volumes, by)))

    async def _do(self, ctx: StepContext, work: Callable[[EngineOperations, Maker], T]) -> T:
        by = maker_of(ctx)
        return await self._calls.work(await ctx.connection(), lambda operations: work(operations, by))
