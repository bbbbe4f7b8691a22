"""Every action of a cluster's plans, by name. A name comes from the type of the arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
from slipway.cluster.steps.world import World
from slipway.model.action import Action, StepContext
from slipway.model.machine import Outcome

PREFIX = "kubernetes"
Hand = Callable[[World, Any, StepContext], Awaitable[Outcome]]


def all_of(world: World) -> tuple[Action[Any], ...]:
    def action(
        kind: type[Any], run: Hand, undo: Hand | None = None, *, seconds: float = 300.0, irreversible: bool = False
    ) -> Action[Any]:
        undoing = partial(undo, world) if undo else None
        return Action(action_name(kind), kind, partial(run, world), undoing, irreversible=irreversible, timeout=seconds)

    return (
        action(args.Prepare, prepare.prepare, seconds=1200.0),
        action(args.Balance, balance.balance),
        action(args.Init, bootstrap.init, seconds=1200.0),
        action(args.Join, bootstrap.join, bootstrap.unjoin, seconds=1200.0),
        action(args.Name, scripted.name),
        action(args.Script, scripted.script, bootstrap.unjoin, seconds=3600.0),
        action(args.Helm, helm.helm, seconds=2400.0),
        action(args.Ready, nodes.ready, seconds=400.0),
        action(args.Network, network.network),
        action(args.Smoke, proof.smoke, seconds=600.0),
        action(args.Register, registration.register, registration.undo_register),
        action(args.Unregister, registration.unregister, irreversible=True),
        action(args.Drain, nodes.drain, nodes.undrain),
        action(args.Permit, etcd.permit),
        action(args.Leave, etcd.leave, irreversible=True),
        action(args.Forget, nodes.forget),
        action(args.Fetch, upgrade.fetch, seconds=3600.0),
        action(args.Examine, upgrade.examine),
        action(args.Upgrade, upgrade.upgrade, irreversible=True, seconds=1500.0),
        action(args.Restart, upgrade.restart),
        action(args.Uncordon, upgrade.uncordon, seconds=500.0),
        action(args.Record, upgrade.record),
    )


def action_name(kind: type[Any]) -> str:
    return f"{PREFIX}.{kind.__name__.lower()}"
