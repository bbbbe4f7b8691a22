"""Workload clusters of Cluster API outside of any operation: how Slipway logs in to those that are VIMs, and how
receivers of credentials are told those that Cluster API has renewed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace
from sqlalchemy import JSON, Connection, select, type_coerce

from slipway.cluster.cluster_api import receiver
from slipway.cluster.cluster_api.credentials import WorkloadClusters
from slipway.cluster.cluster_api.driver import lasting_receiver
from slipway.cluster.cluster_api.parameters import CLIENT_CERTIFICATE, SERVICE_ACCOUNT_TOKEN
from slipway.cluster.cluster_api.steps import SENT, receiver_of, vim_access
from slipway.cluster.steps.dependencies import VimAccess
from slipway.cluster_access.clusters import ReadOnlyContext
from slipway.model.errors import RequestError, StepError
from slipway.model.instance import Instance, InstantiationState
from slipway.model.vim import Vim
from slipway.outgoing.guard import Guard
from slipway.store import instances, operations, packages, tables
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim_registry.clusters import TOKEN_EXPIRES

log = logging.getLogger(__name__)

SECONDS = 30.0
AT_ONCE = 8
CURE = "see that the receiver runs and answers with 2xx; it is tried again at the next look."


class WorkloadAccess:
    def __init__(self, database: Database, vault: Vault, clusters: WorkloadClusters, guard: Guard) -> None:
        self._database, self._vault = database, vault
        self._clusters, self._guard = clusters, guard
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def renewed(self, instance_id: str, vim: Vim) -> VimAccess:
        """Another token; or the certificate that Cluster API has now: it makes a new one in time by itself."""
        from slipway.kube.api import Api

        instance = await self._database.read(instances.get, instance_id)
        kind = SERVICE_ACCOUNT_TOKEN if TOKEN_EXPIRES in vim.extra else CLIENT_CERTIFICATE
        context = ReadOnlyContext(self._database, self._vault, instance)
        async with _in_time():
            cluster = await self._clusters.get(instance.vnf, context)
            async with Api(cluster.credentials, guard=self._guard) as api:
                return await vim_access(cluster, api, kind)

    async def send_changed(self) -> None:
        """To all receivers whose credentials are others by now. Two at once do no harm: what is sent twice says so."""
        await asyncio.gather(*(self._tell(one) for one in await self._database.read(_told)))

    async def _tell(self, instance_id: str) -> None:
        try:
            async with self._slots:
                await self.tell(instance_id)
        except (StepError, RequestError) as error:
            log.warning("the receiver of VNF instance %s is not told new credentials: %s", instance_id, error.detail)
        except Exception:  # an edge: one cluster's fault is not the others'
            log.exception("the receiver of VNF instance %s is not told new credentials", instance_id)

    async def tell(self, instance_id: str) -> None:
        """Looks first: what the receiver has already is not sent again. One attempt; the next look is the next one."""
        instance, given = await self._database.read(_receiver, instance_id)
        if given is None:
            return
        context = ReadOnlyContext(self._database, self._vault, instance)
        to = dataclasses.replace(receiver_of(await context.decrypt_secrets(given)), attempts=1)
        async with _in_time():
            cluster = await self._clusters.get(instance.vnf, context)
        digest = cluster.digest(to.url)
        if digest != _sent(instance):
            body = receiver.message(instance_id, None, cluster, digest)
            project = (await context.connection()).project
            await receiver.send(self._guard, to, body, digest, project, cure=CURE)
            await self._database.write(_record_sent, instance_id, digest)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(SECONDS):
            yield
    except TimeoutError:
        raise StepError(f"timed out after {SECONDS:g} s waiting for its management cluster.") from None


def _told(connection: Connection) -> list[str]:
    """Instances whose receiver was told credentials, and that no operation is working on: it tells them itself."""
    table = tables.instances
    sent = type_coerce(table.c.doc, JSON)[("instantiatedVnfInfo", "metadata", SENT)].as_string()
    busy = select(tables.operations.c.instance_id).where(tables.HOLDS_INSTANCE)
    there = table.c.state == InstantiationState.INSTANTIATED.value
    query = select(table.c.id).where(there, sent.is_not(None), table.c.id.not_in(busy))
    return [str(id_) for id_ in connection.scalars(query)]


def _receiver(connection: Connection, instance_id: str) -> tuple[Instance, dict[str, Any] | None]:
    instance = instances.get(connection, instance_id)
    info = instance.vnf.instantiated_vnf_info
    descriptor, _ = packages.contents(connection, instance.vnf.vnfd_id, instance.project)
    flavour = descriptor.flavours.get(info.flavour_id) if info else None
    return instance, lasting_receiver(flavour, instance.parameters) if flavour else None


def _sent(instance: Instance) -> Any:
    info = instance.vnf.instantiated_vnf_info
    return info.metadata.get(SENT) if info else None


def _record_sent(connection: Connection, instance_id: str, digest: str) -> None:
    """Not while an operation goes on, which was planned with the record as it is."""
    instance = instances.hold(connection, instance_id)
    info = instance.vnf.instantiated_vnf_info
    if info is not None and not operations.held_by(connection, instance_id):
        told = replace(info, metadata={**info.metadata, SENT: digest})
        instances.update(connection, replace(instance, vnf=replace(instance.vnf, instantiated_vnf_info=told)))
