"""Whether others have something that would go with a namespace or a definition of the instance."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.kube.discovery import Resource
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, Objects, uid_of
from slipway.kube.ownership import INSTANCE
from slipway.kube.pods import names
from slipway.model.errors import VimError, VimFault
from slipway.vim.kubernetes.arguments import Placed
from slipway.vim.kubernetes.cluster_api import is_cluster
from slipway.vim.kubernetes.session import Session

SHARED = ("Namespace", "CustomResourceDefinition")  # kinds in which, or of which, others may have objects


async def refuse_if_used(session: Session, objects: Sequence[Placed]) -> None:
    """VimError names what is in the way."""
    namespaces = [one for one in objects if one.kind == "Namespace"]
    definitions = [one for one in objects if one.kind != "Namespace"]
    for namespace in namespaces:
        _refuse([namespace], await _in_namespace(session, namespace))
    custom = await gather_or_cancel(_of_kind(session, one) for one in definitions)
    there = {uid_of(one) for some in custom for one in some}
    used = [[one for one in some if _is_of_others(one, session.owner.instance_id, there)] for some in custom]
    # Of a cluster's objects the Cluster says most to a person.
    others = sorted((one for some in used for one in some), key=lambda one: not is_cluster(one))
    _refuse([one for one, some in zip(definitions, used, strict=True) if some], [_called(one) for one in others])


def _refuse(kept: Sequence[Placed], used: Sequence[str]) -> None:
    if used:
        are, them = ("is", "it") if len(kept) == 1 else ("are", "them")
        raise VimError(
            f"{kept[0].kind} {names(one.name for one in kept)} {are} kept, and nothing is removed: {len(used)} objects "
            f"of others would go with {them} ({names(used)}).",
            VimFault.PERMANENT,
            cure="remove those first, then retry; or roll back.",
        )


def _is_of_others(one: Object, instance_id: str, there: set[str]) -> bool:
    """What belongs to another custom resource goes, and is named, with that one."""
    metadata = one["metadata"]
    owned = any(reference.get("uid") in there for reference in metadata.get("ownerReferences") or [])
    return not owned and (metadata.get("labels") or {}).get(INSTANCE) != instance_id


async def _in_namespace(session: Session, namespace: Placed) -> list[str]:
    """What other VNFs have there: of what nobody has labelled the cluster's own can't be told from others'."""
    resources = [one for one in await session.api.discovery.everything() if one.namespaced and "list" in one.verbs]
    selector = f"{INSTANCE},{INSTANCE}!={session.owner.instance_id}"
    found = await gather_or_cancel(_listed(session, one, namespace.name, labelSelector=selector) for one in resources)
    return sorted({_called(one) for some in found for one in some})


async def _of_kind(session: Session, definition: Placed) -> Objects:
    resource = await session.api.discovery.resource(definition.api_version, definition.kind)
    try:
        spec = (await session.api.get(resource.path(None, definition.name)))["spec"]
        version = next(one["name"] for one in spec["versions"] if one["storage"])
        custom = await session.api.discovery.resource(f"{spec['group']}/{version}", spec["names"]["kind"])
    except KubeError as error:
        if error.status == 404:  # gone already
            return []
        raise
    try:
        return await _listed(session, custom, None, forbidden=())
    except KubeError as error:
        if error.status != 403:
            raise
        raise VimError(
            f"Whether others have objects of {definition.name} can't be seen, and they would go with it: "
            f"{error.detail.rstrip('.')}.",
            VimFault.PERMANENT,
            cure=f"allow the VIM's account to list {custom.kind} in all namespaces, then retry; or roll back.",
        ) from None


async def _listed(
    session: Session, resource: Resource, namespace: str | None, *, forbidden: tuple[int, ...] = (403,), **query: str
) -> Objects:
    """Nothing where it can't be listed, or where that is `forbidden` to us."""
    try:
        found = await session.api.list(resource.collection(namespace), metadata_only=True, **query)
    except KubeError as error:
        if error.status in (*forbidden, 404, 405):
            return []
        raise
    return [{**one, "apiVersion": resource.api_version, "kind": resource.kind} for one in found]


def _called(one: Object) -> str:
    metadata = one["metadata"]
    return f"{one['kind']} {'/'.join(part for part in (metadata.get('namespace'), metadata['name']) if part)}"
