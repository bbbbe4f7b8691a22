"""One pod asked to leave, once: the API server lets it go, or says which disruption budget holds it."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.kube import paths
from slipway.kube.failure import BUDGET, TERMINATING, KubeError
from slipway.kube.pods import Pod
from slipway.kube.seam import KubeApi, Object


@dataclass(frozen=True)
class Eviction:
    pod: Pod
    held: str = ""  # why it was not let go; empty: it was, or is gone

    def __str__(self) -> str:
        return f"{self.pod} is held: {self.held}" if self.held else str(self.pod)


async def evict(api: KubeApi, pod: Pod) -> Eviction:
    try:
        await api.create(paths.pod(pod.namespace, pod.name, "eviction"), _request(pod))
    except KubeError as error:
        if error.status == 404 or (error.status == 403 and error.cause(TERMINATING)):
            return Eviction(pod)  # gone; or its namespace goes, and it with it
        # 429 is a budget, or a server with too much to do; 500 is what a pod of two budgets gets; 409 says that it
        # was changed meanwhile, or that another one has its name by now.
        if error.status == 409 or (error.status is not None and error.temporary):
            budget = error.cause(BUDGET)
            return Eviction(pod, held=budget.message if budget else error.detail.rstrip("."))
        raise
    return Eviction(pod)


def _request(pod: Pod) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": pod.namespace, "name": pod.name},
        "deleteOptions": {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}},
    }
