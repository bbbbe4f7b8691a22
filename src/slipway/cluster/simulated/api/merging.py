"""What an object becomes by a patch, and by a manifest that is applied once more."""

from __future__ import annotations

from typing import Any

from slipway.cluster.simulated.api.refusal import bad_request
from slipway.kube.seam import Object, Objects


def applied(current: Any, manifest: Any, before: Any) -> Any:
    """The manifest over what is there. What the manifest before had and this one has not is taken back."""
    if not isinstance(current, dict) or not isinstance(manifest, dict):
        return manifest
    former = before if isinstance(before, dict) else {}
    kept = {key: value for key, value in current.items() if key in manifest or key not in former}
    return kept | {key: applied(current.get(key), value, former.get(key)) for key, value in manifest.items()}


def patched_by_operations(document: Object, operations: Objects) -> Object:
    """RFC 6902, as far as steps and tests go: add, replace and remove in maps."""
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place: Any = document
        for part in way:
            place = place.get(part) if isinstance(place, dict) else None
        if not isinstance(place, dict) or (operation["op"] != "add" and last not in place):
            raise bad_request(f"the server rejected our request due to an error in our request: {operation['path']}")
        if operation["op"] == "remove":
            del place[last]
        else:
            place[last] = operation["value"]
    return document
