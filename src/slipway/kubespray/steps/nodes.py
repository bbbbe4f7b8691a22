"""Nodes leave by remove-node.yml; and nodes that join later find a master that is there."""

from __future__ import annotations

from typing import Any

import yaml

from slipway.cluster.naming import API_PORT, host_and_port
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import address_of
from slipway.kubespray.arguments import PointClusterInfo, RemoveNodes
from slipway.kubespray.steps.playbook import dead_nodes, limit_options, run_to_end, variable_options
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

REMOVE = "remove-node.yml"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
# Asked of nobody: kubespray would wait for a person to type yes.
CONFIRMED = {"skip_confirmation": True}
DEAD = {"reset_nodes": False, "allow_ungraceful_removal": True}
ANSWER_SECONDS = 10.0


async def remove_nodes(deps: Dependencies, args: RemoveNodes, ctx: StepContext) -> Outcome:
    """The dead first, in a run of their own: of them only what the cluster knows can be removed."""
    off = await dead_nodes(deps, args.nodes, ctx)
    silent = {
        node.name
        for node in args.leaving
        if node.name in off or not await deps.liveness.answers(node, args.cluster, ctx, ANSWER_SECONDS)
    }
    for names, more in (
        ([node.name for node in args.leaving if node.name in silent], DEAD),
        ([node.name for node in args.leaving if node.name not in silent], {}),
    ):
        if names:
            variables: dict[str, Any] = {"node": ",".join(names), **CONFIRMED, **more}
            # A run for the dead asks none of them anything, so it needs no limit, which would leave them out.
            limit = [] if more else limit_options((), off | silent)
            options = [*limit, *variable_options(variables)]
            await run_to_end(deps, args, REMOVE, options, ctx)
    return Outcome()


async def point_cluster_info(deps: Dependencies, args: PointClusterInfo, ctx: StepContext) -> Outcome:
    """The first master's address was written there when the cluster began, and that master may be another one now."""
    wanted = f"https://{host_and_port(await address_of(args.cluster.masters[0], ctx), API_PORT)}"
    masters = {f"https://{host_and_port(await address_of(node, ctx), API_PORT)}" for node in args.cluster.masters}
    async with deps.connector.api(args.cluster, ctx) as api:
        info = await api.get(CLUSTER_INFO)
        kubeconfig = yaml.safe_load(info.get("data", {}).get("kubeconfig", "")) or {}
        try:
            cluster = kubeconfig["clusters"][0]["cluster"]
        except (KeyError, IndexError, TypeError):
            raise StepError("The ConfigMap kube-public/cluster-info names no API server.") from None
        if cluster.get("server") not in masters:
            cluster["server"] = wanted
            await api.patch(CLUSTER_INFO, {"data": {"kubeconfig": yaml.safe_dump(kubeconfig)}})
    return Outcome()
