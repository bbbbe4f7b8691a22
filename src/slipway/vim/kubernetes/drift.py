"""What others have done to an instance's objects: seen from who set which field, and reported, not overwritten."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from slipway.kube.api import FIELD_MANAGER
from slipway.kube.errors import short
from slipway.kube.interface import Object, ObjectApi
from slipway.model.machine import PREREQUISITE, Found, FoundObject
from slipway.vim.kubernetes.helm.releases import HELM, helm_fields, is_of_release, is_release, release_drift
from slipway.vim.kubernetes.inventory import labelled
from slipway.vim.kubernetes.object_plan import OBJECT, VDU
from slipway.vim.kubernetes.vnfcs import list_vnfcs

MOST_NAMED = 5  # managers


async def drift(api: ObjectApi, instance_id: str, inventory: Found) -> tuple[str, ...]:
    recorded = [one for one in inventory.objects if not one.id.startswith(PREREQUISITE) and not is_release(one)]
    ours = await labelled(api, instance_id, {(one.api_version or "v1", one.kind, one.namespace) for one in recorded})
    there = {(one["metadata"].get("annotations") or {}).get(OBJECT): one for one in ours}
    found = [*await release_drift(api, instance_id, inventory)]
    found += [told for one in recorded if (told := _changed(one, there.get(one.id)))]
    roots = [one for one in ours if VDU in (one["metadata"].get("annotations") or {})]
    pods = await list_vnfcs(api, roots)
    found += [f"{pod.type} {pod.name} of VDU {pod.vdu} is not ready." for pod in pods if not pod.ready]
    return tuple(found)


def own_fields(found: Object) -> str | None:
    """A digest of the fields that Slipway has set by applying. A field that somebody else sets leaves them."""
    for entry in found["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) == (FIELD_MANAGER, "Apply") and not entry.get("subresource"):
            return sha256(msgspec.json.encode(entry.get("fieldsV1"), order="sorted")).hexdigest()[:32]
    return None


def _changed(recorded: FoundObject, there: Object | None) -> str | None:
    name = f"{recorded.namespace}/{recorded.name}" if recorded.namespace else recorded.name
    if there is None:
        return None if recorded.expires else f"{recorded.kind} {name} is gone."
    if "deletionTimestamp" in there["metadata"]:
        return f"{recorded.kind} {name} is being deleted."
    set_by_us = helm_fields(there) if is_of_release(recorded) else own_fields(there)
    if recorded.fields is None or set_by_us == recorded.fields:
        return None
    entries = there["metadata"].get("managedFields") or ()
    ours = {FIELD_MANAGER, HELM} if is_of_release(recorded) else {FIELD_MANAGER}
    others = [entry for entry in entries if str(entry.get("manager")) not in ours and not entry.get("subresource")]
    latest = sorted(others, key=lambda entry: str(entry.get("time")), reverse=True)
    managers = list(dict.fromkeys(str(entry.get("manager")) for entry in latest))[:MOST_NAMED]
    by = f" by {short(', '.join(managers))}" if managers else ""
    return f"{recorded.kind} {name} was changed{by}: it is not as Slipway applied it."
