"""What the steps of a cluster do to its load balancer. Each takes the stored routes, changes them, and makes it so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from slipway.cluster.spec import Node
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.liveness import DeadMachine, Waiting
from slipway.cluster.steps.machine import address_of
from slipway.load_balancer.arguments import AddRoutes, Forget, OfBalancer, RemoveRoutes, SetUp
from slipway.load_balancer.balancer import Balancer
from slipway.load_balancer.configure import SCRIPT_SECONDS, RoutesChange, Verb, apply_template, run_script_of
from slipway.load_balancer.plans import ACTION_NAMES
from slipway.load_balancer.records import BalancerRecords, Held
from slipway.load_balancer.routes import Routes, Server
from slipway.model.action import Action, StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.waiting import Backoff

MARGIN = 400.0  # seconds beyond a script's own time: to wait for others, and for a machine that boots


@dataclass(frozen=True)
class BalancerSteps:
    deps: Dependencies
    records: BalancerRecords

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        seconds = SCRIPT_SECONDS + MARGIN
        return (
            Action(ACTION_NAMES[SetUp], SetUp, self.set_up, self.undo_set_up, timeout=seconds + 900.0),
            Action(ACTION_NAMES[AddRoutes], AddRoutes, self.add_routes, self.undo_add_routes, timeout=seconds),
            Action(ACTION_NAMES[RemoveRoutes], RemoveRoutes, self.remove_routes, self.undo_remove, timeout=seconds),
            Action(ACTION_NAMES[Forget], Forget, self.forget),
        )

    async def set_up(self, args: SetUp, ctx: StepContext) -> Outcome:
        """On a machine that was just made; front-ends that were there before are there again."""
        await self.deps.liveness.wait_for_boot(args.balancer.node, ctx)
        servers = await servers_of(args.nodes, ctx)
        verb: Verb = "reinstall" if args.again else "install"
        await self._change(args, ctx, verb, servers, lambda routes: routes.to(servers), new=True)
        return Outcome()

    async def undo_set_up(self, args: SetUp, ctx: StepContext) -> Outcome:
        """The machine goes by itself. One that was there before keeps what is known of it, for the next try."""
        if not args.again:
            await self.records.forget(args.balancer.cluster)
        return Outcome()

    async def add_routes(self, args: AddRoutes, ctx: StepContext) -> Outcome:
        return await self._add(args, args.nodes, ctx)

    async def remove_routes(self, args: RemoveRoutes, ctx: StepContext) -> Outcome:
        return await self._remove(args, args.nodes, ctx)

    async def undo_add_routes(self, args: AddRoutes, ctx: StepContext) -> Outcome:
        return await self._remove(args, args.nodes, ctx, undoes=True)

    async def undo_remove(self, args: RemoveRoutes, ctx: StepContext) -> Outcome:
        return await self._add(args, args.nodes, ctx, undoes=True)

    async def forget(self, args: Forget, ctx: StepContext) -> Outcome:
        await self.records.forget(args.cluster)
        return Outcome()

    async def _add(self, args: OfBalancer, nodes: Sequence[Node], ctx: StepContext, *, undoes: bool = False) -> Outcome:
        servers = await servers_of(nodes, ctx)
        await self._change(args, ctx, "add", servers, lambda routes: routes.with_servers(servers), undoes=undoes)
        return Outcome()

    async def _remove(
        self, args: OfBalancer, nodes: Sequence[Node], ctx: StepContext, *, undoes: bool = False
    ) -> Outcome:
        """By name: a machine that is dead has no address any more that could be asked for."""
        names = {node.name for node in nodes}
        await self._change(
            args, ctx, "remove", (), lambda routes: routes.without_servers(names), names=names, undoes=undoes
        )
        return Outcome()

    async def _change(
        self,
        args: OfBalancer,
        ctx: StepContext,
        verb: Verb,
        servers: tuple[Server, ...],
        changed: Callable[[Routes], Routes],
        *,
        names: set[str] | None = None,
        new: bool = False,
        undoes: bool = False,
    ) -> None:
        """A balancer that is dead holds up no change of the cluster: what is recorded reaches it when it is healed.

        Nor does one that refuses hold up the rollback (`undoes`) of a step of which nothing is recorded.
        """
        balancer = args.balancer
        async with self.records.changing(balancer.cluster, ctx.operation_id, new=new) as held:
            before = held.record.routes
            gone = tuple(one for one in before.servers if one.name in names) if names else ()
            change = RoutesChange(verb=verb, routes=changed(before), servers=servers or gone)
            work = make_it_so(self.deps, balancer, change, held, ctx)
            try:
                await self.deps.liveness.run_while_alive(work, Waiting(ctx, (balancer.node,)))
            except StepError as error:
                is_left = isinstance(error, DeadMachine) or (undoes and change.routes == before)
                if new or not is_left:
                    raise
                ctx.progress(f"left for the load balancer's next change or heal: {error.detail}")
            machine = await ctx.machine(balancer.node.machine)
            held.save(replace(held.record, balancer=balancer, machine=machine, routes=change.routes))


async def make_it_so(
    deps: Dependencies, balancer: Balancer, change: RoutesChange, held: Held, ctx: StepContext
) -> None:
    host = await deps.connector.host(balancer.node, ctx)
    async with waiting_for_answers(deps, balancer.node, ctx):
        if balancer.script is None:
            await apply_template(host, balancer.node, change, held.revision)
        else:
            await run_script_of(deps, host, balancer.node, balancer.script, change, held.revision, ctx)


@asynccontextmanager
async def waiting_for_answers(deps: Dependencies, node: Node, ctx: StepContext) -> AsyncIterator[None]:
    """An error that may pass is told when the machine answers again: all tries are over before one counts as dead.

    Whoever runs this watches its liveness meanwhile, which ends the wait.
    """
    try:
        yield
    except StepError as error:
        pauses = Backoff(deps.limits.confirm, deps.limits.between)
        while error.temporary and not await deps.liveness.answers(node, None, ctx):
            await pauses.pause()
        raise


async def servers_of(nodes: Sequence[Node], ctx: StepContext) -> tuple[Server, ...]:
    """Where the cluster's traffic reaches them."""
    return tuple([Server(name=node.name, address=await address_of(node, ctx), master=node.master) for node in nodes])
