"""The storage server: its volumes mounted, its directories served by NFS; and the NFS client on the cluster's nodes."""

from __future__ import annotations

from typing import Any

from slipway.cluster.nfs_config import UNITS, server_files
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import install, run, run_job
from slipway.cluster.steps.prepare import record_host_key
from slipway.cluster.steps.setup import proxy_variables, write_proxy_environment
from slipway.cluster.steps.storage_arguments import MountVolumes, NfsClient, ServeNfs
from slipway.cluster.steps.volumes import mount_volume
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

INSTALL_SECONDS = 900.0
START_SECONDS = 120.0
INSTALL_CURE = (
    "use an image that has them, or see that the machine reaches its package repositories (through `proxy`, where it "
    "needs one); then retry."
)


async def mount_volumes(deps: Dependencies, args: MountVolumes, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    for mount in args.mounts:
        await mount_volume(host, args.node, mount.storage, mount.path, ctx)
    return await record_host_key(deps, args.node, ctx)


async def serve_nfs(deps: Dependencies, args: ServeNfs, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    kind, *missing = (await run(host, "nfs_facts", "server")).text.split()
    await _install(host, args.node, missing, args.cluster, args.setup, ctx)
    changed = await install(host, server_files(kind, args.exports))
    places = [word for export in args.exports for word in (export.mount, export.directory)]
    await run(host, "nfs_server", kind, UNITS[kind], "yes" if changed else "no", *places, limit=START_SECONDS)
    return Outcome()


async def nfs_client(deps: Dependencies, args: NfsClient, ctx: StepContext) -> Outcome:
    """Without it a kubelet can't mount the volumes."""
    host = await deps.connector.host(args.node, ctx)
    missing = (await run(host, "nfs_facts", "client")).text.split()
    await _install(host, args.node, missing, args.cluster, args.setup, ctx)
    return Outcome()


async def _install(
    host: RemoteHost, node: Node, missing: list[str], cluster: ClusterSpec, setup: dict[str, Any], ctx: StepContext
) -> None:
    if not missing:
        return
    await write_proxy_environment(host, await proxy_variables(setup, cluster, ctx))
    try:
        await run_job(host, "apt_install", *missing, limit=INSTALL_SECONDS, job=f"install-{missing[0]}")
    except StepError as error:
        raise StepError(f"{node.slot} has no {', '.join(missing)}, and can't get them: {error.detail}",
                        temporary=error.temporary, cure=INSTALL_CURE) from None  # fmt: skip
