"""Clusters that stand, for whoever looks at them or uses them: outside of any operation."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
from datetime import datetime, timedelta
from typing import Any

import msgspec
import yaml
from sqlalchemy import Connection as DatabaseConnection

from slipway.cluster.health import ClusterHealth, health_of
from slipway.cluster.roster import masters, nodes_of
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.world import World
from slipway.kube.account import FETCHED, Token, granted_token
from slipway.lcm.clusters import vim_id_of
from slipway.lcm.lifecycle import situation_of
from slipway.lcm.record import inventory
from slipway.lcm.vim_choice import chosen_before, in_clear
from slipway.model.action import Connection
from slipway.model.errors import Conflict, NotFound, StepError, VimError, VimFault
from slipway.model.instance import Instance, InstantiationState, VimConnectionInfo
from slipway.model.machine import FoundMachine, Outcome
from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest
from slipway.model.situation import Situation
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.secrets import Vault


class Kubeconfig(msgspec.Struct, frozen=True):
    kubeconfig: str
    expires: datetime  # the token in it


class StandingClusters:
    def __init__(self, database: Database, vault: Vault, world: World, driver_names: tuple[str, ...]) -> None:
        self._database = database
        self._vault = vault
        self._world = world
        self._names = driver_names

    async def health(self, instance_id: str) -> ClusterHealth:
        instance, site, nodes = await self._cluster(instance_id)
        context = _Looking(self._database, self._vault, instance)
        return await health_of(self._world, site, nodes, context)

    async def kubeconfig(self, instance_id: str, lifetime: timedelta = FETCHED) -> Kubeconfig:
        """With the cluster's own address, its CA, and a token that is made for it and ends."""
        await self._cluster(instance_id)  # NotFound, before an id is computed from one that may be no UUID
        vim = VimConnectionInfo(vim_id=vim_id_of(instance_id))
        try:
            found = await self._database.read(in_clear, self._vault, vim, instance_id)
        except NotFound:
            raise Conflict(f"The cluster of VNF instance {instance_id} is not registered as a VIM.") from None
        try:
            token = await self.token(instance_id, lifetime)
        except StepError as error:
            raise VimError(error.detail, VimFault.TEMPORARY) from None
        return Kubeconfig(_kubeconfig(instance_id, found, token), token.expires)

    async def token(self, instance_id: str, lifetime: timedelta) -> Token:
        """A new one, by way of a master. StepError says soon why there is none."""
        instance, site, _ = await self._cluster(instance_id)
        context = _Looking(self._database, self._vault, instance)
        limit = self._world.limits.token
        try:
            async with asyncio.timeout(limit), self._world.reach.api(site, context, within=0.8 * limit) as api:
                return await granted_token(api, lifetime)
        except TimeoutError:
            raise StepError(f"timed out after {limit:g} s waiting for the cluster's API.", temporary=True) from None

    async def _cluster(self, instance_id: str) -> tuple[Instance, Site, tuple[Node, ...]]:
        situation = await self._database.read(_situation, instance_id)
        if not any(hook.implementation in self._names for hook in situation.flavour.hooks.values()):
            raise Conflict(f"VNF instance {instance_id} is no Kubernetes cluster.")
        site, nodes = nodes_of(situation)
        if not masters(nodes):
            raise Conflict(f"VNF instance {instance_id} has no master.")
        return situation.instance, site, nodes


def _situation(connection: DatabaseConnection, instance_id: str) -> Situation:
    """As if something were to be done, without anything to do."""
    instance = instances.get(connection, instance_id)
    if instance.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        raise Conflict(f"VNF instance {instance_id} is not instantiated; there is no cluster.")
    situation = situation_of(connection, OperationType.HEAL, HealRequest(), instance)
    return dataclasses.replace(situation, found=inventory(instance.vnf.instantiated_vnf_info))


class _Looking:
    """What a step would be given, for questions that change nothing."""

    def __init__(self, database: Database, vault: Vault, instance: Instance) -> None:
        self._database, self._vault, self._instance = database, vault, instance
        self._machines = {machine.id: machine for machine in inventory(instance.vnf.instantiated_vnf_info).machines}

    @property
    def operation_id(self) -> str:
        return "none"

    @property
    def instance_id(self) -> str:
        return self._instance.vnf.id

    async def connection(self) -> Connection:
        vim = chosen_before(self._instance)
        return await self._database.read(in_clear, self._vault, vim, self.instance_id)

    async def machine(self, machine_id: str) -> FoundMachine:
        if machine_id not in self._machines:
            raise StepError(f"There is no machine {machine_id}.")
        return self._machines[machine_id]

    async def reveal(self, document: Any) -> Any:
        return await self._database.read(self._vault.reveal, [self.instance_id], document)

    def outcome(self, step_id: str) -> Outcome | None:
        return None


def _kubeconfig(instance_id: str, vim: Connection, token: Token) -> str:
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
