"""Every action of the plans of clusters by kubespray, by name. A name comes from the type of the arguments."""

from __future__ import annotations

from functools import partial
from typing import Any

from slipway.cluster.steps.dependencies import Dependencies
from slipway.kubespray import arguments as args
from slipway.kubespray.arguments import kubespray_action
from slipway.kubespray.steps import inventory, nodes, playbook, server
from slipway.model.action import Action

RUN_SECONDS = 24 * 3600.0  # a run has its own limit, and each step says what that is


def kubespray_actions(deps: Dependencies) -> tuple[Action[Any], ...]:
    def action(kind: type[Any], run: Any, undo: Any = None, *, seconds: float = 300.0) -> Action[Any]:
        undoing = partial(undo, deps) if undo else None
        return Action(kubespray_action(kind), kind, partial(run, deps), undoing, timeout=seconds)

    return (
        action(args.PrepareServer, server.prepare_server, server.undo_prepare_server),
        action(args.WriteInventory, inventory.write_inventory, inventory.undo_write_inventory),
        action(args.RunPlaybook, playbook.run_playbook, playbook.undo_run_playbook, seconds=RUN_SECONDS),
        action(args.RemoveNodes, nodes.remove_nodes, seconds=RUN_SECONDS),
        action(args.PointClusterInfo, nodes.point_cluster_info),
        action(args.CleanServer, server.clean_server),
    )
