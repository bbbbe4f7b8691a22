"""Running clusters outside of any operation: their health, kubeconfigs and tokens."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
import yaml
from sqlalchemy import Connection

from slipway.cluster.change import cluster_now, masters
from slipway.cluster.health import ClusterHealth, health_of
from slipway.cluster.request import Check
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.dependencies import Dependencies
from slipway.kube.account import ServiceAccountToken, issue_token
from slipway.lcm.record import inventory, recorded_port
from slipway.lcm.situations import situation_of
from slipway.lcm.targets import no_change
from slipway.model.access import DEFAULT_KUBE_TOKEN
from slipway.model.action import VimConnection
from slipway.model.errors import Conflict, NotFound, StepError, VimError, VimFault
from slipway.model.instance import Instance, InstantiationState, VimConnectionInfo
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.operation import OperationType
from slipway.model.package_content import PackageContent
from slipway.model.requests import HealRequest
from slipway.model.situation import PlanningSituation
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim_registry.choice import resolve_connection, vim_of_instance
from slipway.vim_registry.names import vim_id_of


class Kubeconfig(msgspec.Struct, frozen=True):
    kubeconfig: str
    expires: datetime  # the token in it


class RunningClusters:
    def __init__(self, database: Database, vault: Vault, deps: Dependencies, checks: Mapping[str, Check]) -> None:
        """`checks`: how the parameters of a cluster are read, by the management driver that made it."""
        self._database = database
        self._vault = vault
        self._deps = deps
        self._checks = checks

    async def health(self, instance_id: str) -> ClusterHealth:
        instance, cluster, nodes = await self._cluster(instance_id)
        context = ReadOnlyContext(self._database, self._vault, instance)
        return await health_of(self._deps, cluster, nodes, context)

    async def kubeconfig(self, instance_id: str, lifetime: timedelta = DEFAULT_KUBE_TOKEN) -> Kubeconfig:
        """With the cluster's own address, its CA, and a token that is made for it and ends."""
        await self._cluster(instance_id)  # NotFound, before an id is computed from one that may be no UUID
        vim = VimConnectionInfo(vim_id=vim_id_of(instance_id))
        try:
            found = await self._database.read(resolve_connection, self._vault, vim, instance_id)
        except NotFound:
            raise Conflict(f"The cluster of VNF instance {instance_id} is not registered as a VIM.") from None
        try:
            token = await self.token(instance_id, lifetime)
        except StepError as error:
            raise VimError(error.detail, VimFault.TEMPORARY) from None
        return Kubeconfig(_kubeconfig(instance_id, found, token), token.expires)

    async def token(self, instance_id: str, lifetime: timedelta) -> ServiceAccountToken:
        """A new one, by way of a master. StepError says soon why there is none."""
        instance, cluster, _ = await self._cluster(instance_id)
        context = ReadOnlyContext(self._database, self._vault, instance)
        limit = self._deps.limits.token
        try:
            async with (
                asyncio.timeout(limit),
                self._deps.connector.api(cluster, context, within=0.8 * limit) as api,
            ):
                return await issue_token(api, lifetime)
        except TimeoutError:
            raise StepError(f"timed out after {limit:g} s waiting for the cluster's API.", temporary=True) from None

    async def _cluster(self, instance_id: str) -> tuple[Instance, ClusterSpec, tuple[Node, ...]]:
        situation = await self._database.read(_situation, instance_id)
        names = [hook.implementation for hook in situation.flavour.hooks.values()]
        check = next((self._checks[name] for name in names if name in self._checks), None)
        if check is None:
            raise Conflict(f"VNF instance {instance_id} is no Kubernetes cluster.")
        cluster, nodes = cluster_now(situation, check)
        if not masters(nodes):
            raise Conflict(f"VNF instance {instance_id} has no master.")
        return situation.instance, cluster, nodes


def _situation(connection: Connection, instance_id: str) -> PlanningSituation:
    """As for an operation that changes nothing."""
    instance = instances.get(connection, instance_id)
    if instance.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        raise Conflict(f"VNF instance {instance_id} is not instantiated; there is no cluster.")
    situation = situation_of(connection, OperationType.HEAL, HealRequest(), instance)
    return situation.planning(inventory(instance.vnf.instantiated_vnf_info), no_change(situation))


class ReadOnlyContext:
    """The context of a step, for questions that change nothing."""

    def __init__(self, database: Database, vault: Vault, instance: Instance) -> None:
        self._database, self._vault, self._instance = database, vault, instance
        self._machines = {machine.id: machine for machine in inventory(instance.vnf.instantiated_vnf_info).machines}

    @property
    def operation_id(self) -> str:
        return "none"

    @property
    def instance_id(self) -> str:
        return self._instance.vnf.id

    @property
    def cancelled(self) -> bool:
        return False

    async def connection(self) -> VimConnection:
        vim = vim_of_instance(self._instance)
        return await self._database.read(resolve_connection, self._vault, vim, self.instance_id)

    async def machine(self, machine_id: str) -> FoundMachine:
        if machine_id not in self._machines:
            raise StepError(f"There is no machine {machine_id}.")
        return self._machines[machine_id]

    async def port(self, name: str) -> FoundPort:
        port = recorded_port(self._instance.vnf.instantiated_vnf_info, name)
        if port is None:
            raise StepError(f"There is no port {name!r} beside those of machines.")
        return port

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        raise StepError("Outside of an operation there is no package to read from.")

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        raise StepError("Outside of an operation there is no package to read from.")

    async def decrypt_secrets(self, document: Any) -> Any:
        return await self._database.read(self._vault.decrypt_secrets, [self.instance_id], document)

    def arguments(self, step_id: str) -> dict[str, Any]:
        raise StepError("Outside of an operation there is no plan.")

    def outcome(self, step_id: str) -> Outcome | None:
        return None

    def progress(self, text: str) -> None:
        pass


def _kubeconfig(instance_id: str, vim: VimConnection, token: ServiceAccountToken) -> str:
    name = f"slipway-{instance_id[:8]}"
    authority = base64.b64encode(vim.interface_info["ssl_ca_cert"].encode()).decode()
    cluster = {"server": vim.interface_info["endpoint"], "certificate-authority-data": authority}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token.value}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)
