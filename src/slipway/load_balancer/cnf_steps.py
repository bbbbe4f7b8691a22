"""What a CNF's hooks do to the balancer of the cluster that it is on: its front-ends come, follow and go.

The balancer is found by the VIM of the CNF, in the CNF's own project: no parameter leads to another one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from slipway.cluster.spec import SshLogin, StepArguments
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.liveness import DeadMachine, Waiting
from slipway.cluster.steps.machine import address_of
from slipway.kube.interface import KubeApi
from slipway.load_balancer.balancer import Balancer
from slipway.load_balancer.cluster_context import ClusterContext, ClusterContexts, NotSetUp
from slipway.load_balancer.cnf_parameters import PATH
from slipway.load_balancer.configure import RoutesChange, Verb, apply_template, run_script_of
from slipway.load_balancer.records import BalancerRecord, BalancerRecords, Held
from slipway.load_balancer.routes import FrontEnd, Routes
from slipway.load_balancer.services import exposed_by
from slipway.load_balancer.steps import waiting_for_answers
from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.errors import StepError
from slipway.model.instance import VnfInstance
from slipway.model.machine import Outcome

RECORDED = "loadBalancer"  # in instantiatedVnfInfo.metadata: where others reach the CNF
SECONDS = 1800.0


class OfCnf(StepArguments, frozen=True, kw_only=True):
    """What the request says of the balancer: where it is said to be, who logs in, and a script of the CNF's package."""

    ssh_ip: str | None = None
    login: SshLogin | None = None
    script: str | None = None


class CheckBalancer(OfCnf, frozen=True, kw_only=True):
    """Before anything is made: that there is one, and that the ports which manifests name are free."""

    front_ends: tuple[FrontEnd, ...] = ()


class Expose(OfCnf, frozen=True, kw_only=True):
    """The ports that the VNF's Services have now, and no others. `first`: there should be some."""

    first: bool = False


class Withdraw(OfCnf, frozen=True, kw_only=True):
    """All front-ends of the VNF."""


class NoBalancer(StepError):
    """The VIM that a VNF is on has no load balancer that the VNF may use."""


class NotThisOne(StepError):
    """What the request says of the balancer is not so: nothing is done to it."""


class VnfRecords(Protocol):
    async def instance(self, operation_id: str, *, ahead: bool) -> VnfInstance:
        """`ahead`: as it would be if the operation ended well now."""
        ...


@dataclass(frozen=True)
class FoundBalancer:
    """The balancer that a CNF is behind."""

    cluster_id: str
    record: BalancerRecord
    balancer: Balancer
    ctx: ClusterContext


