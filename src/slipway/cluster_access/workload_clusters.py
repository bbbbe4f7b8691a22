"""Workload clusters of Cluster API outside of any operation: how Slipway logs in to those that are VIMs."""

from __future__ import annotations

import asyncio

from slipway.cluster.cluster_api.credentials import WorkloadClusters
from slipway.cluster.cluster_api.parameters import CLIENT_CERTIFICATE, SERVICE_ACCOUNT_TOKEN
from slipway.cluster.cluster_api.steps import vim_access
from slipway.cluster.steps.dependencies import VimAccess
from slipway.cluster_access.clusters import ReadOnlyContext
from slipway.model.errors import StepError
from slipway.model.vim import Vim
from slipway.outgoing.guard import Guard
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim_registry.clusters import TOKEN_EXPIRES

SECONDS = 30.0


class WorkloadAccess:
    def __init__(self, database: Database, vault: Vault, clusters: WorkloadClusters, guard: Guard) -> None:
        self._database, self._vault = database, vault
        self._clusters, self._guard = clusters, guard

    async def renewed(self, instance_id: str, vim: Vim) -> VimAccess:
        """Another token; or the certificate that Cluster API has now: it makes a new one in time by itself."""
        from slipway.kube.api import Api

        instance = await self._database.read(instances.get, instance_id)
        kind = SERVICE_ACCOUNT_TOKEN if TOKEN_EXPIRES in vim.extra else CLIENT_CERTIFICATE
        context = ReadOnlyContext(self._database, self._vault, instance)
        try:
            async with asyncio.timeout(SECONDS):
                cluster = await self._clusters.get(instance.vnf, context)
                async with Api(cluster.credentials, guard=self._guard) as api:
                    return await vim_access(cluster, api, kind)
        except TimeoutError:
            raise StepError(f"timed out after {SECONDS:g} s waiting for its management cluster.") from None
