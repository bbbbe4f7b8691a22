"""Nodes leave by remove-node.yml; and nodes that join later find a master that is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from slipway.cluster.naming import API_PORT, host_and_port
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import address_of
from slipway.kube.interface import KubeApi
from slipway.kubespray.arguments import PointClusterInfo, RemoveNodes
from slipway.kubespray.steps.playbook import dead_nodes, limit_options, run_to_end, variable_options
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

REMOVE = "remove-node.yml"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
KUBEADM_CONFIG = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
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
    """Both have had the first master's address since the cluster began, and that master may be another one now.

    Who joins asks where cluster-info says; a master then asks where kubeadm-config says, and would wait for nobody.
    """
    places = [host_and_port(await address_of(node, ctx), API_PORT) for node in args.cluster.masters]
    async with deps.connector.api(args.cluster, ctx) as api:
        await _point(api, CLUSTER_INFO, "kubeconfig", ("clusters", 0, "cluster", "server"), places, "https://")
        await _point(api, KUBEADM_CONFIG, "ClusterConfiguration", ("controlPlaneEndpoint",), places)
    return Outcome()


async def _point(
    api: KubeApi, path: str, key: str, where: Sequence[str | int], places: Sequence[str], scheme: str = ""
) -> None:
    """To the first of the places, unless it leads to one of them already."""
    document = yaml.safe_load((await api.get(path)).get("data", {}).get(key, "")) or {}
    *parents, last = where
    found: Any = document
    try:
        for step in parents:
            found = found[step]
        now = found[last]
    except (KeyError, IndexError, TypeError):
        raise StepError(f"The ConfigMap {path.rpartition('/')[2]} names no API server in its {key}.") from None
    if now not in {f"{scheme}{place}" for place in places}:
        found[last] = f"{scheme}{places[0]}"
        await api.patch(path, {"data": {key: yaml.safe_dump(document)}})
