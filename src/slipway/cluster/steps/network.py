"""The pods' network: a built-in manifest, or one that the package brings."""

from __future__ import annotations

from typing import Any

import yaml

from slipway.cluster.flannel import flannel_manifests
from slipway.cluster.steps.arguments import Network
from slipway.cluster.steps.world import World
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

LARGEST = 1 << 20


async def network(world: World, args: Network, ctx: StepContext) -> Outcome:
    if args.cni == "none":
        return Outcome()
    if args.cni == "flannel":
        manifests = flannel_manifests(args.site.networks.pods, args.site.image_repository)
    else:
        manifests = _manifests(args.cni, await world.files.read(ctx.instance_id, args.cni))
    async with world.reach.api(args.site, ctx) as api:
        for manifest in manifests:
            await api.apply(manifest)
    return Outcome()


def _manifests(path: str, text: bytes) -> list[dict[str, Any]]:
    if len(text) > LARGEST:
        raise StepError(f"{path} is larger than {LARGEST >> 20} MiB.")
    try:
        found = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError:
        raise StepError(f"{path} is no YAML.", cure="correct the manifest in the package.") from None
    if not all(isinstance(one, dict) and one.get("kind") and one.get("apiVersion") for one in found):
        raise StepError(f"{path} holds something that is no manifest.", cure="give apiVersion and kind in each part.")
    return found
