"""That the cluster works: its DNS is up, and a pod runs."""

from __future__ import annotations

from slipway.cluster.containerd_config import DEFAULT_REPOSITORY
from slipway.cluster.steps.arguments import Smoke
from slipway.cluster.steps.world import World
from slipway.cluster.versions import Version, version
from slipway.kube import paths
from slipway.kube.seam import KubeApi, Object
from slipway.kube.waiting import deployment_available, pod_running
from slipway.model.action import StepContext
from slipway.model.machine import Outcome

NAMESPACE = "kube-system"
POD = "slipway-smoke"
SECONDS = 240.0


async def smoke(world: World, args: Smoke, ctx: StepContext) -> Outcome:
    async with world.reach.api(args.site, ctx) as api:
        await deployment_available(api, NAMESPACE, "coredns", SECONDS)
        await api.apply(_pod(await _version(api), args.site.image_repository))
        await pod_running(api, NAMESPACE, POD, SECONDS)
        await api.delete(paths.pod(NAMESPACE, POD), grace=0)
    return Outcome()


def _pod(running: Version, image_repository: str | None) -> Object:
    """The image that every node has for its pods' sandboxes. It may run on a master too, where there are no workers."""
    image = f"{image_repository or DEFAULT_REPOSITORY}/pause:{running.needs.pause}"
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
