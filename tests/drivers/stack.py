"""A driver that changes everything in one step, as Heat does: one template for all, one change at a time.

It stands on the simulated VIM's machines, so that clusters can live on it. Only members have ids that are known before.
A template calls networks, ports and volumes by name; they get ids when they are made, which the stack keeps in a file
of its own. A change that takes a machine away can't be taken back; any other goes back to the template before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from slipway.model.action import Action, StepContext
from slipway.model.grant import ResourceType
from slipway.model.machine import Found, FoundMachine, FoundPort, Machine, Network, Outcome, Port, Wanted
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.target import Change, VimResource, VnfTarget
from slipway.simulator.vim.actions import SimulatedActions
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.vim.machine_by_machine.arguments import (
    MakeMachine,
    MakeNetwork,
    RemoveLeftovers,
    RemoveMachine,
    RemoveNetwork,
)
from slipway.vim.machine_by_machine.wanted import wanted_of

SCHEMA = "CREATE TABLE IF NOT EXISTS resource (instance TEXT, name TEXT, id TEXT, PRIMARY KEY (instance, name))"


class Template(msgspec.Struct, frozen=True, omit_defaults=True):
    """Members have their ids. Everything else has its name in the template in place of one."""

    networks: tuple[Network, ...] = ()
    machines: tuple[Machine, ...] = ()

    @property
    def names(self) -> list[str]:
        held = (name for machine in self.machines for name in _held(machine))
        return [*(network.id for network in self.networks), *held]


class ChangeStack(msgspec.Struct, frozen=True, omit_defaults=True):
    """`before` is what undo goes back to; nothing in a template is no stack.

    `known`: ids of what was there when it was planned. Of those the step tells which are gone, whoever removed them:
    this step itself, before it was killed.
    """

    after: Template
    before: Template
    known: tuple[str, ...] = ()
    grace_seconds: int = 0


class StackDriver(SimulatedDriver):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._file = directory / "stack.db"
        self._one_by_one = SimulatedActions(self._calls)
        self._changing: set[str] = set()
        self._stack_actions: tuple[Action[Any], ...] = (
            Action("stack.change", ChangeStack, self._change, self._go_back, timeout=60.0),
        )

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._stack_actions

    def package_files(self, target: VnfTarget) -> tuple[str, ...]:
        return ()

    def resources(self, change: Change) -> tuple[VimResource, ...]:
        """What is inside the template nobody knows before: only the members."""
        members = change.after.members if change.after else ()
        return tuple(VimResource(id=one.id, type=ResourceType.COMPUTE, template=one.vdu) for one in members)

    def steps(self, change: Change, found: Found) -> Plan:
        after, before = _template(change, change.after), _standing(change, found)
        there = {machine.name: machine for machine in found.machines}
        wanted = {machine.name: machine for machine in after.machines}
        nets = {network.id: network.name for network in found.networks}
        touched = sorted(name for name in {*there, *wanted} if _differs(there.get(name), wanted.get(name), nets))
        networks = set(nets.values()) != {network.name for network in after.networks}
        if not touched and not networks:
            return Plan()
        batches = change.batches or (tuple(touched),)
        rest = tuple(name for name in touched if all(name not in batch for batch in batches))
        turns = [*batches[:-1], (*batches[-1], *rest)]
        steps, last = list[Step](), before
        for number, nodes in enumerate(turns, 1):
            template = after if number == len(turns) else _partly(last, after, nodes)
            args = ChangeStack(template, last, tuple(sorted(found.ids)), change.grace_seconds)
            step = _step(change, args, nodes, f" ({number}/{len(turns)})" if len(turns) > 1 else "")
            steps.append(replace(step, after=(steps[-1].id,)) if steps else step)
            last = template
        return Plan(tuple(steps))

    async def _change(self, args: ChangeStack, ctx: StepContext) -> Outcome:
        return await self._update(args.after, args, args.grace_seconds, ctx)

    async def _go_back(self, args: ChangeStack, ctx: StepContext) -> Outcome:
        return await self._update(args.before, args, 0, ctx)

    async def _update(self, template: Template, args: ChangeStack, grace: int, ctx: StepContext) -> Outcome:
        """Everything that the template has, and nothing else."""
        assert ctx.instance_id not in self._changing, "two changes of one stack at once"
        self._changing.add(ctx.instance_id)
        try:
            outcome = await self._updated(template, grace, ctx)
            left = (await self.find(await ctx.connection(), ctx.instance_id)).ids
            members = (one.id for version in (args.before, args.after) for one in version.machines)
            gone = {*outcome.removed, *args.known, *members}.difference(left)
            return replace(outcome, removed=tuple(sorted(gone)))
        finally:
            self._changing.discard(ctx.instance_id)

    async def _updated(self, template: Template, grace: int, ctx: StepContext) -> Outcome:
        host, removed = self._one_by_one, list[str]()
        found = await self.find(await ctx.connection(), ctx.instance_id)
        made = self._with_ids(template, found, ctx.instance_id)
        for machine in found.machines:
            if machine.id not in {one.id for one in made.machines}:
                gone = RemoveMachine(machine=machine.id, name=machine.name, vdu=machine.vdu, grace_seconds=grace)
                removed += (await host.remove_machine(gone, ctx)).removed
        removed += await self._remove_leftovers(set(made.names), ctx)
        networks = [(await host.make_network(MakeNetwork(network=one), ctx)).networks for one in made.networks]
        machines = [(await host.make_machine(MakeMachine(machine=one), ctx)).machines for one in made.machines]
        for network in found.networks:
            if network.id not in {one.id for one in made.networks}:
                removed += (await host.remove_network(RemoveNetwork(network=network.id), ctx)).removed
        return Outcome(
            networks=tuple(one for several in networks for one in several),
            machines=tuple(one for several in machines for one in several),
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

    def _with_ids(self, template: Template, found: Found, instance_id: str) -> Template:
        """The template with ids in place of names: those it has, and random ones for what is new.

        A port that is to be on another network, or to have another address, is a new one.
        """
        there, networks = {port.id: port for port in found.ports}, {one.id: one.name for one in found.networks}
        ports = [port for machine in template.machines for port in machine.ports]
        with self._db() as db:
            known = dict(db.execute("SELECT name, id FROM resource WHERE instance = ?", (instance_id,)).fetchall())
            for port in ports:
                if (old := there.get(known.get(port.id, ""))) and _moves(old, port, networks):
                    del known[port.id]
            ids = {name: known.get(name) or str(uuid4()) for name in template.names}
            db.execute("DELETE FROM resource WHERE instance = ?", (instance_id,))
            db.executemany("INSERT INTO resource VALUES (?, ?, ?)", [(instance_id, *one) for one in ids.items()])
        return _renamed(template, ids)

    @contextmanager
    def _db(self) -> Iterator[sqlite3.Connection]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._file, timeout=30, isolation_level=None)
        try:
            db.execute(SCHEMA)
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        finally:
            db.close()


def _step(change: Change, args: ChangeStack, nodes: tuple[str, ...], turn: str) -> Step:
    before, after = args.before, args.after
    was, now = {one.id: one.name for one in before.machines}, {one.id: one.name for one in after.machines}
    gone, new = [was[id_] for id_ in was if id_ not in now], [now[id_] for id_ in now if id_ not in was]
    verb = "remove" if not after.machines else "change" if before.machines else "make"
    return Step(
        id=f"{verb} stack{turn}",
        action="stack.change",
        args=msgspec.json.decode(msgspec.json.encode(args)),
        nodes=nodes,
        effects=(
            *(Effect(Verb.REMOVE, "machine", name) for name in gone),
            *(Effect(Verb.CHANGE, "machine", name) for name in nodes if name not in gone and name not in new),
            *(Effect(Verb.MAKE, "machine", name) for name in new),
        ),
        irreversible=not (was.keys() - now.keys() <= _restorable(change)),
    )


def _restorable(change: Change) -> frozenset[str]:
    """Machines that are made again when the stack goes back."""
    return change.renewal.members if change.renewal.reversible else frozenset()


def _template(change: Change, target: VnfTarget | None) -> Template:
    """As the package's template would say it."""
    if target is None:
        return Template()
    wanted: Wanted = wanted_of(change)
    names = {network.id: f"network/{network.name}" for network in wanted.networks}
    for machine in wanted.machines:
        names |= {port.id: f"port/{machine.name}/{port.name}" for port in machine.ports}
        names |= {volume.id: f"volume/{machine.name}/{volume.name}" for volume in machine.volumes}
    return _renamed(Template(wanted.networks, wanted.machines), names)


