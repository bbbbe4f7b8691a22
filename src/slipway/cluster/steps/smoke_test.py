"""The smoke test of a cluster: its DNS is up, and a pod runs."""

from __future__ import annotations

import re

from slipway.cluster.containerd_config import DEFAULT_REPOSITORY
from slipway.cluster.steps.arguments import SmokeTest
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.versions import Version, version
from slipway.kube import paths
from slipway.kube.interface import KubeApi, Object
from slipway.kube.waiting import wait_for_deployment, wait_for_pod
from slipway.model.action import StepContext
from slipway.model.machine import Outcome

NAMESPACE = "kube-system"
POD = "slipway-smoke"
SECONDS = 240.0
PAUSE = re.compile(r"/pause:[\w.-]+$")


async def smoke_test(deps: Dependencies, args: SmokeTest, ctx: StepContext) -> Outcome:
    async with deps.connector.api(args.cluster, ctx) as api:
        await wait_for_deployment(api, NAMESPACE, "coredns", SECONDS)
        await api.apply(_pod(await _image(api, args)))
        await wait_for_pod(api, NAMESPACE, POD, SECONDS)
        await api.delete(paths.pod(NAMESPACE, POD), grace=0)
    return Outcome()


async def _image(api: KubeApi, args: SmokeTest) -> str:
    """The one that every node has for its pods' sandboxes. Of nodes that others made, one that a node tells of."""
    if args.foreign:
        images = [name for node in await api.list("/api/v1/nodes") for one in node.get("status", {}).get("images", ())
                for name in one.get("names", ())]  # fmt: skip
        if found := next((name for name in images if PAUSE.search(name)), None):
            return str(found)
    return f"{args.cluster.image_repository or DEFAULT_REPOSITORY}/pause:{(await _version(api)).needs.pause}"


def _pod(image: str) -> Object:
    """It may run on a master too, where there are no workers."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "slipway"}},
        "spec": {
            "containers": [{"name": "pause", "image": image}],
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        },
    }


async def _version(api: KubeApi) -> Version:
    return version((await api.get("/version"))["gitVersion"])
