"""Server-side apply of one object of any kind, that never takes over what somebody else made.

    applied = await apply(api, manifest, Owner(instance_id, operation_id))
    applied.ref, applied.uid, applied.generation, applied.digest, applied.made

A step may be repeated: what is there and ours becomes as the manifest says, under the same uid. Errors are KubeErrors:
`ForeignObject` for one that is another's, `ObjectBeingDeleted` for one that will be gone whatever is applied to it, 409
with manager and field where somebody else has set a field of ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from slipway.kube.api import FIELD_MANAGER
from slipway.kube.errors import KubeError, short
from slipway.kube.interface import Object, ObjectApi, ObjectRef, ref_of, uid_of
from slipway.kube.ownership import INSTANCE, Owner, made_by, manifest_digest, marked, owner_of

# The version that no object has: etcd begins to count there. An apply that names it makes an object and changes none.
NO_VERSION = "1"
FIELD_CONFLICT = "FieldManagerConflict"
MOST_RACES = 5  # times that an object may come or go between a look and an apply
_MANAGER = re.compile(r'conflict with "([^"]*)"')


@dataclass(frozen=True)
class Applied:
    """What stands after an apply. `digest` is that of the manifest as given, `made` whether this call made it."""

    ref: ObjectRef
    uid: str
    generation: int | None
    digest: str
    made: bool
    object: Object


class ForeignObject(KubeError):
    """An object of that name is there and is not this instance's. It was not touched."""

    def __init__(self, ref: ObjectRef, instance_id: str | None) -> None:
        whose = f"belongs to VNF instance {short(instance_id)}" if instance_id else "was not made by Slipway"
        super().__init__(
            f"{ref} is there already and {whose}; it is left as it is.",
            status=409,
            reason="AlreadyExists",
            cure=f"give the object another name or namespace, or remove the one that is there (label {INSTANCE}).",
        )


class ObjectBeingDeleted(KubeError):
    """An object of that name is there and on its way out: what is applied to it would go with it."""

    def __init__(self, ref: ObjectRef, there: Object) -> None:
        self.ref, self.uid = ref, uid_of(there)
        super().__init__(
            f"{ref} is being deleted since {short(str(there['metadata']['deletionTimestamp']))}.",
            status=409,
            reason="Conflict",
            temporary=True,
            cure="try again when it is gone; if it stays, see its finalizers.",
        )


async def apply(
    api: ObjectApi,
    manifest: Object,
    owner: Owner,
    *,
    expect: Literal["absent", "present"] = "absent",
    force: bool = False,
) -> Applied:
    """`expect` saves a call when it is right, and is of no other consequence.

    `force` takes back fields that others have set since: for putting back what was there before.
    """
    path = await api.discovery.path(manifest)
    there = await _find(api, path) if expect == "present" else None
    for _ in range(MOST_RACES):
        found = await (
            _make(api, path, manifest, owner) if there is None else _change(api, path, manifest, owner, there, force)
        )
        if found is not None:
            return _applied(manifest, found, made=there is None)
        there = await _find(api, path)  # it came, went or was replaced since we looked
    raise KubeError(
        f"{ref_of(manifest)} was made, removed or replaced by somebody else each of {MOST_RACES} times it was applied.",
        status=409,
        temporary=True,
        cure="see who else makes and removes it.",
    )


async def _make(api: ObjectApi, path: str, manifest: Object, owner: Owner) -> Object | None:
    """None when there is one already, whosever it is: it was not changed."""
    made = marked(manifest, owner.instance_id, owner.operation_id)
    try:
        return await api.server_side_apply(path, _with_metadata(made, resourceVersion=NO_VERSION))
    except KubeError as error:
        if error.status == 409:
            return None
        raise


async def _change(
    api: ObjectApi, path: str, manifest: Object, owner: Owner, there: Object, force: bool
) -> Object | None:
    """None when it is not there any more. Fields that we have set ourselves by other means, such as replicas by /scale,
    are taken back without being asked."""
    refuse_if_being_deleted(ref_of(manifest), there)
    if owner_of(there) != owner.instance_id:
        raise ForeignObject(ref_of(manifest), owner_of(there))
    ours = marked(manifest, owner.instance_id, made_by(there) or owner.operation_id)
    ours = _with_metadata(ours, uid=uid_of(there))
    for forced in (force, True):
        try:
            return await api.server_side_apply(path, ours, force=forced)
        except KubeError as error:
            if error.status != 409:
                raise
            conflicts = [cause for cause in error.causes if cause.reason == FIELD_CONFLICT]
            if not conflicts:
                return None
            managers = {match[1] if (match := _MANAGER.search(cause.message)) else "?" for cause in conflicts}
            if managers != {FIELD_MANAGER}:
                raise _conflict(manifest, managers, [cause.field for cause in conflicts], error) from None
    return None


def refuse_if_being_deleted(ref: ObjectRef, there: Object) -> None:
    if "deletionTimestamp" in there["metadata"]:
        raise ObjectBeingDeleted(ref, there)


def _conflict(manifest: Object, managers: set[str], fields: list[str], error: KubeError) -> KubeError:
    names = short(", ".join(sorted(managers - {FIELD_MANAGER})))
    return KubeError(
        f"{ref_of(manifest)} is not changed: {short(', '.join(fields))} was set by {names}.",
        status=409,
        reason="Conflict",
        causes=error.causes,
        cure="leave the field out of the manifest when it is for somebody else to set (replicas of an autoscaled "
        "Deployment), or have it set back.",
    )


async def _find(api: ObjectApi, path: str) -> Object | None:
    try:
        return await api.get(path, metadata_only=True)
    except KubeError as error:
        if error.status == 404:
            return None
        raise


def _with_metadata(manifest: Object, **precondition: str) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], **precondition}}


def _applied(manifest: Object, found: Object, *, made: bool) -> Applied:
    metadata = found["metadata"]
    ref = ref_of({**found, "apiVersion": manifest["apiVersion"], "kind": manifest["kind"]})
    return Applied(ref, uid_of(found), metadata.get("generation"), manifest_digest(manifest), made, found)
