"""Every action of a cluster's plans, by name. A name comes from the type of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Flag, auto
from functools import partial
from typing import Any

from slipway.cluster.steps import arguments as args
from slipway.cluster.steps import (
    balance,
    bootstrap,
    etcd,
    helm,
    network,
    nodes,
    prepare,
    proof,
    registration,
    scripted,
    upgrade,
)
from slipway.cluster.steps.liveness import Waiting
from slipway.cluster.steps.world import World
from slipway.model.action import Action, StepContext
from slipway.model.machine import Outcome

PREFIX = "kubernetes"
Hand = Callable[[World, Any, StepContext], Coroutine[Any, Any, Outcome]]


def all_of(world: World) -> tuple[Action[Any], ...]:
    def action(
        kind: type[Any],
        run: Hand,
        undo: Hand | None = None,
        *,
        on: Awaited,
        seconds: float = 300.0,
    ) -> Action[Any]:
        doing = partial(_guarded, world, run, on)
        undoing = partial(_guarded, world, undo, on & Awaited.API) if undo else None
        return Action(action_name(kind), kind, doing, undoing, timeout=seconds)

    node, api, both = Awaited.NODE, Awaited.API, Awaited.NODE | Awaited.API
    return (
        action(args.Prepare, prepare.prepare, on=node, seconds=1200.0),
        action(args.Balance, balance.balance, on=node),
        action(args.Init, bootstrap.init, on=node, seconds=1200.0),
        action(args.Join, bootstrap.join, bootstrap.unjoin, on=both, seconds=1200.0),
        action(args.Name, scripted.name, on=node),
        action(args.Script, scripted.script, bootstrap.unjoin, on=both, seconds=3600.0),
        action(args.Helm, helm.helm, on=node, seconds=2400.0),
        action(args.Ready, nodes.ready, on=both, seconds=400.0),
        action(args.Network, network.network, on=api),
        action(args.Smoke, proof.smoke, on=both, seconds=600.0),
        action(args.Register, registration.register, registration.undo_register, on=api),
        action(args.Unregister, registration.unregister, on=Awaited(0)),
        action(args.Drain, nodes.drain, nodes.undrain, on=api),
        action(args.Permit, etcd.permit, on=api),
        action(args.Leave, etcd.leave, on=api),
        action(args.Forget, nodes.forget, on=api),
        action(args.Fetch, upgrade.fetch, on=node, seconds=3600.0),
        action(args.Examine, upgrade.examine, on=both),
        action(args.Upgrade, upgrade.upgrade, on=both, seconds=1500.0),
        action(args.Restart, upgrade.restart, on=both),
        action(args.Uncordon, upgrade.uncordon, on=both, seconds=500.0),
        action(args.Record, upgrade.record, on=api),
    )


class Awaited(Flag):
    """What a step can't do without: its node, the API of the cluster. Neither is waited for once it is dead."""

    NODE = auto()
    API = auto()


async def _guarded(world: World, hand: Hand, on: Awaited, given: Any, ctx: StepContext) -> Outcome:
    return await world.liveness.guarded(hand(world, given, ctx), _waiting(given, on, ctx))


def _waiting(given: Any, on: Awaited, ctx: StepContext) -> Waiting:
    own = (given.node,) if isinstance(given, args.OnNode | args.Name) else ()
    awaited = (given.nodes if isinstance(given, args.Smoke) else own) if Awaited.NODE in on else ()
    begins = isinstance(given, args.Script) and given.first
    if Awaited.API not in on or begins or not isinstance(given, args.OfCluster):
        return Waiting(ctx, awaited)
    masters = (*given.site.masters, *(node for node in own if node.master and node not in given.site.masters))
    return Waiting(ctx, awaited, masters, given.site)


def action_name(kind: type[Any]) -> str:
    return f"{PREFIX}.{kind.__name__.lower()}"
