"""Credentials of a workload cluster: the kubeconfig that Cluster API keeps as a Secret of the management cluster."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from slipway.kube import paths
from slipway.kube.credentials import LARGEST, Credentials, from_kubeconfig
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi, ObjectApi, ObjectRef
from slipway.model.action import StepContext, VimConnection
from slipway.model.errors import StepError
from slipway.model.instance import VnfInstance
from slipway.model.machine import FoundObject
from slipway.model.vim import KUBERNETES
from slipway.waiting import Observation, wait_for

GROUP = "cluster.x-k8s.io/"
OBJECTS = "objects"  # in instantiatedVnfInfo.metadata
SECRET_SECONDS = 300.0  # that Cluster API has for the kubeconfig, once its objects are there

ManagementApi = Callable[[VimConnection], AbstractAsyncContextManager[ObjectApi]]


@dataclass(frozen=True)
class WorkloadCluster:
    """In clear: made for one step, never stored, never printed."""

    name: str
    namespace: str
    kubeconfig: str = field(repr=False)
    credentials: Credentials = field(repr=False)

    def digest(self, receiver: str) -> str:
        """What was sent to whom: the same digest means that there is nothing new for this receiver."""
        return sha256("\0".join((receiver, self.namespace, self.name, self.kubeconfig)).encode()).hexdigest()


def recorded_objects(vnf: VnfInstance) -> list[FoundObject]:
    info = vnf.instantiated_vnf_info
    return msgspec.convert(info.metadata.get(OBJECTS) or [] if info else [], list[FoundObject])


def recorded_cluster(vnf: VnfInstance) -> ObjectRef | None:
    """The one Cluster of a VNF, by its record; None when it has none. StepError when it has several."""
    found = [
        ObjectRef(one.api_version or "", one.kind, one.name, one.namespace or "default")
        for one in recorded_objects(vnf)
        if one.kind == "Cluster" and (one.api_version or "").startswith(GROUP)
    ]
    if len(found) > 1:
        raise StepError(f"The VNF has several: {', '.join(map(str, found))}.", cure="make a VNF of each.")
    return found[0] if found else None


class WorkloadClusters:
    """`management`: the API of the VIM that a VNF is on."""

    def __init__(self, management: ManagementApi, seconds: float = SECRET_SECONDS) -> None:
        self._management = management
        self._seconds = seconds

    async def get(self, vnf: VnfInstance, ctx: StepContext) -> WorkloadCluster:
        """As the management cluster has it now. It is waited for: Cluster API makes the Secret by itself."""
        named = recorded_cluster(vnf)
        if named is None:
            raise StepError(
                "The VNF has no workload cluster: none of its objects is a Cluster of cluster.x-k8s.io.",
                cure="add a Cluster to the package's manifests, or take the hook out of the VNFD.",
            )
        async with self.management(await ctx.connection()) as api:
            return await _fetched(api, named, self._seconds)

    def management(self, connection: VimConnection) -> AbstractAsyncContextManager[ObjectApi]:
        if connection.vim_type != KUBERNETES:
            raise StepError(f"A {connection.vim_type} is no management cluster; its VIM must be a {KUBERNETES}.")
        return self._management(connection)


async def _fetched(api: KubeApi, cluster: ObjectRef, seconds: float) -> WorkloadCluster:
    secret, namespace = f"{cluster.name}-kubeconfig", cluster.namespace or "default"
    path = paths.namespaced("/api/v1", namespace, "secrets", secret)
    found: dict[str, str] = {}

    async def look() -> Observation:
        nonlocal found
        try:
            found = (await api.get(path)).get("data") or {}
        except KubeError as error:
            if error.status != 404:
                raise
        return Observation("value" in found, "there is none yet")

    await wait_for(look, f"the kubeconfig of workload cluster {cluster.name} (Secret {secret})", seconds)
    try:
        text = base64.b64decode(found["value"], validate=True).decode()
    except (binascii.Error, ValueError, TypeError):
        raise StepError(f"Secret {namespace}/{secret} has no kubeconfig in its key value.") from None
    if len(text) > LARGEST:
        raise StepError(f"The kubeconfig in Secret {namespace}/{secret} is larger than {LARGEST} bytes.")
    return WorkloadCluster(cluster.name, namespace, text, from_kubeconfig(text))
