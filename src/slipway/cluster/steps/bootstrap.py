"""The first master begins the cluster; the others join it, each with a bootstrap token that is removed afterwards."""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta

from slipway.cluster.kubeadm_config import (
    ClusterShape,
    JoinCredentials,
    NodeShape,
    as_yaml,
    init_documents,
    join_documents,
    upload_documents,
)
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps import etcd
from slipway.cluster.steps.arguments import Init, Join
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import address_of, facts_of, kubernetes_version, run, run_job, temporary_if_api_error
from slipway.cluster.values import Secret
from slipway.cluster.versions import Version
from slipway.kube import paths
from slipway.kube.bootstrap import ca_hash, cluster_ca, make_token, new_token, remove_token
from slipway.kube.drain import DrainPolicy, drain
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

log = logging.getLogger(__name__)

CONFIG = "/etc/kubernetes/slipway.yaml"
INIT_SECONDS = 900.0
JOIN_SECONDS = 900.0
UNJOIN_SECONDS = 120.0
BOOTSTRAP_TOKEN_LIFETIME = timedelta(hours=2)


async def init(deps: Dependencies, args: Init, ctx: StepContext) -> Outcome:
    """A second call finds the job of the first, running or done."""
    host = await deps.connector.host(args.node, ctx)
    shape = await cluster_shape(host, args.node, args.cluster, ctx)
    credentials = JoinCredentials(token=Secret(new_token()), ca_cert_hashes=())
    documents = init_documents(shape, await _node_shape(args.node, ctx), credentials)
    await host.put(CONFIG, as_yaml(documents), sudo=True)
    await run_job(host, "init", CONFIG, limit=INIT_SECONDS)
    return Outcome()


async def join(deps: Dependencies, args: Join, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    async with deps.connector.api(args.cluster, ctx) as api:
        shape = await cluster_shape(host, args.node, args.cluster, ctx)
        token = await make_token(api, BOOTSTRAP_TOKEN_LIFETIME)
        try:
            credentials = JoinCredentials(
                token=Secret(token),
                ca_cert_hashes=(ca_hash(await cluster_ca(api)),),
                certificate_key=await upload_certificates(deps, args.cluster, shape, ctx) if args.node.master else None,
            )
            shaped = await _node_shape(args.node, ctx)
            documents = join_documents(shape, shaped, credentials, control_plane=args.node.master)
            await host.put(CONFIG, as_yaml(documents), sudo=True)
            await run_job(host, "join", CONFIG, limit=JOIN_SECONDS)
        except StepError as error:
            if args.node.master and not error.temporary:
                # A member that never came up counts against the quorum, and the next try would be a second one.
                await etcd.remove_member(deps, args.node, args.cluster, ctx)
            raise temporary_if_api_error(error) from None
        finally:
            await remove_token(api, token)
    return Outcome()


async def unjoin(deps: Dependencies, args: Join, ctx: StepContext) -> Outcome:
    """Out of a cluster that stays: pods first, then etcd, then the Node object. The machine goes in the next step."""
    if not args.cluster_stays:
        return Outcome()
    async with deps.connector.api(args.cluster, ctx) as api:
        dead = not await deps.liveness.answers(args.node, args.cluster, ctx)
        await drain(api, args.node.name, DrainPolicy(timeout=UNJOIN_SECONDS, force=True), log.info, dead=dead)
        if args.node.master:
            await etcd.remove_member(deps, args.node, args.cluster, ctx)
        await api.delete(paths.node(args.node.name))
    return Outcome()


async def cluster_shape(host: RemoteHost, node: Node, cluster: ClusterSpec, ctx: StepContext) -> ClusterShape:
    first = await address_of(cluster.masters[0], ctx)
    chosen: Version = kubernetes_version(await facts_of(host, await address_of(node, ctx)), cluster, node)
    return ClusterShape(
        name=cluster.name,
        version=chosen,
        address=cluster.vip or first,
        balanced=cluster.vip is not None,
        networks=cluster.networks,
        image_repository=cluster.image_repository,
        further_names=await further_names(cluster, ctx),
    )


async def further_names(cluster: ClusterSpec, ctx: StepContext) -> tuple[str, ...]:
    """Addresses by which the API is called, too: certificates have them."""
    names = [await address_of(one, ctx, one.ssh) for one in cluster.masters]
    return tuple(dict.fromkeys([*([cluster.outside] if cluster.outside else []), *names]))


async def _node_shape(node: Node, ctx: StepContext) -> NodeShape:
    return NodeShape(name=node.name, address=await address_of(node, ctx), taints=node.taints)


async def upload_certificates(
    deps: Dependencies, cluster: ClusterSpec, shape: ClusterShape, ctx: StepContext
) -> Secret:
    """The masters' shared certificates, put into the cluster under a new key."""
    key = Secret(secrets.token_hex(32))
    master = await etcd.reachable_master(deps, cluster, ctx)
    path = "/etc/kubernetes/slipway-certificates.yaml"
    await master.put(path, as_yaml(upload_documents(shape, key)), sudo=True)
    await run(master, "upload_certificates", path)
    return key
