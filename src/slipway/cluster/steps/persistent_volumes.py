"""Persistent volumes of the storage server in the cluster's API: registered, told apart from others', deleted."""

from __future__ import annotations

from slipway.cluster.persistent_volumes import VolumeManifest
from slipway.cluster.spec import Node
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.storage import mount_volumes, serve_nfs
from slipway.cluster.steps.storage_arguments import (
    CheckVolumes,
    DeleteVolumes,
    MountVolumes,
    RegisterVolumes,
    ServeNfs,
)
from slipway.kube import paths
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi, Object
from slipway.kube.ownership import Owner, digest_of, manifest_digest, marked, owner_of
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.waiting import Observation, wait_for

VOLUMES = "/api/v1/persistentvolumes"
READY_SECONDS = 120.0
GONE_SECONDS = 120.0
ANSWER_SECONDS = 10.0
LOOKS = 5  # at a volume that others change meanwhile
READY = ("Available", "Bound")
FREE = ("Released", "Failed")  # whoever it is bound to is gone
IN_USE_CURE = (
    "terminate the VNFs that use them, or delete the claims, and retry. A rollback leaves everything as it was."
)


async def register_volumes(deps: Dependencies, args: RegisterVolumes, ctx: StepContext) -> Outcome:
    async with deps.connector.api(args.cluster, ctx) as api:
        await _register(api, args.server, args.volumes, ctx)
    return Outcome()


async def undo_register_volumes(deps: Dependencies, args: RegisterVolumes, ctx: StepContext) -> Outcome:
    if args.cluster_stays:
        async with deps.connector.api(args.cluster, ctx) as api:
            await _delete_unused(api, ctx)
    return Outcome()


async def check_volumes(deps: Dependencies, args: CheckVolumes, ctx: StepContext) -> Outcome:
    async with deps.connector.api(args.cluster, ctx) as api:
        await _refuse_used(api, await _own(api, ctx))
    return Outcome()


async def delete_volumes(deps: Dependencies, args: DeleteVolumes, ctx: StepContext) -> Outcome:
    async with deps.connector.api(args.cluster, ctx) as api:
        await _delete_unused(api, ctx)
    return Outcome()


async def undo_delete_volumes(deps: Dependencies, args: DeleteVolumes, ctx: StepContext) -> Outcome:
    """As it was. A machine that was made again has to be set up again; one that is dead stays as it is."""
    if await deps.liveness.answers(args.server, None, ctx, ANSWER_SECONDS):
        await mount_volumes(deps, MountVolumes(cluster=args.cluster, node=args.server, mounts=args.mounts), ctx)
        serve = ServeNfs(cluster=args.cluster, node=args.server, exports=args.exports, setup=args.setup)
        await serve_nfs(deps, serve, ctx)
    async with deps.connector.api(args.cluster, ctx) as api:
        await _register(api, args.server, args.volumes, ctx)
    return Outcome()


async def _register(api: KubeApi, server: Node, volumes: tuple[VolumeManifest, ...], ctx: StepContext) -> None:
    for volume in volumes:
        wanted = volume.served_by(await address_of(server, ctx, volume.point))
        if await _make_room(api, wanted, ctx):
            await api.create(VOLUMES, marked(wanted, ctx.instance_id, ctx.operation_id))
    for volume in volumes:
        await _wait_until_ready(api, volume.name)


async def _make_room(api: KubeApi, wanted: Object, ctx: StepContext) -> bool:
    """Whether it is still to be made. One of ours that is otherwise, is going, or that nobody can claim, goes first."""
    name = wanted["metadata"]["name"]
    found = await _find(api, name)
    if found is None:
        return True
    if owner_of(found) != ctx.instance_id:
        raise StepError(f"The cluster has a persistent volume {name} that was not registered for this VNF.",
                        cure="remove it, or give the one in the package another name.")  # fmt: skip
    going = "deletionTimestamp" in found["metadata"]
    if digest_of(found) == manifest_digest(wanted) and _phase(found) in (*READY, "Pending") and not going:
        return False
    await _refuse_used(api, [found])
    await _delete(api, [found])
    return True


