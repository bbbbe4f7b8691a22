"""A kind of our own, whose status nobody but a test writes."""

from __future__ import annotations

from typing import Any

from slipway.kube.interface import Object


def definition(group: str) -> Object:
    """Namespaced Ships, with a status and a scale."""
    properties = {
        "spec": {
            "type": "object",
            "properties": {"masts": {"type": "integer"}, "replicas": {"type": "integer"}},
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"ships.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [version],
        },
    }


def ship(group: str, namespace: str, **spec: Any) -> Object:
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Ship",
        "metadata": {"name": "one", "namespace": namespace},
        "spec": spec,
    }
