"""A node comes to another version of Kubernetes, which its machine has beside the present one, or gets first."""

from __future__ import annotations

from slipway.cluster.recorded import record_upgrade_begun, record_version
from slipway.cluster.spec import ClusterSpec
from slipway.cluster.steps.arguments import Examine, Fetch, RecordVersion, Restart, Uncordon, Upgrade
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import address_of, facts_of, kubernetes_version, run, run_job, temporary_if_api_error
from slipway.cluster.steps.prepare import archives
from slipway.cluster.steps.sources import fetch_programs, install_fetched_packages
from slipway.cluster.versions import Version, refuse_node, refuse_upgrade, version
from slipway.kube.interface import KubeApi
from slipway.kube.nodes import find_node, kubelet_version, node_is_ready
from slipway.kube.nodes import uncordon as let_pods_in
from slipway.kube.waiting import wait_for_daemon_set, wait_for_node_ready
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.waiting import Backoff

UPGRADE_SECONDS = 1200.0
BACK_SECONDS = 300.0
PACKAGES = "packages"


async def fetch(deps: Dependencies, args: Fetch, ctx: StepContext) -> Outcome:
    await fetch_programs(deps, await deps.connector.host(args.node, ctx), args, ctx)
    return Outcome()


async def examine(deps: Dependencies, args: Examine, ctx: StepContext) -> Outcome:
    """All that can be known to fail is known before the first node changes."""
    new = _wanted(args.cluster)
    if args.source != PACKAGES:
        host = await deps.connector.host(args.node, ctx)
        new = kubernetes_version(await facts_of(host, await address_of(args.node, ctx)), args.cluster, args.node)
    async with deps.connector.api(args.cluster, ctx) as api:
        control, node = await _running(api), await find_node(api, args.node.name)
    if node is None or not node_is_ready(node):
        raise StepError(f"{args.node.slot} is not Ready.", cure="mend or heal it, then try again.")
    has = kubelet_version(node)
    if refusal := refuse_upgrade(control, new) or (refuse_node(new, version(has)) if has else None):
        raise StepError(f"{args.node.slot}: {refusal.what}.", cure=f"{refusal.cure}.")
    return Outcome()


async def upgrade(deps: Dependencies, args: Upgrade, ctx: StepContext) -> Outcome:
    """kubeadm's work as a job that is found again: running, or done. Done over, it does no harm."""
    host = await deps.connector.host(args.node, ctx)
    new = _wanted(args.cluster)
    how = "apply" if args.first else "node"
    job = f"upgrade-{how}-{new}".replace(".", "-")
    if args.source == PACKAGES:
        await install_fetched_packages(host, str(new), "kubeadm")
    arguments = (str(new), how, args.source, *archives(args.node))
    try:
        await run_job(host, "upgrade", *arguments, limit=UPGRADE_SECONDS, job=job)
    except StepError as error:
        if temporary_if_api_error(error).temporary:
            raise temporary_if_api_error(error) from None
        cure = "mend what kubeadm complains about, then retry: nodes that are done stay done."
        raise StepError(error.detail, cure=cure) from None
    return Outcome(instance=record_upgrade_begun(new)) if args.first else Outcome()


async def restart(deps: Dependencies, args: Restart, ctx: StepContext) -> Outcome:
    async with deps.connector.api(args.cluster, ctx) as api:
        node = await find_node(api, args.node.name)
    new = _wanted(args.cluster)
    if node is None or kubelet_version(node) != new.tag:
        host = await deps.connector.host(args.node, ctx)
        if args.source == PACKAGES:
            await install_fetched_packages(host, str(new), "kubelet", "kubectl")
        await run(host, "restart_kubelet", str(new), args.source)
    return Outcome()


async def uncordon(deps: Dependencies, args: Uncordon, ctx: StepContext) -> Outcome:
    """A single master's API may be away for a moment after its kubelet was restarted."""
    backoff = Backoff(1.0, 1.0, timeout=BACK_SECONDS)
    while True:
        try:
            async with deps.connector.api(args.cluster, ctx) as api:
                await wait_for_node_ready(api, args.node.name, backoff.remaining, _wanted(args.cluster).tag)
                await let_pods_in(api, args.node.name)
                if args.node.master:
                    # Every node's way to Services is replaced: no pod has to move while that goes on.
                    await wait_for_daemon_set(api, "kube-system", "kube-proxy", backoff.remaining)
                return Outcome()
        except StepError as error:
            if not error.temporary or not await backoff.pause():
                raise


async def record(deps: Dependencies, args: RecordVersion, ctx: StepContext) -> Outcome:
    async with deps.connector.api(args.cluster, ctx) as api:
        running = await _running(api)
    if running != _wanted(args.cluster):
        raise StepError(f"The API server is at {running}, not at {args.cluster.version}.")
    return Outcome(instance=record_version(running))


async def _running(api: KubeApi) -> Version:
    return version((await api.get("/version"))["gitVersion"])


def _wanted(cluster: ClusterSpec) -> Version:
    return version(cluster.version)