async def _own(api: KubeApi, ctx: StepContext) -> list[Object]:
    return await api.list(VOLUMES, labelSelector=Owner(ctx.instance_id, ctx.operation_id).selector)


async def _delete_unused(api: KubeApi, ctx: StepContext) -> None:
    """Asked once more: a claim may have come since the check."""
    found = await _own(api, ctx)
    await _refuse_used(api, found)
    await _delete(api, found)


async def _delete(api: KubeApi, volumes: list[Object]) -> None:
    for volume in volumes:
        await _delete_as_seen(api, volume)
    for volume in volumes:
        await _wait_until_gone(api, volume["metadata"]["name"])


async def _delete_as_seen(api: KubeApi, volume: Object) -> None:
    """A claim that comes after the look changes the volume, which is looked at again: what is deleted while it is
    bound can't be taken back, and goes when its claim does."""
    for left in reversed(range(LOOKS)):
        seen = volume["metadata"]
        try:
            await api.delete(_path(seen["name"]), uid=seen.get("uid"), version=seen.get("resourceVersion"))
        except KubeError as error:
            if error.status != 409 or not left:
                raise
        else:
            return
        found = await _find(api, seen["name"])
        if found is None or found["metadata"].get("uid") != seen.get("uid"):
            return
        await _refuse_used(api, [found])
        volume = found


async def _refuse_used(api: KubeApi, volumes: list[Object]) -> None:
    used = {volume["metadata"]["name"]: await _claim(api, volume) for volume in volumes}
    named = [f"{name} by the claim {claim}" for name, claim in used.items() if claim]
    if named:
        raise StepError(f"Persistent volumes are in use: {', '.join(named)}.", cure=IN_USE_CURE)


async def _claim(api: KubeApi, volume: Object) -> str | None:
    """The claim that uses it: the one it is bound to, if that is still there. A Released volume is used by nobody.

    Kubernetes writes whose it is before it says Bound: what is deleted in between may be bound all the same.
    """
    reference = (volume.get("spec") or {}).get("claimRef") or {}
    namespace, name = reference.get("namespace"), reference.get("name")
    if _phase(volume) in FREE or not namespace or not name:
        return None
    try:
        claim = await api.get(paths.namespaced("/api/v1", namespace, "persistentvolumeclaims", name))
    except KubeError as error:
        if error.status == 404:
            return None
        raise
    return f"{namespace}/{name}" if claim["metadata"].get("uid") == reference.get("uid") else None


async def _wait_until_ready(api: KubeApi, name: str) -> None:
    async def look() -> Observation:
        if (found := await _find(api, name)) is None:
            return Observation(False, "it is not there")
        phase, why = _phase(found), (found.get("status") or {}).get("message")
        return Observation(phase in READY, f"it is {phase}" + (f": {why}" if why else ""), hopeless=phase == "Failed")

    await wait_for(look, f"persistent volume {name} to be Available", READY_SECONDS)


async def _wait_until_gone(api: KubeApi, name: str) -> None:
    async def look() -> Observation:
        found = await _find(api, name)
        finalizers = (found or {}).get("metadata", {}).get("finalizers") or []
        claim = await _claim(api, found) if found else None
        parts = [
            "it is still there",
            *(f"held by {one}" for one in finalizers),
            *([f"used by {claim}"] if claim else []),
        ]
        return Observation(found is None, ", ".join(parts))

    await wait_for(look, f"persistent volume {name} to be gone", GONE_SECONDS)


async def _find(api: KubeApi, name: str) -> Object | None:
    try:
        return await api.get(_path(name))
    except KubeError as error:
        if error.status == 404:
            return None
        raise


def _phase(volume: Object) -> str:
    return str((volume.get("status") or {}).get("phase") or "Pending")


def _path(name: str) -> str:
    return f"{VOLUMES}/{paths.segment(name)}"
