"""Pods in every shape that a drain treats in its own way."""

from __future__ import annotations

from typing import Any

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.drain import gather_or_cancel
from slipway.kube.interface import Object
from slipway.kube.pods import MIRROR
from tests.lab.kube.fake_kubelet import FakeNode

CONTAINERS = [{"name": "main", "image": "registry.slipway.test/pause:1"}]


class Workloads:
    """Those of one namespace on one node."""

    def __init__(self, api: Api, namespace: str, node: FakeNode) -> None:
        self.api, self.namespace, self.node = api, namespace, node

    async def pods(self, *names: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
        """Pods that have a controller, which never makes others: it is a mere ConfigMap."""
        owner = await self.api.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "controller", "namespace": self.namespace},
            }
        )
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "controller",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        metadata = {"ownerReferences": [reference], "labels": labels or {"app": "ours"}}
        await gather_or_cancel(self.pod(name, metadata, **spec) for name in names)

    async def pod(self, name: str, metadata: Object | None = None, **spec: Any) -> None:
        """One without a controller."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **(metadata or {})},
            "spec": {"nodeName": self.node.name, "containers": CONTAINERS, **spec},
        }
        await self.api.create(paths.pods(self.namespace), body)

    async def static_pod(self, name: str) -> None:
        await self.pod(name, {"annotations": {MIRROR: "any"}}, automountServiceAccountToken=False)

    async def budget(self, name: str, least: int) -> None:
        await self.api.apply(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "ours"}}},
            }
        )

    async def daemon_set(self) -> None:
        await self.api.apply(self._controlled("DaemonSet", "daemon", {}))

    async def deployment(self, replicas: int) -> None:
        await self.api.apply(self._controlled("Deployment", "web", {"replicas": replicas}))

    def _controlled(self, kind: str, name: str, spec: Object) -> Object:
        labels = {"app": name}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": CONTAINERS, "nodeSelector": {"kubernetes.io/hostname": self.node.name}},
        }
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {**spec, "selector": {"matchLabels": labels}, "template": template},
        }

    async def running(self) -> dict[str, str]:
        """Names and uids of the pods on the node that are not about to go."""
        found = await self.api.list(paths.pods(self.namespace), fieldSelector=f"spec.nodeName={self.node.name}")
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in found
            if "deletionTimestamp" not in pod["metadata"]
        }
