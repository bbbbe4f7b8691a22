"""A step's context on behalf of the cluster: how an operation of a CNF gets at the balancer of the cluster it runs on.

The CNF's own context knows another VIM, other machines and other secrets. What is opened here never leaves the step.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from slipway.cluster.parameters import NAME, ExternalLoadBalancerParameters
from slipway.cluster.schema import read
from slipway.cluster.spec import SshLogin
from slipway.load_balancer.balancer import PARAMETER, Balancer, balancer_login
from slipway.load_balancer.records import BalancerRecord
from slipway.model.action import StepContext, VimConnection
from slipway.model.errors import RequestError, StepError
from slipway.model.instance import Instance
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.package_content import PackageContent
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim_registry.choice import resolve_connection, vim_of_instance


class ClusterContext:
    """`own`: that of the CNF's step. `own_login`: secrets are those of the CNF's request, and not of the cluster."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        cluster: Instance,
        record: BalancerRecord,
        own: StepContext,
        *,
        own_login: bool,
    ) -> None:
        self._database, self._vault = database, vault
        self._cluster, self._record, self._own, self._own_login = cluster, record, own, own_login

    @property
    def operation_id(self) -> str:
        return self._own.operation_id

    @property
    def instance_id(self) -> str:
        return self._cluster.vnf.id

    @property
    def cancelled(self) -> bool:
        return self._own.cancelled

    async def connection(self) -> VimConnection:
        vim = vim_of_instance(self._cluster)
        return await self._database.read(resolve_connection, self._vault, vim, self.instance_id)

    async def machine(self, machine_id: str) -> FoundMachine:
        if self._record.machine is None or self._record.machine.id != machine_id:
            raise StepError("The cluster's load balancer was not set up yet.", temporary=True)
        return self._record.machine

    async def port(self, name: str) -> FoundPort:
        raise StepError(f"The cluster's load balancer has no port {name!r} of its own.")

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        return await self._own.package_file(vnfd_id, path, digest)

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        return await self._own.package_content(vnfd_id, path, digest)

    async def decrypt_secrets(self, document: Any) -> Any:
        if self._own_login:
            return await self._own.decrypt_secrets(document)
        return await self._database.read(self._vault.decrypt_secrets, [self.instance_id], document)

    def arguments(self, step_id: str) -> dict[str, Any]:
        return self._own.arguments(step_id)

    def outcome(self, step_id: str) -> Outcome | None:
        return self._own.outcome(step_id)

    def progress(self, text: str) -> None:
        self._own.progress(text)


class NotSetUp(StepError):
    """It may be soon. There is nothing on it that could be taken away."""


class ClusterContexts:
    """How steps of a CNF act on a cluster's balancer."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database, self._vault = database, vault

    async def of(
        self, cluster_id: str, record: BalancerRecord, own: StepContext, login: SshLogin | None = None
    ) -> tuple[Balancer, ClusterContext]:
        """With the login of the request, or the one that the cluster has now: a later request may have changed it."""
        cluster = await self._database.read(instances.get, cluster_id)
        if record.balancer is None:
            raise NotSetUp(f"The load balancer of cluster {cluster_id} was not set up yet.", temporary=True)
        node = replace(record.balancer.node, login=login or _login(cluster))
        context = ClusterContext(self._database, self._vault, cluster, record, own, own_login=login is not None)
        return replace(record.balancer, node=node), context


def _login(cluster: Instance) -> SshLogin:
    document = (cluster.parameters.get(NAME) or {}).get("external_lb_param")
    try:
        return balancer_login(read(ExternalLoadBalancerParameters, document, PARAMETER))
    except RequestError:
        raise StepError(f"The cluster {cluster.vnf.id} has no external_lb_param to log in with.") from None
