"""Nodes as the API knows them: ready and labelled after they joined, drained before they leave, deleted afterwards."""

from __future__ import annotations

import logging

from slipway.cluster.naming import location_labels
from slipway.cluster.steps.arguments import DeleteNode, Drain, Ready
from slipway.cluster.steps.dependencies import Dependencies
from slipway.kube import drain as draining
from slipway.kube import paths
from slipway.kube.nodes import find_node, kubelet_version, uncordon
from slipway.kube.waiting import wait_for_node_gone, wait_for_node_ready
from slipway.model.action import StepContext
from slipway.model.machine import Outcome

log = logging.getLogger(__name__)

READY_SECONDS = 300.0
GONE_SECONDS = 60.0
ANSWER_SECONDS = 10.0


async def ready(deps: Dependencies, args: Ready, ctx: StepContext) -> Outcome:
    """Labels of `kubernetes.io` are not for a kubelet to set, so they are set here, once there is a node to label."""
    machine = await ctx.machine(args.node.machine)
    labels = {**location_labels(machine.host, machine.zone), **args.node.labels}
    async with deps.connector.api(args.cluster, ctx) as api:
        await wait_for_node_ready(api, args.node.name, READY_SECONDS)
        if labels:
            await api.patch(paths.node(args.node.name), {"metadata": {"labels": labels}})
    return Outcome()


async def drain(deps: Dependencies, args: Drain, ctx: StepContext) -> Outcome:
    policy = draining.DrainPolicy(timeout=args.timeout, empty_dir=args.empty_dir, force=args.force)
    async with deps.connector.api(args.cluster, ctx) as api:
        if args.unless and kubelet_version(await find_node(api, args.node.name) or {}) == f"v{args.unless}":
            return Outcome()
        dead = not await deps.liveness.answers(args.node, args.cluster, ctx, ANSWER_SECONDS)
        await draining.drain(api, args.node.name, policy, log.info, dead=dead)
    return Outcome()


async def undrain(deps: Dependencies, args: Drain, ctx: StepContext) -> Outcome:
    async with deps.connector.api(args.cluster, ctx) as api:
        await uncordon(api, args.node.name)
    return Outcome()


async def delete_node(deps: Dependencies, args: DeleteNode, ctx: StepContext) -> Outcome:
    """Only once the machine is gone: its kubelet would bring the object back."""
    async with deps.connector.api(args.cluster, ctx) as api:
        await api.delete(paths.node(args.node.name))
        await wait_for_node_gone(api, args.node.name, GONE_SECONDS)
    return Outcome()
