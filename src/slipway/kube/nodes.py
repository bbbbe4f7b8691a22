"""A node of a cluster as the scheduler sees it: may it get pods, and does it answer."""

from __future__ import annotations

import asyncio

from slipway.kube import paths
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi, Object
from slipway.kube.pods import condition


async def find_node(api: KubeApi, name: str) -> Object | None:
    try:
        return await api.get(paths.node(name))
    except KubeError as error:
        if error.status == 404:
            return None
        raise


def node_is_ready(node: Object) -> bool:
    """Its kubelet says so, and has done so lately: else the cluster itself turns the word into Unknown."""
    return condition(node, "Ready").get("status") == "True"


def kubelet_version(node: Object) -> str | None:
    """As its kubelet tells it: v1.34.4."""
    version: str | None = ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion")
    return version


async def kubelet_answers(api: KubeApi, name: str, limit: float = 10.0) -> bool:
    """Asked now, through the API server: the cluster's own word on a node that has just died is old."""
    try:
        async with asyncio.timeout(limit):
            return await api.text(f"{paths.node(name)}/proxy/healthz") == "ok"
    except (KubeError, TimeoutError):
        return False


async def unreachable_nodes(api: KubeApi) -> list[str]:
    """Those that are not Ready, says the cluster, and whose kubelets do not answer either."""
    doubtful = [node["metadata"]["name"] for node in await api.list(paths.NODES) if not node_is_ready(node)]
    answers = await asyncio.gather(*(kubelet_answers(api, name) for name in doubtful))
    return [name for name, answered in zip(doubtful, answers, strict=True) if not answered]


async def cordon(api: KubeApi, name: str) -> bool:
    """No new pods from now on. True when it was us: an undo leaves a node alone that was cordoned before."""
    node = await find_node(api, name)
    if node is None or (node.get("spec") or {}).get("unschedulable"):
        return False
    return await _set_unschedulable(api, name, True)


async def uncordon(api: KubeApi, name: str) -> None:
    await _set_unschedulable(api, name, None)


async def _set_unschedulable(api: KubeApi, name: str, value: bool | None) -> bool:
    """False when the node is not there."""
    try:
        await api.patch(paths.node(name), {"spec": {"unschedulable": value}})
    except KubeError as error:
        if error.status == 404:
            return False
        raise
    return True
