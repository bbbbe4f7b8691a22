"""The volume that keeps a registry's images, mounted before it serves them."""

from __future__ import annotations

from slipway.cluster.steps import volumes
from slipway.cluster.steps.dependencies import Dependencies
from slipway.model.action import StepContext
from slipway.model.machine import Outcome
from slipway.registry.arguments import MountVolume
from slipway.registry.configuration import DATA


async def mount_volume(deps: Dependencies, args: MountVolume, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    await volumes.mount_volume(host, args.node, args.volume, DATA, ctx)
    return Outcome()
