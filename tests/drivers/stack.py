"""A driver that changes everything in one step, as Heat does: one template for all, one change at a time.

It stands on the simulated VIM's machines, so that clusters can live on it. What hangs on members has ids of its own,
made from the template's names. A change that takes a machine away can't be taken back; any other goes back to the
template before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from slipway.model.action import Action, StepContext
from slipway.model.grant import ResourceType
from slipway.model.machine import Found, Machine, Network, Outcome, Wanted
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.target import Change, Resource, Target
from slipway.vim.machine_by_machine.arguments import (
    MakeMachine,
    MakeNetwork,
    RemoveLeftovers,
    RemoveMachine,
    RemoveNetwork,
)
from slipway.vim.machine_by_machine.wanted import wanted_of
from slipway.vim.simulated.actions import Actions
from slipway.vim.simulated.driver import SimulatedDriver


class Template(msgspec.Struct, frozen=True, omit_defaults=True):
    networks: tuple[Network, ...] = ()
    machines: tuple[Machine, ...] = ()


class ChangeStack(msgspec.Struct, frozen=True, omit_defaults=True):
    """`before` is what undo goes back to; nothing in a template is no stack."""

    after: Template
    before: Template
    grace_seconds: int = 0


class StackDriver(SimulatedDriver):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._one_by_one = Actions(self._remote)
        self._changing: set[str] = set()
        self._stack_actions: tuple[Action[Any], ...] = (
            Action("stack.change", ChangeStack, self._change, self._go_back, timeout=60.0),
        )

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._stack_actions

    def resources(self, change: Change) -> tuple[Resource, ...]:
        """What is inside the template nobody knows before: only the members."""
        members = change.after.members if change.after else ()
        return tuple(Resource(id=one.id, type=ResourceType.COMPUTE, template=one.vdu) for one in members)

    def steps(self, change: Change, found: Found) -> Plan:
        after, before = _template(change, change.after), _standing(change, found)
        there = {machine.name: machine.id for machine in found.machines if machine.ready}
        wanted = {machine.name: machine.id for machine in after.machines}
        touched = sorted(name for name in {*there, *wanted} if there.get(name) != wanted.get(name))
        networks = {network.id for network in found.networks} != {network.id for network in after.networks}
        broken = [machine for machine in found.machines if not machine.ready]
        if not touched and not networks and not broken:
            return Plan()
        batches = change.batches or (tuple(touched),)
        rest = tuple(name for name in touched if all(name not in batch for batch in batches))
        turns = [*batches[:-1], (*batches[-1], *rest)]
        steps, last = list[Step](), before
        for number, nodes in enumerate(turns, 1):
            template = after if number == len(turns) else _partly(last, after, nodes)
            step = _step(change, last, template, nodes, f" ({number}/{len(turns)})" if len(turns) > 1 else "")
            steps.append(replace(step, after=(steps[-1].id,)) if steps else step)
            last = template
        return Plan(tuple(steps))

    async def _change(self, args: ChangeStack, ctx: StepContext) -> Outcome:
        return await self._reach(args.after, args.grace_seconds, ctx)

    async def _go_back(self, args: ChangeStack, ctx: StepContext) -> Outcome:
        return await self._reach(args.before, 0, ctx)

    async def _reach(self, template: Template, grace: int, ctx: StepContext) -> Outcome:
        """Everything that the template has, and nothing else."""
        assert ctx.instance_id not in self._changing, "two changes of one stack at once"
        self._changing.add(ctx.instance_id)
        try:
            return await self._reached(template, grace, ctx)
        finally:
            self._changing.discard(ctx.instance_id)

    async def _reached(self, template: Template, grace: int, ctx: StepContext) -> Outcome:
        hands, removed = self._one_by_one, list[str]()
        found = await self.find(await ctx.connection(), ctx.instance_id)
        wanted = {machine.id for machine in template.machines}
        held = {id_ for machine in template.machines for id_ in _held(machine)}
        for machine in found.machines:
            if machine.id not in wanted:
                gone = RemoveMachine(
                    machine=machine.id, name=machine.name, vdu=machine.vdu, grace_seconds=grace,
                    ports=tuple(port.id for port in machine.ports if port.id not in held),
                    volumes=tuple(volume.id for volume in machine.volumes if volume.id not in held),
                )  # fmt: skip
                removed += (await hands.remove_machine(gone, ctx)).removed
        networks = [(await hands.make_network(MakeNetwork(network=one), ctx)).networks for one in template.networks]
        machines = [(await hands.make_machine(MakeMachine(machine=one), ctx)).machines for one in template.machines]
        removed += await self._remove_leftovers(held, ctx)
        for network in found.networks:
            if network.id not in {one.id for one in template.networks}:
                removed += (await hands.remove_network(RemoveNetwork(network=network.id), ctx)).removed
        return Outcome(
            networks=tuple(one for made in networks for one in made),
            machines=tuple(one for made in machines for one in made),
            removed=tuple(removed),
        )

    async def _remove_leftovers(self, held: set[str], ctx: StepContext) -> list[str]:
        found = await self.find(await ctx.connection(), ctx.instance_id)
        ports = tuple(port.id for port in found.ports if port.id not in held)
        volumes = tuple(volume.id for volume in found.volumes if volume.id not in held)
        if not ports and not volumes:
            return []
        wanted = tuple(machine.id for machine in found.machines)
        args = RemoveLeftovers(ports=ports, volumes=volumes, wanted=wanted)
        return list((await self._one_by_one.remove_leftovers(args, ctx)).removed)


def _step(change: Change, before: Template, after: Template, nodes: tuple[str, ...], turn: str) -> Step:
    was, now = {one.id: one.name for one in before.machines}, {one.id: one.name for one in after.machines}
    gone, new = [was[id_] for id_ in was if id_ not in now], [now[id_] for id_ in now if id_ not in was]
    verb = "remove" if not after.machines else "change" if before.machines else "make"
    args = ChangeStack(after=after, before=before, grace_seconds=change.grace_seconds)
    return Step(
        id=f"{verb} stack{turn}",
        action="stack.change",
        args=msgspec.json.decode(msgspec.json.encode(args)),
        nodes=nodes,
        effects=(
            *(Effect(Verb.REMOVE, "machine", name) for name in gone),
            *(Effect(Verb.MAKE, "machine", name) for name in new),
        ),
        irreversible=bool(gone),
    )


def _template(change: Change, target: Target | None) -> Template:
    """As the package's template would say it: names of its own for what hangs on a member."""
    if target is None:
        return Template()
    wanted: Wanted = wanted_of(change)
    networks = {network.id: f"{change.instance_id}/{network.name}" for network in wanted.networks}
    return Template(
        networks=tuple(replace(network, id=networks[network.id]) for network in wanted.networks),
        machines=tuple(_named(change, machine, networks) for machine in wanted.machines),
    )


def _named(change: Change, machine: Machine, networks: dict[str, str]) -> Machine:
    place = f"{change.instance_id}/{machine.name}"
    return replace(
        machine,
        ports=tuple(
            replace(port, id=f"{place}/{port.name}", network=networks.get(port.network or "")) for port in machine.ports
        ),
        volumes=tuple(replace(volume, id=f"{place}/{volume.name}") for volume in machine.volumes),
    )


def _standing(change: Change, found: Found) -> Template:
    """The template that the stack has: of the target before, with the machines that stand."""
    if change.before is None or not found.machines:
        return Template()
    before = Change(
        instance_id=change.instance_id, version=change.version, inventory=change.inventory, after=change.before
    )
    return _template(before, change.before)


def _partly(last: Template, after: Template, nodes: tuple[str, ...]) -> Template:
    """One batch further: those nodes as they will be, the others as they are."""
    new = {machine.name: machine for machine in after.machines}
    machines = [new.get(one.name) if one.name in nodes else one for one in last.machines]
    return Template(networks=after.networks, machines=tuple(one for one in machines if one is not None))


def _held(machine: Machine) -> list[str]:
    return [*(port.id for port in machine.ports), *(volume.id for volume in machine.volumes)]
