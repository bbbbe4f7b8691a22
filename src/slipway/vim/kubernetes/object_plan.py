"""An object as a plan has it: where its manifest is, and what Slipway sets in it. Never its content.

The content is read again when a step runs (`rendered`), so that no secret of a manifest stands in a plan or a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from slipway.kube.interface import Object
from slipway.kube.ownership import INSTANCE, manifest_digest
from slipway.vim.kubernetes.cnf_parameters import REPLICAS_PATH

# Annotations of what Slipway applies.
OBJECT = "slipway.io/object"  # the id that the record has for it
VDU = "slipway.io/vdu"
CONTENT = "slipway.io/content"  # a digest of what was applied, wherever it was applied to
CONFIGURATION = "slipway.io/configuration"  # of a pod template: changes with the ConfigMaps and Secrets it uses

PREREQUISITE = "prerequisite/"  # begins the id of a definition that was there already: it is not ours to remove


class PlanStruct(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class ObjectPlan(PlanStruct, frozen=True, kw_only=True):
    """`at`: its number in the file. `namespace`: what its manifest says, unless a parameter says it for all."""

    at: int
    id: str
    api_version: str
    kind: str
    name: str
    namespace: str | None = None
    digest: str = ""
    vdu: str | None = None
    replicas: int | None = None
    replicas_path: str = REPLICAS_PATH
    configuration: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class FileObjects(PlanStruct, frozen=True, kw_only=True):
    """Objects of one file of a package."""

    vnfd_id: str
    path: str
    digest: str
    objects: tuple[ObjectPlan, ...] = ()


def object_id(api_version: str, kind: str, name: str, namespace: str | None) -> str:
    """The same for whatever version of the kind: Deployment.apps/web, or Deployment.apps/prod/web."""
    group = api_version.rpartition("/")[0]
    return "/".join(part for part in (f"{kind}.{group}" if group else kind, namespace, name) if part)


def content_digest(manifest: Object, plan: ObjectPlan) -> str:
    """Of what will be applied. The namespace is where, not what: a VIM may say it."""
    changed = _changed(manifest, plan)
    metadata = {key: value for key, value in changed["metadata"].items() if key != "namespace"}
    return manifest_digest({**changed, "metadata": metadata, "vdu": plan.vdu})


def rendered(manifest: Object, plan: ObjectPlan, instance_id: str) -> Object:
    """What is applied."""
    changed = _with_claims(_changed(manifest, plan), instance_id)
    notes = {OBJECT: plan.id, CONTENT: plan.digest} | ({VDU: plan.vdu} if plan.vdu else {})
    return _merged(changed, {"metadata": {"annotations": notes}})


def referenced(manifest: Object) -> set[tuple[str, str]]:
    """Kind and name of the ConfigMaps and Secrets that its pods use."""
    pod = _at(manifest, "spec", "template", "spec")
    found = set[tuple[str, str]]()
    for volume in _maps(pod.get("volumes")):
        for source in (volume, *_maps(_at(volume, "projected").get("sources"))):
            found.add(("ConfigMap", _text(_at(source, "configMap").get("name"))))
            secret = _at(source, "secret")
            found.add(("Secret", _text(secret.get("secretName") or secret.get("name"))))
    for container in (*_maps(pod.get("containers")), *_maps(pod.get("initContainers"))):
        for source in (
            *_maps(container.get("envFrom")),
            *(_at(one, "valueFrom") for one in _maps(container.get("env"))),
        ):
            for kind, keys in (
                ("ConfigMap", ("configMapRef", "configMapKeyRef")),
                ("Secret", ("secretRef", "secretKeyRef")),
            ):
                found.update((kind, _text(_at(source, key).get("name"))) for key in keys)
    return {(kind, name) for kind, name in found if name}


def _changed(manifest: Object, plan: ObjectPlan) -> Object:
    if plan.replicas is not None:
        patch: Any = plan.replicas
        for part in reversed(plan.replicas_path.split(".")):
            patch = {part: patch}
        manifest = _merged(manifest, patch)
    if plan.configuration is not None:
        notes = {"metadata": {"annotations": {CONFIGURATION: plan.configuration}}}
        manifest = _merged(manifest, {"spec": {"template": notes}})
    return manifest


def _with_claims(manifest: Object, instance_id: str) -> Object:
    """What a StatefulSet makes of its claim templates outlives it: the label tells whose it is."""
    templates = _at(manifest, "spec").get("volumeClaimTemplates")
    if not isinstance(templates, list):
        return manifest
    label = {"metadata": {"labels": {INSTANCE: instance_id}}}
    return _merged(manifest, {"spec": {"volumeClaimTemplates": [_merged(one, label) for one in _maps(templates)]}})


def _merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A copy; what is not a mapping is replaced."""
    changed = dict(document)
    for key, value in patch.items():
        there = changed.get(key)
        changed[key] = _merged(there if isinstance(there, dict) else {}, value) if isinstance(value, dict) else value
    return changed


def _at(value: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> Sequence[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
