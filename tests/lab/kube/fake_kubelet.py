"""A node without a machine: it says that it is Ready, that its pods run, and that deleted ones have ended.

Those of Jobs run to a good end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from slipway.kube import paths
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi, Object
from slipway.kube.pods import controller_kind

INTERVAL = 0.2  # seconds
HEARTBEAT = 10.0


@dataclass
class FakeNode:
    api: KubeApi
    name: str
    keeps: set[str] = field(default_factory=set)  # names of pods that do not end
    starts: bool = True  # says of new pods that they run

    async def report(self, ready: str = "True", reason: str = "KubeletReady", message: str = "well") -> None:
        condition = {
            "type": "Ready",
            "status": ready,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": _now(),
        }
        resources = {"cpu": "64", "memory": "64Gi", "pods": "1000"}
        status = {"conditions": [condition], "capacity": resources, "allocatable": resources}
        await self.api.patch(f"{paths.node(self.name)}/status", {"status": status}, "strategic")

    async def tend(self) -> None:
        """One look at all pods of the node."""
        pods = await self.api.list(paths.PODS, fieldSelector=f"spec.nodeName={self.name}")
        await gather_or_cancel(self._tend(pod) for pod in pods)

    async def run(self) -> None:
        beat = 0.0
        while True:
            await self.tend()
            await asyncio.sleep(INTERVAL)
            beat += INTERVAL
            if beat > HEARTBEAT:
                beat = 0.0
                await self.report()

    async def _tend(self, pod: Object) -> None:
        metadata = pod["metadata"]
        path = paths.pod(metadata["namespace"], metadata["name"])
        if "deletionTimestamp" in metadata:
            if metadata["name"] not in self.keeps:
                await self.api.delete(path, uid=metadata["uid"], grace=0)
        elif self.starts and "startTime" not in pod["status"]:
            await _say(self.api, path, "Succeeded" if controller_kind(pod) == "Job" else "Running")


@asynccontextmanager
async def fake_node(api: KubeApi, *, tended: bool = True) -> AsyncIterator[FakeNode]:
    """`tended`: somebody looks after its pods; else a machine that is gone."""
    node = FakeNode(api, f"node-{uuid4().hex[:8]}")
    labels = {"kubernetes.io/hostname": node.name}
    await api.create(
        paths.NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": labels}}
    )
    await node.report()
    task = asyncio.create_task(node.run()) if tended else None
    try:
        yield node
    finally:
        if task:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled(), task.exception()
        await _clear(node)


async def finish(api: KubeApi, namespace: str, name: str, phase: str) -> None:
    await _say(api, paths.pod(namespace, name), phase)


async def _say(api: KubeApi, path: str, phase: str) -> None:
    ready = "True" if phase == "Running" else "False"
    conditions = [{"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": ready}]
    status = {"phase": phase, "startTime": _now(), "conditions": conditions}
    try:
        await api.patch(f"{path}/status", {"status": status}, "strategic")
    except KubeError as error:
        if error.status != 404:  # gone since it was listed
            raise


async def _clear(node: FakeNode) -> None:
    """Without a machine nobody would end what is left."""
    left = await node.api.list(paths.PODS, fieldSelector=f"spec.nodeName={node.name}")
    await node.api.delete(paths.node(node.name))
    await gather_or_cancel(
        node.api.delete(paths.pod(pod["metadata"]["namespace"], pod["metadata"]["name"]), grace=0) for pod in left
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
