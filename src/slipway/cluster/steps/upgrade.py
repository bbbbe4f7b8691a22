"""A node comes to another version of Kubernetes, which its machine has beside the present one, or gets first."""

from __future__ import annotations

import asyncio

from slipway.cluster.recorded import goes_to, has_version
from slipway.cluster.site import Site
from slipway.cluster.steps.arguments import Examine, Fetch, Record, Restart, Uncordon, Upgrade
from slipway.cluster.steps.facts import facts_of, kubernetes_version
from slipway.cluster.steps.machine import address_of, if_passing, run, run_named
from slipway.cluster.steps.packages import place_packages
from slipway.cluster.steps.prepare import archives
from slipway.cluster.steps.sources import fetched
from slipway.cluster.steps.world import World
from slipway.cluster.versions import Version, refuse_node, refuse_upgrade, version
from slipway.kube.nodes import find_node, kubelet_version, node_is_ready
from slipway.kube.nodes import uncordon as let_pods_in
from slipway.kube.seam import KubeApi
from slipway.kube.waiting import daemon_set_current, node_ready
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

UPGRADE_SECONDS = 1200.0
BACK_SECONDS = 300.0
PACKAGES = "packages"


async def fetch(world: World, args: Fetch, ctx: StepContext) -> Outcome:
    await fetched(world, await world.reach.hands(args.node, ctx), args, ctx)
    return Outcome()


async def examine(world: World, args: Examine, ctx: StepContext) -> Outcome:
    """All that can be known to fail is known before the first node changes."""
    new = _wanted(args.site)
    if args.source != PACKAGES:
        hands = await world.reach.hands(args.node, ctx)
        new = kubernetes_version(await facts_of(hands, await address_of(args.node, ctx)), args.site, args.node)
    async with world.reach.api(args.site, ctx) as api:
        control, node = await _running(api), await find_node(api, args.node.name)
    if node is None or not node_is_ready(node):
        raise StepError(f"{args.node.slot} is not Ready.", cure="mend or heal it, then try again.")
    has = kubelet_version(node)
    if refusal := refuse_upgrade(control, new) or (refuse_node(new, version(has)) if has else None):
        raise StepError(f"{args.node.slot}: {refusal.what}.", cure=f"{refusal.cure}.")
    return Outcome()


async def upgrade(world: World, args: Upgrade, ctx: StepContext) -> Outcome:
    """kubeadm's work as a job that is found again: running, or done. Done over, it does no harm."""
    hands = await world.reach.hands(args.node, ctx)
    new = _wanted(args.site)
    how = "apply" if args.first else "node"
    job = f"upgrade-{how}-{new}".replace(".", "-")
    if args.source == PACKAGES:
        await place_packages(hands, str(new), "kubeadm")
    arguments = (str(new), how, args.source, *archives(args.node))
    try:
        await run_named(hands, "upgrade", *arguments, limit=UPGRADE_SECONDS, job=job)
    except StepError as error:
        if if_passing(error).temporary:
            raise if_passing(error) from None
        cure = "mend what kubeadm complains about, then retry: nodes that are done stay done."
        raise StepError(error.detail, cure=cure) from None
    return Outcome(instance=goes_to(new)) if args.first else Outcome()


async def restart(world: World, args: Restart, ctx: StepContext) -> Outcome:
    async with world.reach.api(args.site, ctx) as api:
        node = await find_node(api, args.node.name)
    new = _wanted(args.site)
    if node is None or kubelet_version(node) != new.tag:
        hands = await world.reach.hands(args.node, ctx)
        if args.source == PACKAGES:
            await place_packages(hands, str(new), "kubelet", "kubectl")
        await run(hands, "restart_kubelet", str(new), args.source)
    return Outcome()


async def uncordon(world: World, args: Uncordon, ctx: StepContext) -> Outcome:
    """A single master's API may be away for a moment after its kubelet was restarted."""
    now = asyncio.get_running_loop().time
    end = now() + BACK_SECONDS
    while True:
        try:
            async with world.reach.api(args.site, ctx) as api:
                await node_ready(api, args.node.name, end - now(), _wanted(args.site).tag)
                await let_pods_in(api, args.node.name)
                if args.node.master:
                    # Every node's way to Services is replaced: no pod has to move while that goes on.
                    await daemon_set_current(api, "kube-system", "kube-proxy", end - now())
                return Outcome()
        except StepError as error:
            if not error.temporary or now() >= end:
                raise
        await asyncio.sleep(1.0)


async def record(world: World, args: Record, ctx: StepContext) -> Outcome:
    async with world.reach.api(args.site, ctx) as api:
        running = await _running(api)
    if running != _wanted(args.site):
        raise StepError(f"The API server is at {running}, not at {args.site.version}.")
    return Outcome(instance=has_version(running))


async def _running(api: KubeApi) -> Version:
    return version((await api.get("/version"))["gitVersion"])


def _wanted(site: Site) -> Version:
    return version(site.version)
