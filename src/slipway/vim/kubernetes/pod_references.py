"""Which ConfigMaps and Secrets the pods of a manifest use, and the manifest with other names for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from slipway.kube.interface import Object

_OF_CONTAINERS = (
    ("ConfigMap", ("configMapRef", "configMapKeyRef")),
    ("Secret", ("secretRef", "secretKeyRef")),
)


def pod_path(kind: str) -> tuple[str, ...]:
    """Where a manifest of this kind has the specification of its pods, if it has one."""
    if kind == "Pod":
        return ("spec",)
    return ("spec", "jobTemplate", "spec", "template", "spec") if kind == "CronJob" else ("spec", "template", "spec")


def referenced(manifest: Object) -> set[tuple[str, str]]:
    """Kind and name of the ConfigMaps and Secrets that its pods use."""
    return {(kind, name) for kind, holder, key in _references(manifest) if (name := _text(holder.get(key)))}


def with_references(manifest: Object, renamed: Mapping[str, str]) -> Object:
    """A copy whose pods use others. `renamed` has names by kind and former name: "ConfigMap/web"."""
    changed = deepcopy(manifest)
    for kind, holder, key in _references(changed):
        if (name := f"{kind}/{holder.get(key)}") in renamed:
            holder[key] = renamed[name]
    return changed


def names_outside_of_pods(manifest: Object) -> set[str]:
    """Texts of a manifest without pods that may be names of other objects: by the keys that they stand at."""
    if at(manifest, *pod_path(str(manifest.get("kind")))):
        return set()
    return set(_named({key: value for key, value in manifest.items() if key != "metadata"}, ""))


def _named(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        for inner, one in value.items():
            yield from _named(one, str(inner))
    elif isinstance(value, list):
        for one in value:
            yield from _named(one, key)
    elif isinstance(value, str) and key.lower().endswith(("name", "names", "ref", "refs", "secret", "configmap")):
        yield value


def _references(manifest: Object) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Kind, and the mapping and key at which the name stands."""
    pod = at(manifest, *pod_path(str(manifest.get("kind"))))
    for volume in mappings(pod.get("volumes")):
        for source in (volume, *mappings(at(volume, "projected").get("sources"))):
            secret = at(source, "secret")
            yield "ConfigMap", at(source, "configMap"), "name"
            yield "Secret", secret, "secretName" if "secretName" in secret else "name"
    for container in (*mappings(pod.get("containers")), *mappings(pod.get("initContainers"))):
        variables = (at(one, "valueFrom") for one in mappings(container.get("env")))
        for source in (*mappings(container.get("envFrom")), *variables):
            yield from ((kind, at(source, key), "name") for kind, keys in _OF_CONTAINERS for key in keys)
    yield from (("Secret", one, "name") for one in mappings(pod.get("imagePullSecrets")))


def at(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping there; an empty one when there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> Sequence[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
