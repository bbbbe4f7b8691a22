"""Whose an object is: a label with the VNF instance, annotations with the operation that made it and what was applied.

owner = Owner(instance_id, operation_id)
await api.list(pods.collection(), labelSelector=owner.selector)
owner_of(found) == instance_id; made_by(found) == operation_id; digest_of(found)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from slipway.kube.interface import Object

INSTANCE = "slipway.io/instance"  # label
OPERATION = "slipway.io/operation"  # annotation: which one made it, so that its undo removes nothing else
DIGEST = "slipway.io/digest"  # annotation: of the manifest that was applied last


@dataclass(frozen=True)
class Owner:
    instance_id: str
    operation_id: str

    @property
    def selector(self) -> str:
        return f"{INSTANCE}={self.instance_id}"


def owner_of(found: Object) -> str | None:
    """The instance; None for an object that Slipway did not make."""
    return _entry(found, "labels", INSTANCE)


def made_by(found: Object) -> str | None:
    return _entry(found, "annotations", OPERATION)


def digest_of(found: Object) -> str | None:
    return _entry(found, "annotations", DIGEST)


def manifest_digest(manifest: Object) -> str:
    """The same for the same content, in whatever order it is written."""
    return sha256(msgspec.json.encode(manifest, order="sorted")).hexdigest()


def marked(manifest: Object, instance_id: str, operation_id: str) -> Object:
    """The manifest with the label and annotations that say whose it is. Its own labels and annotations stay."""
    metadata: dict[str, Any] = manifest.get("metadata") or {}
    labels = {**_map(metadata.get("labels")), INSTANCE: instance_id}
    notes = {OPERATION: operation_id, DIGEST: manifest_digest(manifest)}
    annotations = {**_map(metadata.get("annotations")), **notes}
    return {**manifest, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def _entry(found: Object, part: str, key: str) -> str | None:
    value = _map(_map(found.get("metadata")).get(part)).get(key)
    return value if isinstance(value, str) else None


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
