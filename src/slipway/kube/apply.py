"""Server-side apply of one object of any kind, that never takes over what somebody else made.

    applied = await apply(api, manifest, Owner(instance_id, operation_id))
    applied.ref, applied.uid, applied.generation, applied.digest, applied.made

A step may be repeated: what is there and ours becomes as the manifest says, under the same uid. Errors are KubeErrors:
`ForeignObject` for one that is another's, 409 with manager and field where somebody else has set a field of ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from slipway.kube.api import FIELD_MANAGER
from slipway.kube.errors import KubeError, short
from slipway.kube.interface import Object, ObjectApi, ObjectRef, ref_of
from slipway.kube.ownership import INSTANCE, Owner, made_by, manifest_digest, marked, owner_of

# No object has it: etcd begins to count there. An apply that names it makes an object, and changes none.
NO_VERSION = "1"
FIELD_CONFLICT = "FieldManagerConflict"
RACES = 3  # times that an object may come or go between a look and an apply
_MANAGER = re.compile(r'conflict with "([^"]*)"')


@dataclass(frozen=True)
class Applied:
    """What stands after an apply. `digest` is that of the manifest as it was given, `made` whether this call made it."""

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
            cure=f"give the object another name or namespace, or remove the one that is there (its label {INSTANCE} "
            "would say whose it is).",
        )


async def apply(
    api: ObjectApi,
    manifest: Object,
    owner: Owner,
    *,
    expect: Literal["absent", "present"] = "absent",
    force: bool = False,
) -> Applied:
    """`expect` saves a call when it is right, and changes nothing when it is not.

    `force` takes back fields that others have set since: only for putting back what was there before.
    """
    ...
