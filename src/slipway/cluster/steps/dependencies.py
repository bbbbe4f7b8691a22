"""What the steps of a cluster depend on, as protocols: simulated ones can take the place of real ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Protocol

from slipway.cluster.spec import ClusterSpec, Node, Server
from slipway.cluster.steps.liveness import Liveness, LivenessLimits, Vims
from slipway.cluster.steps.unreachable import UnreachableHosts
from slipway.kube.account import ServiceAccountToken
from slipway.kube.interface import KubeApi
from slipway.model.action import StepContext
from slipway.remote.output import Result


class RemoteHost(Protocol):
    """A machine that can be worked on. docs/remote.md says what each means."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        sudo: bool = False,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limit: float | None = None,
        check: bool = True,
        description: str | None = None,
    ) -> Result: ...

    async def put(self, path: str, content: bytes | str, *, mode: int = 0o600, sudo: bool = False) -> None: ...

    async def get(self, path: str, *, sudo: bool = False) -> bytes | None: ...

    async def run_job(
        self,
        name: str,
        argv: Sequence[str],
        *,
        limit: float,
        sudo: bool = False,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        description: str | None = None,
    ) -> Result: ...

    async def remove_job(self, name: str, *, sudo: bool = False, kill: bool = False) -> None: ...


class Connector(Protocol):
    """How to get at machines, and at the API of the cluster that runs on them."""

    async def host(self, node: Node, ctx: StepContext) -> RemoteHost: ...

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        """What the machine showed when it was met for the first time, where the VIM could not tell."""
        ...

    async def host_at(self, server: Server, ctx: StepContext) -> RemoteHost:
        """A machine that a request named by its address. StepError when requests may not go there."""
        ...

    async def host_key_at(self, server: Server, ctx: StepContext) -> str | None:
        """The host key that it showed."""
        ...

    def api(
        self, cluster: ClusterSpec, ctx: StepContext, within: float | None = None
    ) -> AbstractAsyncContextManager[KubeApi]:
        """Through the first of the cluster's masters whose API server is ready, `within` so many seconds."""
        ...


@dataclass(frozen=True)
class ClientCertificate:
    """PEM, in clear."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)
    expires: datetime


VimAccess = ServiceAccountToken | ClientCertificate


@dataclass(frozen=True)
class ClusterVim:
    """A cluster as others use it. Its access is in clear: made for one step, never stored by it, never printed."""

    name: str
    endpoint: str
    ca: str
    access: VimAccess
    server_name: str | None = None  # that its certificate has, when it is not the host of the endpoint

    def __repr__(self) -> str:
        return f"ClusterVim({self.name!r}, {self.endpoint!r})"


class ClusterRegistry(Protocol):
    """Where clusters are registered as VIMs, under an id that comes from the instance."""

    async def register(self, instance_id: str, vim: ClusterVim) -> str:
        """Register, or correct what is registered; the VIM's id."""
        ...

    async def unregister(self, instance_id: str) -> None:
        """Remove it. StepError names the VNF that still runs on it."""
        ...


class Files(Protocol):
    """Files of the package that an instance was made from."""

    async def read(self, instance_id: str, path: str, vnfd_id: str | None = None) -> bytes:
        """StepError when there is none. `vnfd_id`: of another package, which the instance is on its way to."""
        ...

    def pieces(self, instance_id: str, path: str, vnfd_id: str | None = None) -> AsyncIterator[bytes]:
        """The same for one that may be too large to be held as a whole."""
        ...


@dataclass(frozen=True)
class Dependencies:
    """`drivers` tell whether a machine has power; without them that is not known."""

    connector: Connector
    vims: ClusterRegistry
    files: Files
    drivers: Vims | None = None
    limits: LivenessLimits = field(default_factory=LivenessLimits)
    unreachable: UnreachableHosts = field(default_factory=UnreachableHosts)

    @cached_property
    def liveness(self) -> Liveness:
        return Liveness(self.connector, self.drivers, self.limits)
