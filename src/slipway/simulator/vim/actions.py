"""The actions of steps: each looks, makes and checks, can be run twice, and has its undo beside it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from typing import Any
from uuid import uuid4

from slipway.model.action import Action, StepContext
from slipway.model.errors import VimError, VimFault
from slipway.model.machine import FoundMachine, Machine, Outcome
from slipway.simulator.vim import attachments, networks, records
from slipway.simulator.vim.calls import Calls, Rules
from slipway.vim.fault_rules import FaultTarget
from slipway.vim.machine_by_machine.arguments import (
    MakeMachine,
    MakeNetwork,
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

TIMEOUT = 60.0  # seconds for one attempt at a step

# A machine in ERROR is looked at this often, further and further apart, before it is built anew: the VIM may be wrong.
WAITS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)


class SimulatedActions:
    """What steps do, on whichever simulated VIM their operation is on."""

    def __init__(self, remote: Calls) -> None:
        self._calls = remote
        self.all: tuple[Action[Any], ...] = (
            Action("simulated.make_network", MakeNetwork, self.make_network, self.unmake_network, timeout=TIMEOUT),
            Action("simulated.remove_network", RemoveNetwork, self.remove_network, timeout=TIMEOUT),
            Action("simulated.make_machine", MakeMachine, self.make_machine, self.unmake_machine, timeout=TIMEOUT),
            Action("simulated.remove_machine", RemoveMachine, self.remove_machine, timeout=TIMEOUT),
            Action("simulated.take_machine", TakeMachine, self.take_machine, self.give_machine_back, timeout=TIMEOUT),
            Action("simulated.unplug", Unplug, self.unplug, timeout=TIMEOUT),
            Action("simulated.take_ports", TakePorts, self.take_ports, self.give_ports_back, timeout=TIMEOUT),
            Action("simulated.remove_leftovers", RemoveLeftovers, self.remove_leftovers, timeout=TIMEOUT),
            Action("simulated.retain_volumes", RetainVolumes, self.retain_volumes, timeout=TIMEOUT),
        )

    async def make_network(self, args: MakeNetwork, ctx: StepContext) -> Outcome:
        def work(db: sqlite3.Connection, _: Rules) -> Outcome:
            made = networks.make_network(db, args.network, ctx.instance_id, ctx.operation_id, str(uuid4()))
            return Outcome(networks=(made,))

        return await self._calls.call(await ctx.connection(), "make_network", work)

    async def unmake_network(self, args: MakeNetwork, ctx: StepContext) -> Outcome:
        def work(db: sqlite3.Connection, _: Rules) -> Outcome:
            gone = networks.remove_network(db, args.network.id, ctx.instance_id, made_by=ctx.operation_id)
            return Outcome(removed=(args.network.id,) if gone else ())

        return await self._calls.call(await ctx.connection(), "remove_network", work)

    async def remove_network(self, args: RemoveNetwork, ctx: StepContext) -> Outcome:
        def work(db: sqlite3.Connection, _: Rules) -> Outcome:
            networks.remove_network(db, args.network, ctx.instance_id)
            return Outcome(removed=(args.network,))

        return await self._calls.call(await ctx.connection(), "remove_network", work)

    async def make_machine(self, args: MakeMachine, ctx: StepContext) -> Outcome:
        """Looked for by its id and not in a list, which may be partial: nothing is made twice."""
        machine = args.machine
        found = await self._look(ctx, machine)
        if found is None or _lacks(found, machine):
            found = await self._make(ctx, machine)
        if not found.ready:
            found = await self._until_ready(ctx, machine)
        return Outcome(machines=(found,))

    async def unmake_machine(self, args: MakeMachine, ctx: StepContext) -> Outcome:
        """Remove what this operation made. What was there before it stays, and so does what another machine holds."""
        machine, maker = args.machine, maker_of(ctx)
        ports, volumes = [port.id for port in machine.ports], [volume.id for volume in machine.volumes]

        def work(db: sqlite3.Connection, _: Rules) -> Outcome:
            gone = records.remove_machine(db, machine.id, maker, own=True)
            removed = [machine.id] if gone else []
            for kind, ids in (("port", ports), ("volume", volumes)):
                removed += attachments.remove(db, kind, ids, maker, held_by=machine.id, own=True)
            return Outcome(removed=tuple(removed))

        return await self._calls.call(
            await ctx.connection(), "remove_machine", work, FaultTarget(machine.name, machine.vdu)
        )

    async def remove_machine(self, args: RemoveMachine, ctx: StepContext) -> Outcome:
        if args.grace_seconds:
            await self._stop(args, ctx)

        def work(db: sqlite3.Connection, _: Rules) -> Outcome:
            maker = maker_of(ctx)
            records.remove_machine(db, args.machine, maker)
            ports = attachments.remove(db, "port", args.ports, maker)
            volumes = attachments.remove(db, "volume", args.volumes, maker)
            return Outcome(removed=(args.machine, *ports, *volumes))

        return await self._calls.call(await ctx.connection(), "remove_machine", work, FaultTarget(args.name, args.vdu))

    async def take_machine(self, args: TakeMachine, ctx: StepContext) -> Outcome:
        return await self.remove_machine(args.removal, ctx)

    async def give_machine_back(self, args: TakeMachine, ctx: StepContext) -> Outcome:
        """Made from what it was made from, with the ports and volumes that it had."""
        return await self.make_machine(MakeMachine(machine=args.machine), ctx)

    async def unplug(self, args: Unplug, ctx: StepContext) -> Outcome:
        def work(db: sqlite3.Connection, _: Rules) -> Outcome:
            maker = maker_of(ctx)
            attachments.release(db, "port", args.moving_ports, args.machine, ctx.instance_id)
            attachments.release(db, "volume", args.moving_volumes, args.machine, ctx.instance_id)
            ports = attachments.remove(db, "port", args.ports, maker, held_by=args.machine)
            volumes = attachments.remove(db, "volume", args.volumes, maker, held_by=args.machine)
            left = records.look(db, args.machine, ctx.instance_id)
            return Outcome(machines=() if left is None else (left,), removed=(*ports, *volumes))

        return await self._calls.call(await ctx.connection(), "unplug", work, FaultTarget(args.name, args.vdu))

    async def take_ports(self, args: TakePorts, ctx: StepContext) -> Outcome:
        machine = args.machine
        return await self.unplug(Unplug(machine=machine.id, name=machine.name, vdu=machine.vdu, ports=args.ports), ctx)

    async def give_ports_back(self, args: TakePorts, ctx: StepContext) -> Outcome:
        """The machine as it was: ports with the same ids, networks, addresses and MACs."""
        return await self.make_machine(MakeMachine(machine=args.machine), ctx)

    async def remove_leftovers(self, args: RemoveLeftovers, ctx: StepContext) -> Outcome:
        """A leftover that turns out to be held belongs to a machine which the list left out."""

        def work(db: sqlite3.Connection, _: Rules) -> Outcome:
            maker, removed = maker_of(ctx), list[str]()
            for kind, ids in (("port", args.ports), ("volume", args.volumes)):
                for id_ in ids:
                    machine = attachments.holder(db, kind, id_)
                    if machine is not None and machine not in args.wanted:
                        records.remove_machine(db, machine, maker)
                        removed.append(machine)
                    removed += attachments.remove(db, kind, [id_], maker, held_by=machine)
            return Outcome(removed=tuple(removed))

        return await self._calls.call(await ctx.connection(), "remove_leftovers", work)

    async def retain_volumes(self, args: RetainVolumes, ctx: StepContext) -> Outcome:
        def work(db: sqlite3.Connection, _: Rules) -> Outcome:
            return retained_outcome(attachments.retain(db, args.volumes, ctx.instance_id))

        return await self._calls.call(await ctx.connection(), "retain_volumes", work)

    async def _stop(self, args: RemoveMachine, ctx: StepContext) -> None:
        """Let it shut down in order, for as long as it may take; after that it goes as it is."""
        connection = await ctx.connection()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(args.grace_seconds):
                await self._calls.call(connection, "stop_machine", lambda db, _: None, FaultTarget(args.name, args.vdu))

    async def _look(self, ctx: StepContext, machine: Machine) -> FoundMachine | None:
        def work(db: sqlite3.Connection, _: Rules) -> FoundMachine | None:
            return records.look(db, machine.id, ctx.instance_id)

        return await self._calls.call(
            await ctx.connection(), "get_machine", work, FaultTarget(machine.name, machine.vdu)
        )

    async def _make(self, ctx: StepContext, machine: Machine) -> FoundMachine:
        def work(db: sqlite3.Connection, rules: Rules) -> FoundMachine:
            return records.make_machine(db, machine, maker_of(ctx), rules)

        return await self._calls.call(
            await ctx.connection(), "make_machine", work, FaultTarget(machine.name, machine.vdu)
        )

    async def _rebuild(self, ctx: StepContext, machine: Machine) -> None:
        def work(db: sqlite3.Connection, _: Rules) -> None:
            records.rebuild_machine(db, machine.id, ctx.instance_id)

        await self._calls.call(await ctx.connection(), "rebuild_machine", work, FaultTarget(machine.name, machine.vdu))

    async def _until_ready(self, ctx: StepContext, machine: Machine) -> FoundMachine:
        """Look again for a while; then build it anew, once, and look again."""
        for rebuilt in (False, True):
            for wait in WAITS:
                await asyncio.sleep(wait)
                found = await self._look(ctx, machine)
                if found is None:
                    raise VimError(f"Machine {machine.name} ({machine.id}) vanished.", VimFault.TEMPORARY)
                if found.ready:
                    return found
            if not rebuilt:
                await self._rebuild(ctx, machine)
        raise VimError(f"Machine {machine.name} ({machine.id}) stays in ERROR, rebuilt or not.", VimFault.TEMPORARY)


def _lacks(found: FoundMachine, machine: Machine) -> bool:
    """Whether a port or a volume is missing: a machine that was half-made, or that is to get more."""
    held = {port.id for port in found.ports} | {volume.id for volume in found.volumes}
    return not held.issuperset([*(port.id for port in machine.ports), *(volume.id for volume in machine.volumes)])
