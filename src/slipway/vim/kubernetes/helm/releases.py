"""Releases as a cluster has them: Helm keeps each revision in a Secret, whose labels say all that Slipway asks.

Slipway's own labels tell whose a release is and what was put into it. Whoever else upgrades a release hands them on
without wanting to; but not the number of the revision, which Slipway notes as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from slipway.kube import paths
from slipway.kube.drain import gather_or_cancel
from slipway.kube.interface import Object, ObjectApi
from slipway.kube.ownership import INSTANCE, OPERATION
from slipway.model.machine import Found, FoundObject

KIND = "HelmRelease"
# Labels of a revision that Slipway made.
KEY, DIGEST, REVISION = "slipway.io/release", "slipway.io/content", "slipway.io/revision"
DEPLOYED = "deployed"
HELM = "helm"  # who sets the fields of what a release made
UNDER_WAY = ("pending-install", "pending-upgrade", "pending-rollback")


@dataclass(frozen=True)
class Revision:
    """`ours`: made by Slipway, and not by somebody who went on from what Slipway made.

    `operation`: the last one that has begun to change it.
    """

    release: str
    number: int
    status: str
    instance_id: str | None
    ours: bool
    key: str
    digest: str
    operation: str | None
    secret: str

    @property
    def is_deployed(self) -> bool:
        return self.status == DEPLOYED


def release_name(key: str, instance_id: str) -> str:
    """Nobody else's: the first 48 bits of the instance's id are in it. At most 53 characters, as Helm wants it."""
    return f"{key}-{instance_id.replace('-', '')[:12]}"


def release_id(key: str) -> str:
    return f"{KIND}/{key}"


def is_release(one: FoundObject) -> bool:
    """Not an object of the cluster whose kind has that name, as Flux has one."""
    return one.kind == KIND and one.api_version is None


def of_releases(objects: Iterable[FoundObject]) -> list[FoundObject]:
    return [one for one in objects if is_release(one)]


def is_of_release(one: FoundObject, key: str | None = None) -> bool:
    """Whether it is an object that a release made: this one, or any."""
    prefix = f"{release_id(key)}/" if key is not None else f"{KIND}/"
    return one.id.startswith(prefix) and not is_release(one)


async def revisions(api: ObjectApi, namespace: str, release: str) -> list[Revision]:
    """Oldest first."""
    return await _listed(api, namespace, f"owner=helm,name={release}")


async def newest_of_instance(api: ObjectApi, instance_id: str, namespaces: Iterable[str]) -> list[tuple[str, Revision]]:
    """The newest revision of each release that has the instance's label and a name of Slipway's, with its namespace.

    Charts make Secrets too, and what a chart makes gets the label.
    """
    places = sorted(set(namespaces))
    found = await gather_or_cancel(_listed(api, place, f"owner=helm,{INSTANCE}={instance_id}") for place in places)
    newest = {
        (place, one.release): one
        for place, some in zip(places, found, strict=True)
        for one in some
        if one.release == release_name(one.key, instance_id)
    }
    return [(place, one) for (place, _), one in newest.items()]


async def find_releases(api: ObjectApi, instance_id: str, inventory: Found) -> tuple[FoundObject, ...]:
    namespaces = {one.namespace for one in of_releases(inventory.objects) if one.namespace}
    found = await newest_of_instance(api, instance_id, namespaces)
    return tuple(found_release(one, place) for place, one in found)


def found_release(one: Revision, namespace: str) -> FoundObject:
    """One that is not deployed has no digest: it is not as anybody wants it."""
    return FoundObject(
        id=release_id(one.key),
        kind=KIND,
        name=one.release,
        namespace=namespace,
        digest=one.digest if one.is_deployed else None,
        fields=str(one.number),
        ready=one.is_deployed,
    )


async def forget_revision(api: ObjectApi, namespace: str, one: Revision) -> None:
    """One that nobody is at any more: what it made is met again by the next attempt, which has the same name for it."""
    await api.delete(paths.namespaced("/api/v1", namespace, "secrets", one.secret))


async def mark_ours(api: ObjectApi, namespace: str, one: Revision) -> None:
    """After a rollback, which hands on the labels of the revision that it went back to."""
    patch = {"metadata": {"labels": {REVISION: str(one.number)}}}
    await api.patch(paths.namespaced("/api/v1", namespace, "secrets", one.secret), patch)


async def note_begun(api: ObjectApi, namespace: str, one: Revision, operation_id: str) -> None:
    """From now on its objects may differ from what is recorded because of this operation, and not of somebody else."""
    patch = {"metadata": {"labels": {OPERATION: operation_id}}}
    await api.patch(paths.namespaced("/api/v1", namespace, "secrets", one.secret), patch)


async def release_drift(api: ObjectApi, instance_id: str, inventory: Found) -> Sequence[str]:
    recorded = of_releases(inventory.objects)
    found = await newest_of_instance(api, instance_id, {one.namespace for one in recorded if one.namespace})
    there = {(place, one.release): one for place, one in found}
    problems = []
    for one in recorded:
        newest = there.get((one.namespace or "", one.name))
        name = f"Helm release {one.namespace}/{one.name}"
        if newest is None:
            problems.append(f"{name} is gone.")
        elif not newest.is_deployed:
            problems.append(f"{name} is {newest.status} at revision {newest.number}.")
        elif one.fields is not None and str(newest.number) != one.fields:
            problems.append(f"{name} was changed: it is at revision {newest.number}, and Slipway made {one.fields}.")
    return problems


def helm_fields(found: Object) -> str | None:
    """A digest of the fields that Helm has set. A field that somebody else sets leaves them."""
    entries = [
        entry
        for entry in found["metadata"].get("managedFields") or ()
        if entry.get("manager") == HELM and not entry.get("subresource")
    ]
    fields = [entry.get("fieldsV1") for entry in sorted(entries, key=lambda entry: str(entry.get("operation")))]
    return sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()[:32] if fields else None


async def _listed(api: ObjectApi, namespace: str, selector: str) -> list[Revision]:
    path = paths.namespaced("/api/v1", namespace, "secrets")
    found = await api.list(path, metadata_only=True, labelSelector=selector)
    return sorted((_revision(one) for one in found), key=lambda one: (one.release, one.number))


def _revision(secret: Object) -> Revision:
    labels: dict[str, Any] = secret["metadata"].get("labels") or {}
    number = str(labels.get("version", ""))
    return Revision(
        release=str(labels.get("name")),
        number=int(number) if number.isdecimal() else 0,
        status=str(labels.get("status")),
        instance_id=labels.get(INSTANCE),
        ours=labels.get(REVISION) == number,
        key=str(labels.get(KEY, "")),
        digest=str(labels.get(DIGEST, "")),
        operation=labels.get(OPERATION),
        secret=secret["metadata"]["name"],
    )
