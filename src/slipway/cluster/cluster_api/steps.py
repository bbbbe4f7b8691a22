"""What the hooks of a workload cluster do: send its credentials, register it as a VIM, and take that back."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from cryptography import x509

from slipway.cluster.cluster_api import receiver
from slipway.cluster.cluster_api.credentials import WorkloadCluster, WorkloadClusters
from slipway.cluster.cluster_api.parameters import SERVICE_ACCOUNT_TOKEN
from slipway.cluster.recorded import record_reported_version
from slipway.cluster.spec import StepArguments
from slipway.cluster.steps.dependencies import ClientCertificate, ClusterRegistry, ClusterVim, VimAccess
from slipway.kube.account import VIM_TOKEN_LIFETIME, issue_token
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi
from slipway.model.action import Action, StepContext
from slipway.model.errors import StepError
from slipway.model.instance import VnfInstance
from slipway.model.machine import Outcome
from slipway.model.vim import KUBERNETES
from slipway.outgoing.guard import Guard
from slipway.outgoing.oauth2 import ClientCredentials

KEY = "workload_cluster"  # in the instance's vimConnectionInfo
SENT = "credentialsSent"  # in instantiatedVnfInfo.metadata: the digest of what the receiver has


class SendCredentials(StepArguments, frozen=True, kw_only=True):
    """`receiver` in the request's words, secrets as references. `sent`: the digest of what a receiver has already."""

    receiver: dict[str, Any]
    sent: str | None = None


class RegisterWorkloadCluster(StepArguments, frozen=True, kw_only=True):
    """`anew`: it was not registered before this operation, so a rollback removes it."""

    vim_name: str
    access: str
    anew: bool = True


class UnregisterWorkloadCluster(StepArguments, frozen=True, kw_only=True):
    pass


class Records(Protocol):
    async def instance(self, operation_id: str, *, ahead: bool) -> VnfInstance:
        """`ahead`: as it would be if the operation ended well now."""
        ...


@dataclass(frozen=True)
class WorkloadDependencies:
    clusters: WorkloadClusters
    records: Records
    vims: ClusterRegistry
    guard: Guard
    pauses: receiver.Pauses = receiver.PAUSES

    async def cluster(self, ctx: StepContext) -> WorkloadCluster:
        return await self.clusters.get(await self.records.instance(ctx.operation_id, ahead=True), ctx)

    def api(self, cluster: WorkloadCluster) -> AbstractAsyncContextManager[KubeApi]:
        from slipway.kube.api import Api

        return Api(cluster.credentials, guard=self.guard)


class WorkloadSteps:
    def __init__(self, deps: WorkloadDependencies) -> None:
        self._deps = deps

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return (
            # It tries again by itself, as often as the request says.
            Action("cluster_api.send", SendCredentials, self.send, timeout=3600.0, attempts=1),
            Action("cluster_api.register", RegisterWorkloadCluster, self.register, self.undo_register),
            Action("cluster_api.unregister", UnregisterWorkloadCluster, self.unregister),
        )

    async def send(self, args: SendCredentials, ctx: StepContext) -> Outcome:
        """Looks first: what the receiver has already is not sent again."""
        to = receiver_of(await ctx.decrypt_secrets(args.receiver))
        cluster = await self._deps.cluster(ctx)
        digest = cluster.digest(to.url)
        if digest != args.sent:
            body = receiver.message(ctx.instance_id, ctx.operation_id, cluster, digest)
            project = (await ctx.connection()).project
            await receiver.send(self._deps.guard, to, body, digest, project, self._deps.pauses)
        return Outcome(instance={"instantiatedVnfInfo": {"metadata": {SENT: digest}}})

    async def register(self, args: RegisterWorkloadCluster, ctx: StepContext) -> Outcome:
        cluster = await self._deps.cluster(ctx)
        async with self._deps.api(cluster) as api:
            running = await _version(api)
            access = await vim_access(cluster, api, args.access)
        found = cluster.credentials
        vim = ClusterVim(args.vim_name, found.server, found.ca or "", access, found.server_name)
        vim_id = await self._deps.vims.register(ctx.instance_id, vim)
        info = {"vimType": KUBERNETES, "vimId": vim_id, "interfaceInfo": {"endpoint": found.server}, "accessInfo": None}
        return Outcome(instance={"vimConnectionInfo": {KEY: info}, **record_reported_version(running)})

    async def undo_register(self, args: RegisterWorkloadCluster, ctx: StepContext) -> Outcome:
        return await self.unregister(UnregisterWorkloadCluster(), ctx) if args.anew else Outcome()

    async def unregister(self, args: UnregisterWorkloadCluster, ctx: StepContext) -> Outcome:
        """An account that was made in the cluster goes with it."""
        await self._deps.vims.unregister(ctx.instance_id)
        return Outcome(instance={"vimConnectionInfo": {KEY: None}})


async def vim_access(cluster: WorkloadCluster, api: KubeApi, kind: str) -> VimAccess:
    """How Slipway logs in: by what Cluster API gave, or by a token of an account made for it."""
    found = cluster.credentials
    if kind == SERVICE_ACCOUNT_TOKEN:
        return await issue_token(api, VIM_TOKEN_LIFETIME)
    if not found.client_certificate or not found.client_key:
        raise StepError(
            f"The kubeconfig of workload cluster {cluster.name} has no client certificate.",
            cure="set register_vim.access to service_account_token.",
        )
    try:
        expires = x509.load_pem_x509_certificate(found.client_certificate.encode()).not_valid_after_utc
    except ValueError:
        raise StepError(f"The client certificate of workload cluster {cluster.name} can't be read.") from None
    return ClientCertificate(found.client_certificate, found.client_key, expires)


async def _version(api: KubeApi) -> str:
    """That it answers is proved by its nodes: not every API server that Cluster API works with tells its version."""
    await api.get("/api/v1/nodes", limit="1")
    try:
        return str((await api.get("/version")).get("gitVersion", ""))
    except KubeError as error:
        if error.status != 404:
            raise
        return ""


def receiver_of(given: dict[str, Any]) -> receiver.Receiver:
    """`given` was checked, so all of it is there; its secrets are in clear."""
    oauth2 = given.get("oauth2")
    return receiver.Receiver(
        url=given["url"],
        ca=given.get("ca_certificate"),
        username=given.get("username"),
        password=given.get("password"),
        bearer_token=given.get("bearer_token"),
        oauth2=ClientCredentials(oauth2["token_url"], oauth2["client_id"], oauth2["client_secret"]) if oauth2 else None,
        timeout=float(given.get("timeout", 30)),
        attempts=int(given.get("attempts", 5)),
    )
