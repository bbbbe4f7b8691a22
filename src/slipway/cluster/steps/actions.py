"""Every action of a cluster's plans, by name. A name comes from the type of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Flag, auto
from functools import partial
from typing import Any

from msgspec.structs import replace

from slipway.cluster.steps import arguments as args
from slipway.cluster.steps import (
    bootstrap,
    etcd,
    helm,
    networking,
    node_script,
    nodes,
    persistent_volumes,
    prepare,
    registration,
    registries,
    smoke_test,
    storage,
    upgrade,
)
from slipway.cluster.steps import storage_arguments as storage_args
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.liveness import Waiting
from slipway.cluster.steps.template_addresses import refuse_shared_address, with_template_addresses
from slipway.model.action import Action, StepContext
from slipway.model.machine import Outcome

PREFIX = "kubernetes"
STORED_NAMES: dict[type[Any], str] = {  # of steps in plans of older versions, which may still run
    args.CheckQuorum: "permit",
    args.DeleteNode: "forget",
    args.InstallNetwork: "network",
    args.LeaveEtcd: "leave",
    args.RecordVersion: "record",
    args.RunNodeScript: "script",
    args.SetHostName: "name",
    args.SmokeTest: "smoke",
}
FIRST_CONTACTS = (args.Prepare, args.SetHostName, storage_args.MountVolumes)  # with a machine that was just made
StepFunction = Callable[[Dependencies, Any, StepContext], Coroutine[Any, Any, Outcome]]


def cluster_actions(deps: Dependencies) -> tuple[Action[Any], ...]:
    def action(
        kind: type[Any],
        run: StepFunction,
        undo: StepFunction | None = None,
        *,
        on: Awaited,
        seconds: float = 300.0,
    ) -> Action[Any]:
        doing = partial(_run_with_address, deps, run, on)
        undoing = partial(_run_while_alive, deps, undo, on & Awaited.API) if undo else None
        return Action(action_name(kind), kind, doing, undoing, timeout=seconds)

    node, api, both = Awaited.NODE, Awaited.API, Awaited.NODE | Awaited.API
    return (
        action(args.Prepare, prepare.prepare, on=node, seconds=1200.0),
        action(args.CheckRegistries, registries.check, on=node),
        action(args.ConnectRegistries, registries.connect, registries.disconnect, on=node, seconds=1200.0),
        action(args.Balance, networking.balance, on=node),
        action(args.Init, bootstrap.init, on=node, seconds=1200.0),
        action(args.Join, bootstrap.join, bootstrap.unjoin, on=both, seconds=1200.0),
        action(args.SetHostName, node_script.name, on=node, seconds=900.0),
        action(args.RunNodeScript, node_script.script, bootstrap.unjoin, on=both, seconds=3600.0),
        action(args.Helm, helm.helm, on=node, seconds=2400.0),
        action(args.Ready, nodes.ready, on=both, seconds=400.0),
        action(args.InstallNetwork, networking.network, on=api),
        action(args.SmokeTest, smoke_test.smoke_test, on=both, seconds=600.0),
        action(args.Register, registration.register, registration.undo_register, on=api),
        action(args.Unregister, registration.unregister, on=Awaited(0)),
        action(args.Drain, nodes.drain, nodes.undrain, on=api),
        action(args.CheckQuorum, etcd.check_quorum, on=api),
        action(args.LeaveEtcd, etcd.leave_etcd, on=api),
        action(args.DeleteNode, nodes.delete_node, on=api),
        action(args.Fetch, upgrade.fetch, on=node, seconds=3600.0),
        action(args.Examine, upgrade.examine, on=both),
        action(args.Upgrade, upgrade.upgrade, on=both, seconds=1500.0),
        action(args.Restart, upgrade.restart, on=both),
        action(args.Uncordon, upgrade.uncordon, on=both, seconds=500.0),
        action(args.RecordVersion, upgrade.record, on=api),
        action(storage_args.MountVolumes, storage.mount_volumes, on=node, seconds=900.0),
        action(storage_args.ServeNfs, storage.serve_nfs, on=node, seconds=1200.0),
        action(storage_args.NfsClient, storage.nfs_client, on=node, seconds=1000.0),
        action(
            storage_args.RegisterVolumes,
            persistent_volumes.register_volumes,
            persistent_volumes.undo_register_volumes,
            on=api,
        ),
        action(storage_args.CheckVolumes, persistent_volumes.check_volumes, on=api),
        action(
            storage_args.DeleteVolumes,
            persistent_volumes.delete_volumes,
            persistent_volumes.undo_delete_volumes,
            on=api,
            seconds=600.0,
        ),
    )


class Awaited(Flag):
    """What a step can't do without: its node, the API of the cluster. Neither is waited for once it is dead."""

    NODE = auto()
    API = auto()


async def _run_with_address(
    deps: Dependencies, function: StepFunction, on: Awaited, given: Any, ctx: StepContext
) -> Outcome:
    """The one place where a virtual address of the VIM's template is looked up. No undo needs it."""
    if isinstance(given, args.OfCluster):
        given = replace(given, cluster=await with_template_addresses(given.cluster, ctx))
    if isinstance(given, FIRST_CONTACTS):
        shared = given.cluster_ip if isinstance(given, args.SetHostName) else given.cluster.vip
        await refuse_shared_address(given.node, shared, ctx)
        await deps.liveness.wait_for_boot(given.node, ctx)
    return await _run_while_alive(deps, function, on, given, ctx)


async def _run_while_alive(
    deps: Dependencies, function: StepFunction, on: Awaited, given: Any, ctx: StepContext
) -> Outcome:
    return await deps.liveness.run_while_alive(function(deps, given, ctx), _waiting(given, on, ctx))


def _waiting(given: Any, on: Awaited, ctx: StepContext) -> Waiting:
    own = (given.node,) if isinstance(given, args.OnNode | args.SetHostName) else ()
    awaited = (given.nodes if isinstance(given, args.SmokeTest) else own) if Awaited.NODE in on else ()
    begins = isinstance(given, args.RunNodeScript) and given.first
    if Awaited.API not in on or begins or not isinstance(given, args.OfCluster):
        return Waiting(ctx, awaited)
    masters = (*given.cluster.masters, *(node for node in own if node.master and node not in given.cluster.masters))
    return Waiting(ctx, awaited, masters, given.cluster)


def action_name(kind: type[Any]) -> str:
    return f"{PREFIX}.{STORED_NAMES.get(kind) or kind.__name__.lower()}"
