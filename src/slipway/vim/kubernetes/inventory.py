"""What a cluster holds for an instance: objects by its label, and the pods of its VDUs."""

from __future__ import annotations

from collections.abc import Iterable

from slipway.kube.discovery import Resource
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectApi, Objects
from slipway.kube.ownership import INSTANCE
from slipway.model.machine import PREREQUISITE, Found, FoundObject
from slipway.vim.kubernetes.helm.releases import find_releases, is_release
from slipway.vim.kubernetes.object_plan import CONTENT, OBJECT, VDU
from slipway.vim.kubernetes.vnfcs import list_vnfcs

Kind = tuple[str, str, str | None]  # apiVersion, kind, namespace
NONE_THERE = (404, 405)  # answers to who lists: nobody serves the kind, or it is one to be asked and not to be kept


async def find(api: ObjectApi, instance_id: str, inventory: Found) -> Found:
    """Of the kinds and in the namespaces that the record has: whatever has the label is the instance's."""
    kinds = {(one.api_version or "v1", one.kind, one.namespace) for one in inventory.objects if not is_release(one)}
    ours = await labelled(api, instance_id, kinds)
    roots = [one for one in ours if VDU in _annotations(one)]
    there = [one for one in inventory.objects if one.id.startswith(PREREQUISITE)]
    return Found(
        objects=(
            *_found_objects([one for one in ours if OBJECT in _annotations(one)]),
            *there,
            *await find_releases(api, instance_id, inventory),
        ),
        machines=tuple(await list_vnfcs(api, roots)),
    )


async def labelled(api: ObjectApi, instance_id: str, kinds: Iterable[Kind]) -> Objects:
    """Metadata alone, with apiVersion and kind. A kind that nobody serves any more, or that can't be kept, has none."""

    async def some(kind: Kind) -> Objects:
        api_version, name, namespace = kind
        try:
            resource = await api.discovery.resource(api_version, name)
            return await labelled_of(api, instance_id, resource, namespace)
        except KubeError as error:
            if error.status in NONE_THERE:
                return []
            raise

    found = await gather_or_cancel(some(kind) for kind in sorted(kinds, key=lambda one: (one[0], one[1], one[2] or "")))
    return sorted(
        (one for some_ in found for one in some_),
        key=lambda one: (one["kind"], one["metadata"].get("namespace") or "", one["metadata"]["name"]),
    )


async def labelled_of(api: ObjectApi, instance_id: str, resource: Resource, namespace: str | None) -> Objects:
    listed = await api.list(
        resource.collection(namespace), metadata_only=True, labelSelector=f"{INSTANCE}={instance_id}"
    )
    return [{**one, "apiVersion": resource.api_version, "kind": resource.kind} for one in listed]


def _found_objects(ours: Objects) -> Iterable[FoundObject]:
    """What is being deleted, or is in a namespace that is, has no digest: it will be gone, whatever it says now."""
    leaving = {one["metadata"]["name"] for one in ours if one["kind"] == "Namespace" and _is_leaving(one)}
    for one in ours:
        metadata, notes = one["metadata"], _annotations(one)
        stays = not _is_leaving(one) and metadata.get("namespace") not in leaving
        yield FoundObject(
            id=notes[OBJECT],
            kind=one["kind"],
            name=metadata["name"],
            namespace=metadata.get("namespace"),
            api_version=one["apiVersion"],
            digest=notes.get(CONTENT) if stays else None,
            vdu=notes.get(VDU),
        )


def _is_leaving(one: Object) -> bool:
    return "deletionTimestamp" in one["metadata"]


def _annotations(one: Object) -> dict[str, str]:
    return one["metadata"].get("annotations") or {}