@dataclass(frozen=True)
class CnfSteps:
    """`api`: of the VIM that a VNF is on."""

    deps: Dependencies
    records: BalancerRecords
    clusters: ClusterContexts
    vnfs: VnfRecords
    api: Callable[[VimConnection], AbstractAsyncContextManager[KubeApi]]

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return (
            Action("cnf_nodeport.check", CheckBalancer, self.check),
            Action("cnf_nodeport.expose", Expose, self.expose, self.undo, timeout=SECONDS),
            Action("cnf_nodeport.withdraw", Withdraw, self.withdraw, self.undo, timeout=SECONDS),
        )

    async def check(self, args: CheckBalancer, ctx: StepContext) -> Outcome:
        found = await self._find(args, ctx)
        _refuse_taken(found.record.routes, ctx.instance_id, args.front_ends)
        return Outcome()

    async def expose(self, args: Expose, ctx: StepContext) -> Outcome:
        found = await self._find(args, ctx)
        async with self.api(await ctx.connection()) as api:
            front_ends = await exposed_by(await self.vnfs.instance(ctx.operation_id, ahead=True), api)
        if args.first and not front_ends:
            raise StepError(
                "None of the VNF's Services is of type NodePort, so nothing of it can be reached by the load balancer.",
                cure="give a Service the type NodePort, or take the hook out of the VNFD.",
            )

        def exposed(routes: Routes) -> Routes:
            _refuse_taken(routes, ctx.instance_id, front_ends)
            return routes.exposing(ctx.instance_id, front_ends, ctx.operation_id)

        found = await self._change(args, found, ctx, exposed)
        reached = await address_of(found.balancer.node, found.ctx, found.balancer.node.ssh)
        told = {"address": reached, "frontEnds": msgspec.to_builtins(list(front_ends))}
        return Outcome(instance={"instantiatedVnfInfo": {"metadata": {RECORDED: told}}})

    async def withdraw(self, args: Withdraw, ctx: StepContext) -> Outcome:
        """No balancer, and none that is out of reach or order, keeps a VNF from being terminated.

        What could not be taken away there goes with the balancer's next change, or its heal; it leads nowhere.
        """
        gone = Outcome(instance={"instantiatedVnfInfo": {"metadata": {RECORDED: None}}})
        try:
            found = await self._find(args, ctx)
        except StepError as error:
            if error.temporary and not isinstance(error, NotSetUp):
                raise
            return gone  # there is none, or nobody can log in to it any more
        await self._change(
            args,
            found,
            ctx,
            lambda routes: routes.exposing(ctx.instance_id, (), ctx.operation_id),
            left_for_later=(StepError,),
        )
        return gone

    async def undo(self, args: OfCnf, ctx: StepContext) -> Outcome:
        """A step that found no balancer it could use has changed none: its rollback must not fail for that again.

        Nor for one that is dead: what is recorded reaches it when it is healed. Nor, where nothing is recorded of the
        operation, for one that refuses the login or the change: it refused the step as well.
        """
        with contextlib.suppress(NoBalancer, NotThisOne, NotSetUp):
            found = await self._find(args, ctx)
            now = found.record.routes
            is_recorded = now.taken_back(ctx.instance_id, ctx.operation_id) != now
            await self._change(
                args,
                found,
                ctx,
                lambda routes: routes.taken_back(ctx.instance_id, ctx.operation_id),
                left_for_later=(DeadMachine if is_recorded else StepError,),
            )
        return Outcome()

    async def _change(
        self,
        args: OfCnf,
        found: FoundBalancer,
        ctx: StepContext,
        changed: Callable[[Routes], Routes],
        *,
        left_for_later: tuple[type[StepError], ...] = (),
    ) -> FoundBalancer:
        """The balancer as it was changed: who had it meanwhile may have healed it, and its machine is another one.

        `left_for_later`: errors of the machine after which the change is recorded all the same.
        """
        async with self.records.changing(found.cluster_id, ctx.operation_id) as held:
            before, after = held.record.routes, changed(held.record.routes)
            try:
                now = await self.clusters.of(found.cluster_id, held.record, ctx, args.login)
                found = FoundBalancer(found.cluster_id, held.record, *now)
                for change in _changes(before, after):
                    work = self._make_it_so(args, found, held, change, ctx)
                    await self.deps.liveness.run_while_alive(work, Waiting(found.ctx, (found.balancer.node,)))
            except left_for_later as error:
                ctx.progress(f"left on the load balancer for now: {error.detail}")
            held.save(replace(held.record, routes=after))
        return found

    async def _make_it_so(
        self, args: OfCnf, found: FoundBalancer, held: Held, change: RoutesChange, ctx: StepContext
    ) -> None:
        node = found.balancer.node
        host = await self.deps.connector.host(node, found.ctx)
        async with waiting_for_answers(self.deps, node, found.ctx):
            if found.balancer.script is None:
                await apply_template(host, node, change, held.revision)
                return
            own = (args.script, ctx) if args.script else (found.balancer.script, found.ctx)
            await run_script_of(self.deps, host, node, own[0], change, held.revision, own[1])

    async def _find(self, args: OfCnf, ctx: StepContext) -> FoundBalancer:
        connection = await ctx.connection()
        behind = await self.records.cluster_behind(connection.vim_id, connection.project) if connection.vim_id else None
        if behind is None:
            raise NoBalancer(
                f"The VIM {connection.vim_id or 'of the request'} is no cluster of this project with a load balancer.",
                cure="instantiate the VNF on a cluster that was made with external_lb_param, naming it as registered "
                "VIM; or take the hook out of the VNFD.",
            )
        cluster_id, record = behind
        balancer, context = await self.clusters.of(cluster_id, record, ctx, args.login)
        if isinstance(args, Withdraw):  # whatever the request said of it, which may be old
            return FoundBalancer(cluster_id, record, balancer, context)
        _refuse_other_address(args, record)
        if args.script is not None and balancer.script is None:
            raise NotThisOne(
                f"{PATH}.script_path: the load balancer of cluster {cluster_id} is set up from Slipway's template, "
                "which a script would be in conflict with.",
                cure="leave script_path out.",
            )
        return FoundBalancer(cluster_id, record, balancer, context)


def _changes(before: Routes, after: Routes) -> Iterable[RoutesChange]:
    """One for a template, which is always the whole; a script is told apart what goes and what comes."""
    old, new = set(before.front_ends), set(after.front_ends)
    gone, come = tuple(sorted(old - new)), tuple(sorted(new - old))
    verbs: list[tuple[Verb, tuple[FrontEnd, ...]]] = [("remove", gone)] if gone else []
    if come or not gone:
        verbs.append(("add", come))
    return [RoutesChange(verb=verb, routes=after, front_ends=front_ends) for verb, front_ends in verbs]


def _refuse_taken(routes: Routes, owner: str, front_ends: Iterable[FrontEnd]) -> None:
    for one, held_by in routes.taken_by_others(owner, front_ends):
        raise StepError(
            f"Port {one.port} of the load balancer, wanted by Service {one.namespace}/{one.service}, is taken by "
            f"{held_by}.",
            cure="give the Service another nodePort.",
        )


def _refuse_other_address(args: OfCnf, record: BalancerRecord) -> None:
    if args.ssh_ip is None or record.machine is None:
        return
    ports = record.machine.ports
    own = [one.ip for port in ports for one in port.addresses if one.ip]
    own += [address for port in ports for address in port.floating.values()]
    if args.ssh_ip not in own:
        raise NotThisOne(
            f"{PATH}.external_lb_param.ssh_ip: {args.ssh_ip} is not an address of the cluster's load balancer, which "
            f"has: {', '.join(own) or 'none'}.",
            cure="write one of those, or leave external_lb_param out.",
        )