def _renamed(template: Template, names: dict[str, str]) -> Template:
    return Template(
        networks=tuple(replace(network, id=names[network.id]) for network in template.networks),
        machines=tuple(
            replace(
                machine,
                ports=tuple(
                    replace(port, id=names[port.id], network=names[port.network] if port.network else None)
                    for port in machine.ports
                ),
                volumes=tuple(replace(volume, id=names[volume.id]) for volume in machine.volumes),
            )
            for machine in template.machines
        ),
    )


def _standing(change: Change, found: Found) -> Template:
    """The template that the stack has: of the target before, with the addresses that ports were given."""
    if change.before is None or not found.machines:
        return Template()
    before = Change(
        instance_id=change.instance_id, version=change.version, inventory=change.inventory, after=change.before
    )
    ports = {f"port/{one.name}/{port.name}": port for one in found.machines for port in one.ports}
    template = _template(before, change.before)
    return replace(
        template,
        machines=tuple(
            replace(machine, ports=tuple(_as_it_is(port, ports.get(port.id)) for port in machine.ports))
            for machine in template.machines
        ),
    )


def _as_it_is(port: Port, there: FoundPort | None) -> Port:
    return replace(port, addresses=there.addresses, mac=there.mac) if there else port


def _partly(last: Template, after: Template, nodes: tuple[str, ...]) -> Template:
    """One batch further: those nodes as they will be, the others as they are."""
    new = {machine.name: machine for machine in after.machines}
    machines = [new.get(one.name) if one.name in nodes else one for one in last.machines]
    return Template(networks=after.networks, machines=tuple(one for one in machines if one is not None))


def _differs(there: FoundMachine | None, wanted: Machine | None, networks: dict[str, str]) -> bool:
    if there is None or wanted is None or there.id != wanted.id or not there.ready:
        return True
    ports = {port.name: port for port in there.ports}
    volumes = {volume.name for volume in there.volumes} != {volume.name for volume in wanted.volumes}
    if volumes or ports.keys() != {port.name for port in wanted.ports}:
        return True
    return any(_moves(ports[port.name], port, networks) for port in wanted.ports)


def _moves(there: FoundPort, wanted: Port, networks: dict[str, str]) -> bool:
    """`networks`: the names of the stack's own, by id."""
    inside = networks.get(there.network or "")
    network = (None, there.network) if inside is None else (f"network/{inside}", None)
    other = any(asked not in (None, now) for asked, now in ((wanted.address, there.address), (wanted.mac, there.mac)))
    return other or network != (wanted.network, wanted.external_network)


def _held(machine: Machine) -> list[str]:
    return [*(port.id for port in machine.ports), *(volume.id for volume in machine.volumes)]
