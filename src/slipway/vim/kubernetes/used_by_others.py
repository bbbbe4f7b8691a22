"""Whether others have something that would go with a namespace or a definition of the instance."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.kube.discovery import Resource
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import Objects
from slipway.kube.ownership import INSTANCE
from slipway.kube.pods import names
from slipway.model.errors import VimError, VimFault
from slipway.vim.kubernetes.arguments import Placed
from slipway.vim.kubernetes.session import Session


async def refuse_if_used(session: Session, objects: Sequence[Placed]) -> None:
    """VimError names what is in the way."""
    for one in objects:
        find = _in_namespace if one.kind == "Namespace" else _of_kind
        if used := await find(session, one):
            raise VimError(
                f"{one.kind} {one.name} is kept, and nothing is removed: {len(used)} objects of others would go with "
                f"it ({names(used)}).",
                VimFault.PERMANENT,
                cure="remove those first, then retry; or roll back.",
            )


async def _in_namespace(session: Session, namespace: Placed) -> list[str]:
    """What other VNFs have there: of what nobody has labelled the cluster's own can't be told from others'."""
    resources = [one for one in await session.api.discovery.everything() if one.namespaced and "list" in one.verbs]
    selector = f"{INSTANCE},{INSTANCE}!={session.owner.instance_id}"
    found = await gather_or_cancel(_listed(session, one, namespace.name, selector) for one in resources)
    return sorted({name for some in found for name in some})


async def _of_kind(session: Session, definition: Placed) -> list[str]:
    resource = await session.api.discovery.resource(definition.api_version, definition.kind)
    try:
        spec = (await session.api.get(resource.path(None, definition.name)))["spec"]
        version = next(one["name"] for one in spec["versions"] if one["storage"])
        custom = await session.api.discovery.resource(f"{spec['group']}/{version}", spec["names"]["kind"])
    except KubeError as error:
        if error.status == 404:  # gone already
            return []
        raise
    return await _listed(session, custom, None, f"{INSTANCE}!={session.owner.instance_id}")


async def _listed(session: Session, resource: Resource, namespace: str | None, selector: str) -> list[str]:
    try:
        found: Objects = await session.api.list(
            resource.collection(namespace), metadata_only=True, labelSelector=selector
        )
    except KubeError as error:
        if error.status in (403, 404, 405):  # not for us to see, or not to be listed
            return []
        raise
    places = (one["metadata"] for one in found)
    return [
        f"{resource.kind} {'/'.join(part for part in (one.get('namespace'), one['name']) if part)}" for one in places
    ]
