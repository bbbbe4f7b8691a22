"""Nodes as the API knows them: ready and labelled when they came, emptied before they go, forgotten afterwards."""

from __future__ import annotations

import logging

from slipway.cluster.naming import place_labels
from slipway.cluster.steps.arguments import Drain, Forget, Ready
from slipway.cluster.steps.world import World
from slipway.kube import drain as draining
from slipway.kube import paths
from slipway.kube.nodes import find_node, kubelet_version
from slipway.kube.waiting import node_gone, node_ready
from slipway.model.action import StepContext
from slipway.model.machine import Outcome

log = logging.getLogger(__name__)

READY_SECONDS = 300.0
GONE_SECONDS = 60.0
ANSWER_SECONDS = 10.0


async def ready(world: World, args: Ready, ctx: StepContext) -> Outcome:
    """Labels of `kubernetes.io` are not for a kubelet to set, so they are set here, once there is a node to label."""
    machine = await ctx.machine(args.node.machine)
    labels = {**place_labels(machine.host, machine.zone), **args.node.labels}
    async with world.reach.api(args.site, ctx) as api:
        await node_ready(api, args.node.name, READY_SECONDS)
        if labels:
            await api.patch(paths.node(args.node.name), {"metadata": {"labels": labels}})
    return Outcome()


async def drain(world: World, args: Drain, ctx: StepContext) -> Outcome:
    policy = draining.Policy(timeout=args.timeout, empty_dir=args.empty_dir, force=args.force)
    async with world.reach.api(args.site, ctx) as api:
        if args.unless and kubelet_version(await find_node(api, args.node.name) or {}) == f"v{args.unless}":
            return Outcome()
        dead = not await world.liveness.answers(args.node, args.site, ctx, ANSWER_SECONDS)
        await draining.drain(api, args.node.name, policy, log.info, dead=dead)
    return Outcome()


async def undrain(world: World, args: Drain, ctx: StepContext) -> Outcome:
    async with world.reach.api(args.site, ctx) as api:
        await draining.uncordon(api, args.node.name)
    return Outcome()


async def forget(world: World, args: Forget, ctx: StepContext) -> Outcome:
    """Only once the machine is gone: its kubelet would bring the object back."""
    async with world.reach.api(args.site, ctx) as api:
        await api.delete(paths.node(args.node.name))
        await node_gone(api, args.node.name, GONE_SECONDS)
    return Outcome()
