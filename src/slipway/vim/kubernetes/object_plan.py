"""An object as a plan has it: where its manifest is, and what Slipway sets in it. Never its content.

The content is read again when a step runs (`rendered`), so that no secret of a manifest stands in a plan or a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from slipway.kube.interface import Object
from slipway.kube.ownership import INSTANCE, manifest_digest
from slipway.vim.kubernetes.pod_references import at, mappings, pod_path, with_references

# Annotations of what Slipway applies.
OBJECT = "slipway.io/object"  # the id that the record has for it
VDU = "slipway.io/vdu"
CONTENT = "slipway.io/content"  # a digest of what was applied, wherever it was applied to
CONFIGURATION = "slipway.io/configuration"  # of a pod template: changes with the ConfigMaps and Secrets it uses


class PlanStruct(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class ObjectPlan(PlanStruct, frozen=True, kw_only=True):
    """`at`: its number in the file. `namespace`: what its manifest says, unless a parameter says it for all.
    `home`: where the VNF has those that neither places, or the VIM says it of the first ones when they are planned.

    `name` may be another than its manifest's, and `renamed` says what of others it must follow: "ConfigMap/web" is now.
    `replicas_path` None: where the kind's `/scale` has the number; `scales`: it must have one.
    `expires`: it goes by itself once it has ended.
    """

    at: int
    id: str
    api_version: str
    kind: str
    name: str
    namespace: str | None = None
    home: str | None = None
    digest: str = ""
    vdu: str | None = None
    replicas: int | None = None
    replicas_path: str | None = None
    scales: bool = False
    expires: bool = False
    configuration: str | None = None
    renamed: dict[str, str] = msgspec.field(default_factory=dict)

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
    """Of what will be applied. Namespace and name are where, not what: a VIM may say the one, Slipway the other."""
    changed = _changed(manifest, plan)
    metadata = {key: value for key, value in changed["metadata"].items() if key != "namespace"}
    unplaced = {"replicas": plan.replicas} if plan.replicas is not None and plan.replicas_path is None else {}
    return manifest_digest({**changed, "metadata": metadata, "vdu": plan.vdu, **unplaced})


def rendered(manifest: Object, plan: ObjectPlan, instance_id: str) -> Object:
    """What is applied."""
    changed = _with_claims(_changed(manifest, plan), instance_id)
    notes = {OBJECT: plan.id, CONTENT: plan.digest} | ({VDU: plan.vdu} if plan.vdu else {})
    return _merged(changed, {"metadata": {"name": plan.name, "annotations": notes}})


def _changed(manifest: Object, plan: ObjectPlan) -> Object:
    if plan.replicas is not None and plan.replicas_path is not None:
        manifest = _merged(manifest, _nested(plan.replicas_path.split("."), plan.replicas))
    if plan.renamed:
        manifest = with_references(manifest, plan.renamed)
    if plan.configuration is not None:
        notes = {"metadata": {"annotations": {CONFIGURATION: plan.configuration}}}
        manifest = _merged(manifest, _nested(pod_path(plan.kind)[:-1], notes))
    return manifest


def _nested(path: Sequence[str], value: Any) -> Any:
    for part in reversed(path):
        value = {part: value}
    return value


def _with_claims(manifest: Object, instance_id: str) -> Object:
    """What a StatefulSet makes of its claim templates outlives it: the label tells whose it is."""
    templates = at(manifest, "spec").get("volumeClaimTemplates")
    if not isinstance(templates, list):
        return manifest
    label = {"metadata": {"labels": {INSTANCE: instance_id}}}
    return _merged(manifest, {"spec": {"volumeClaimTemplates": [_merged(one, label) for one in mappings(templates)]}})


def _merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A copy; what is not a mapping is replaced."""
    changed = dict(document)
    for key, value in patch.items():
        there = changed.get(key)
        changed[key] = _merged(there if isinstance(there, dict) else {}, value) if isinstance(value, dict) else value
    return changed
