"""Nodes made by the package's own script: it begins or joins the cluster, and we see that it did."""

from __future__ import annotations

from msgspec.structs import replace

from slipway.cluster.parameters import HTTP
from slipway.cluster.steps import bootstrap, etcd
from slipway.cluster.steps.arguments import RunNodeScript, SetHostName
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import address_of, run
from slipway.cluster.steps.package_script import run_package_script
from slipway.cluster.steps.prepare import record_host_key
from slipway.cluster.steps.setup import proxy_variables, registries_of
from slipway.kube.bootstrap import ca_hash, cluster_ca, make_token, remove_token
from slipway.kube.interface import KubeApi
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.waiting import Backoff

SECONDS = 2700.0
SEEN_SECONDS = 60.0
ADMIN = "/etc/kubernetes/admin.conf"
JOB = "node-script"


async def name(deps: Dependencies, args: SetHostName, ctx: StepContext) -> Outcome:
    """The node is called as its machine is, so the machine is called as we call the node."""
    await run(await deps.connector.host(args.node, ctx), "host_name", args.node.name)
    return await record_host_key(deps, args.node, ctx)


async def script(deps: Dependencies, args: RunNodeScript, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    try:
        if args.first:
            await _run(deps, host, args, [], ctx)
            await _check_cluster_exists(host, args)
            async with deps.connector.api(args.cluster, ctx) as api:
                await _wait_for_node(api, args)
        else:
            await _join(deps, host, args, ctx)
    except _ScriptFailed as error:
        await host.remove_job(JOB, sudo=True)  # it ended well, as far as it knows: a retry must run it again
        raise StepError(error.detail, cure=error.cure) from None
    return Outcome()


async def _join(deps: Dependencies, host: RemoteHost, args: RunNodeScript, ctx: StepContext) -> None:
    async with deps.connector.api(args.cluster, ctx) as api:
        token = await make_token(api, bootstrap.BOOTSTRAP_TOKEN_LIFETIME)
        try:
            credentials = ["-t", token, "-s", ca_hash(await cluster_ca(api)).removeprefix("sha256:")]
            if args.node.master:
                credentials += ["-k", await _certificate_key(deps, args, ctx)]
            await _run(deps, host, args, credentials, ctx)
            await _wait_for_node(api, args)
        except (StepError, _ScriptFailed) as error:
            if args.node.master and not (isinstance(error, StepError) and error.temporary):
                await etcd.remove_member(deps, args.node, args.cluster, ctx)  # as in bootstrap.join
            raise
        finally:
            await remove_token(api, token)


async def _certificate_key(deps: Dependencies, args: RunNodeScript, ctx: StepContext) -> str:
    """By a master that stands, at whatever version the script gave it."""
    master, cluster = args.cluster.masters[0], replace(args.cluster, version=None)
    shape = await bootstrap.cluster_shape(await deps.connector.host(master, ctx), master, cluster, ctx)
    return (await bootstrap.upload_certificates(deps, cluster, shape, ctx)).opened(str)


async def _run(
    deps: Dependencies, host: RemoteHost, args: RunNodeScript, credentials: list[str], ctx: StepContext
) -> None:
    cluster, node = args.cluster, args.node
    control = cluster.masters if node in cluster.masters else (*cluster.masters, node)
    masters = [await address_of(one, ctx) for one in control]
    who = ["-m", ",".join(masters)] if node.master else ["-w", await address_of(node, ctx)]
    options = [
        *who,
        "-i",
        cluster.vip or masters[0],
        "-p",
        cluster.networks.pods,
        "-a",
        cluster.networks.services,
        *credentials,
    ]
    proxy = {key.lower(): value for key, value in (await proxy_variables(args.setup, cluster, ctx)).items()}
    insecure = [one.server for one in registries_of(args.setup) if one.connection_type == HTTP]
    variables = {
        **proxy,
        "ha_flag": str(cluster.vip is not None),
        "HTTP_PRIVATE_REGISTRIES": ",".join(insecure),
        "API_SERVER_NAMES": ",".join(await bootstrap.further_names(cluster, ctx)),
    }
    await run_package_script(deps, host, args.path, options, variables, ctx, job=JOB, limit=SECONDS)


class _ScriptFailed(Exception):
    """The script said that all is well, and it is not."""

    def __init__(self, detail: str, cure: str) -> None:
        super().__init__(detail)
        self.detail, self.cure = detail, cure


async def _check_cluster_exists(host: RemoteHost, args: RunNodeScript) -> None:
    if await host.get(ADMIN, sudo=True) is None:
        raise _ScriptFailed(
            f"{args.path} ended well on {args.node.slot}, but began no cluster: there is no {ADMIN}.",
            "let the script end with another code than 0 when it fails, and see what it does on the first master.",
        )


async def _wait_for_node(api: KubeApi, args: RunNodeScript) -> None:
    backoff = Backoff(1.0, 1.0, timeout=SEEN_SECONDS)
    while True:
        names = [node["metadata"]["name"] for node in await api.list("/api/v1/nodes")]
        if args.node.name in names:
            return
        if not await backoff.pause():
            raise _ScriptFailed(
                f"{args.path} ended well on {args.node.slot}, but no node {args.node.name} is in the cluster; "
                f"there are: {', '.join(names) or 'none'}.",
                "let the script join the machine under its host name, and end with another code than 0 when it fails.",
            )
