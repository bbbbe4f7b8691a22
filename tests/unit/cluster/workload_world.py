"""A management cluster and a workload cluster as far as a sender of credentials sees them, and its step's context."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from slipway.cluster.cluster_api.credentials import WorkloadClusters
from slipway.cluster.cluster_api.steps import WorkloadDependencies
from slipway.cluster.steps.dependencies import ClusterVim
from slipway.model.action import VimConnection
from slipway.model.instance import InstantiatedVnfInfo, InstantiationState, VnfInstance
from slipway.model.machine import FoundMachine, FoundObject, FoundPort, Outcome
from slipway.model.package_content import PackageContent
from slipway.model.vim import KUBERNETES
from slipway.outgoing.guard import Guard
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.unit.vim.authority import Authority
from tests.unit.vim.loopback import Asked, Reply, serving

INSTANCE = "6d7b6b1e-8d52-4c43-9d5c-0d4a7b0a2f10"
OPERATION = "0c6a0a43-44d1-4a45-8a0e-1a54e2b0b3c5"
CLUSTER = FoundObject(
    id="1", kind="Cluster", name="demo", namespace="edge", api_version="cluster.x-k8s.io/v1beta2", digest="d"
)


@dataclass
class World:
    """`secrets`: what the management cluster has, by path. `records`: how the VNF is recorded."""

    url: str = ""
    authority: Authority = field(default_factory=Authority)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    objects: tuple[FoundObject, ...] = (CLUSTER,)
    asked: list[Asked] = field(default_factory=list)
    registered: dict[str, ClusterVim] = field(default_factory=dict)
    version: str | None = "v1.34.4"

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if asked.path in self.secrets:
            return Reply(200, {"kind": "Secret", "data": self.secrets[asked.path]})
        if asked.path in ("/api/v1/nodes", "/api/v1/namespaces"):
            return Reply(200, {"items": []})
        if asked.path == "/version" and self.version:
            return Reply(200, {"gitVersion": self.version})
        if asked.path.endswith("/slipway/token"):
            return Reply(201, {"status": {"token": "made-token", "expirationTimestamp": "2030-01-01T00:00:00Z"}})
        if asked.method == "PATCH":
            return Reply(200, asked.document)
        if asked.path in ("/api", "/apis"):
            return Reply(200, {"kind": "APIGroupList"})
        if asked.path in ("/api/v1", "/apis/rbac.authorization.k8s.io/v1"):
            return Reply(200, {"resources": [
                {"name": "serviceaccounts", "kind": "ServiceAccount", "namespaced": True},
                {"name": "clusterrolebindings", "kind": "ClusterRoleBinding", "namespaced": False},
            ]})  # fmt: skip
        return Reply(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "there is none"})

    def kubeconfig(self, name: str = "kubernetes-admin") -> str:
        """Of the workload cluster, which the same server plays."""
        certificate, key = self.authority.issued(name)
        return yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "demo",
            "clusters": [{"name": "demo", "cluster": {
                "server": self.url, "certificate-authority-data": _base64(self.authority.pem)}}],
            "users": [{"name": "demo-admin", "user": {
                "client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}}],
            "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "demo-admin"}}],
        })  # fmt: skip

    def give(self, kubeconfig: str, name: str = "demo", namespace: str = "edge") -> None:
        self.secrets[f"/api/v1/namespaces/{namespace}/secrets/{name}-kubeconfig"] = {"value": _base64(kubeconfig)}

    async def instance(self, operation_id: str, *, ahead: bool) -> VnfInstance:
        return vnf(*self.objects)

    async def register(self, instance_id: str, vim: ClusterVim) -> str:
        self.registered[instance_id] = vim
        return "vim-id"

    async def unregister(self, instance_id: str) -> None:
        self.registered.pop(instance_id, None)

    def dependencies(self, seconds: float = 5.0) -> WorkloadDependencies:
        guard = Guard(loopback=True)
        clusters = WorkloadClusters(KubernetesVimDriver(guard=guard).api, seconds)
        return WorkloadDependencies(clusters, self, self, guard, pauses=(0.01, 0.02))

    def context(self, vim_type: str = KUBERNETES) -> Context:
        interface = {"endpoint": self.url, "ssl_ca_cert": self.authority.pem}
        return Context(VimConnection(vim_type, interface, {"bearer_token": "management"}, {}))


def vnf(*objects: FoundObject) -> VnfInstance:
    return VnfInstance(
        id=INSTANCE,
        vnfd_id="vnfd",
        vnf_provider="p",
        vnf_product_name="n",
        vnf_software_version="1",
        vnfd_version="1",
        instantiation_state=InstantiationState.INSTANTIATED,
        instantiated_vnf_info=InstantiatedVnfInfo(
            flavour_id="simple", vnf_state="STARTED", metadata={"objects": msgspec.to_builtins(list(objects))}
        ),
    )


@dataclass(frozen=True)
class Context:
    """A step's, without secrets: references are what they say."""

    reached: VimConnection
    operation_id: str = OPERATION
    instance_id: str = INSTANCE
    cancelled: bool = False

    async def connection(self) -> VimConnection:
        return self.reached

    async def machine(self, machine_id: str) -> FoundMachine:
        raise AssertionError

    async def port(self, name: str) -> FoundPort:
        raise AssertionError

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        raise AssertionError

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        raise AssertionError

    async def decrypt_secrets(self, document: Any) -> Any:
        return document

    def arguments(self, step_id: str) -> dict[str, Any]:
        raise AssertionError

    def outcome(self, step_id: str) -> Outcome | None:
        return None

    def progress(self, text: str) -> None:
        pass


@contextmanager
def a_world() -> Iterator[World]:
    world = World()
    with serving(world.answer, world.authority.server_context("127.0.0.1")) as url:
        world.url = url
        world.give(world.kubeconfig())
        yield world


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
