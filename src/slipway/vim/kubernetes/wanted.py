"""From a target to the objects that it is on a Kubernetes VIM: which VDU is which object, and how many of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from slipway.kube.interface import Object
from slipway.kube.ownership import manifest_digest
from slipway.model.descriptor import Vdu
from slipway.model.errors import PackageError, Unprocessable
from slipway.model.machine import FoundObject
from slipway.model.target import VnfTarget
from slipway.vim.kubernetes.cnf_parameters import MAPPING, REPLICAS_PATH, CnfParameters, cnf_parameters
from slipway.vim.kubernetes.immutable_names import is_configuration, may_be_renamed, name_for
from slipway.vim.kubernetes.manifests import Manifest, manifests_of
from slipway.vim.kubernetes.object_plan import FileObjects, ObjectPlan, content_digest, object_id
from slipway.vim.kubernetes.pod_references import at, mappings, referenced
from slipway.vim.kubernetes.scale_path import scale_path
from slipway.vim.kubernetes.waves import DEFINITION, Wave, wave_of

# Kinds of the API server itself whose objects have no number that could be set.
ONE_OF_EACH = frozenset({("", "Pod"), ("apps", "DaemonSet"), ("batch", "Job"), ("batch", "CronJob")})
AUTOSCALER = ("autoscaling", "HorizontalPodAutoscaler")
# A VDU is looked for among those first: others may have the same name, as a Service has.
WITH_PODS = frozenset({"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"})
# Of the API server itself and without a namespace; of other kinds it tells when they are applied.
WITHOUT_NAMESPACE = frozenset(
    {
        "Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
        "StorageClass", "PriorityClass", "APIService", "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration", "IngressClass", "RuntimeClass", "CSIDriver", "VolumeAttachment",
    }
)  # fmt: skip


NOTHING: Mapping[str, str | None] = MappingProxyType({})


@dataclass(frozen=True)
class WantedObject:
    plan: ObjectPlan
    wave: Wave
    vnfd_id: str
    path: str
    digest: str  # of the file
    manifest: Manifest

    @property
    def id(self) -> str:
        return self.plan.id


def wanted_objects(
    target: VnfTarget | None, there: Mapping[str, str | None] = NOTHING, home: str | None = None
) -> list[WantedObject]:
    """In the order in which they are written. `there`: digests of what stands, by id. `home`: see `home_of`. Pure."""
    if target is None:
        return []
    parameters = cnf_parameters(target)
    manifests = manifests_of(target.files, parameters.files)
    _check_namespaces(manifests)
    if parameters.namespace:
        manifests = [dataclasses.replace(one, placed=True) for one in manifests]
    ids = _ids(manifests)
    vdus = vdu_objects(target, parameters, manifests)
    custom = {_defined(one) for one in manifests if _is_definition(one)}
    configs = {one.key: sha256(_encoded(one.content)).hexdigest() for one in manifests if is_configuration(one)}
    names = _new_names(manifests, ids, there)
    wanted = []
    for position, (manifest, id_) in enumerate(zip(manifests, ids, strict=True)):
        name = names.get(manifest.key, manifest.name)
        used = referenced(manifest.content)
        plan = ObjectPlan(
            at=manifest.at,
            id=id_.removesuffix(manifest.name) + name,
            api_version=manifest.api_version,
            kind=manifest.kind,
            name=name,
            namespace=manifest.namespace,
            home=home,
            expires=manifest.expires,
            configuration=_configuration(manifest, used, configs),
            renamed={
                f"{kind}/{former}": new
                for kind, former in sorted(used)
                if (new := names.get((kind, manifest.namespace, former)))
            },
            **_numbers(manifest, vdus.get(position), target, parameters, manifests),
        )
        plan = replace(plan, digest=content_digest(manifest.content, plan))
        wave = wave_of(manifest.api_version, manifest.kind, custom)
        wanted.append(
            WantedObject(plan, wave, target.vnfd_id, manifest.file, target.files[manifest.file].digest, manifest)
        )
    return wanted


def home_of(recorded: Sequence[FoundObject]) -> str | None:
    """Where the objects are that no manifest places: there they stay, whatever the VIM says of later ones."""
    unplaced = (one for one in recorded if one.id == object_id(one.api_version or "v1", one.kind, one.name, None))
    return next((one.namespace for one in unplaced if one.namespace), None)


def in_files(objects: Sequence[WantedObject]) -> tuple[FileObjects, ...]:
    """As a step's arguments have them."""
    files: dict[tuple[str, str, str], list[ObjectPlan]] = {}
    for one in objects:
        files.setdefault((one.vnfd_id, one.path, one.digest), []).append(one.plan)
    return tuple(
        FileObjects(vnfd_id=vnfd_id, path=path, digest=digest, objects=tuple(plans))
        for (vnfd_id, path, digest), plans in files.items()
    )


def vdu_objects(target: VnfTarget, parameters: CnfParameters, manifests: Sequence[Manifest]) -> dict[int, str]:
    """VDUs by the position of the object that each is."""
    found: dict[int, str] = {}
    for vdu in target.flavour.vdus.values():
        position = _object_of(vdu, parameters, manifests)
        if position in found:
            raise Unprocessable(
                f"VDUs {found[position]} and {vdu.name} are both {manifests[position]}; name another object for one of "
                f"them in additionalParams.{MAPPING}."
            )
        found[position] = vdu.name
    return found


def _object_of(vdu: Vdu, parameters: CnfParameters, manifests: Sequence[Manifest]) -> int:
    if mapped := parameters.mapping.get(vdu.name):
        positions = [at for at, one in enumerate(manifests) if (one.kind, one.name) == (mapped.kind, mapped.name)]
        if not positions:
            raise Unprocessable(
                f"additionalParams.{MAPPING}.{vdu.name}: the manifests have no {mapped.kind} {mapped.name}; correct it."
            )
        if len(positions) > 1:
            raise Unprocessable(
                f"additionalParams.{MAPPING}.{vdu.name}: the manifests have several: "
                f"{', '.join(_ids([manifests[at] for at in positions]))}; give the one that it is another name."
            )
        return positions[0]
    names = [name for name in (vdu.title, vdu.name) if name]
    for name in names:
        called = [at for at, one in enumerate(manifests) if one.name == name]
        with_pods = [at for at in called if manifests[at].kind in WITH_PODS]
        positions = with_pods or [
            at for at in called if wave_of(manifests[at].api_version, "") is Wave.CUSTOM_RESOURCES
        ]
        if len(positions) > 1:
            raise Unprocessable(
                f"VDU {vdu.name}: {' and '.join(str(manifests[at]) for at in positions)} are named so; say which one "
                f"it is in additionalParams.{MAPPING}."
            )
        if positions:
            return positions[0]
    raise Unprocessable(
        f"VDU {vdu.name}: no workload of the manifests is named {' or '.join(map(repr, dict.fromkeys(names)))}; name "
        f"one so, or say which object it is in additionalParams.{MAPPING}."
    )


def _numbers(
    manifest: Manifest,
    vdu: str | None,
    target: VnfTarget,
    parameters: CnfParameters,
    manifests: Sequence[Manifest],
) -> dict[str, Any]:
    """What a plan says about a VDU's object: a manifest that says another number is not followed."""
    if vdu is None:
        return {}
    mapped = parameters.mapping.get(vdu)
    scales = any(vdu in aspect.deltas for aspect in target.flavour.aspects.values())
    is_custom = wave_of(manifest.api_version, "") is Wave.CUSTOM_RESOURCES
    path = mapped.replicas_path if mapped else None
    definition = next(
        (one for one in manifests if _is_definition(one) and _defined(one) == _group_kind(manifest)), None
    )
    if path is None and not is_custom and _group_kind(manifest) not in ONE_OF_EACH:
        path = REPLICAS_PATH
    elif path is None and definition:
        path = _scale_path(definition, manifest)
    if path is None and (definition or not is_custom):
        if scales:
            raise Unprocessable(
                f"VDU {vdu}: it is the {manifest}, which has no number of replicas, and the VNFD has a scaling aspect "
                "for it; take it out of the aspect, make it a Deployment or a StatefulSet, or say where its number is "
                f"(additionalParams.{MAPPING}.{vdu}.replicas_path)."
            )
        return {"vdu": vdu}
    if not scales and any(_autoscales(one, manifest) for one in manifests):
        return {"vdu": vdu}
    return {"vdu": vdu, "replicas": target.counts[vdu], "replicas_path": path, "scales": scales}


def _autoscales(autoscaler: Manifest, manifest: Manifest) -> bool:
    """Whether that one sets the number of this one."""
    if _group_kind(autoscaler) != AUTOSCALER or autoscaler.namespace != manifest.namespace:
        return False
    scaled = at(autoscaler.content, "spec", "scaleTargetRef")
    return (scaled.get("kind"), scaled.get("name")) == (manifest.kind, manifest.name)


def _scale_path(definition: Manifest, manifest: Manifest) -> str | None:
    """Where objects of the kind have their number, by the definition that the package brings."""
    versions = _spec(definition).get("versions")
    for one in mappings(versions):
        if one.get("name") == manifest.api_version.rpartition("/")[2]:
            return scale_path(one)
    return None


def _ids(manifests: Sequence[Manifest]) -> list[str]:
    ids = [object_id(one.api_version, one.kind, one.name, one.namespace) for one in manifests]
    if twice := next((id_ for id_, number in Counter(ids).items() if number > 1), None):
        first, second = [one for one, id_ in zip(manifests, ids, strict=True) if id_ == twice][:2]
        raise PackageError(
            f"{second} is there twice; the other one is in {first.file}, line {first.line}.",
            file=second.file,
            line=second.line,
            cure="keep one of them.",
        )
    return ids


def _check_namespaces(manifests: Sequence[Manifest]) -> None:
    cluster_wide = {_defined(one) for one in manifests if _is_definition(one) and _spec(one).get("scope") == "Cluster"}
    for one in manifests:
        built_in = wave_of(one.api_version, one.kind) is not Wave.CUSTOM_RESOURCES and one.kind in WITHOUT_NAMESPACE
        if one.namespace and (built_in or _group_kind(one) in cluster_wide):
            raise one.error(
                f"it has the namespace {one.namespace!r}, and objects of its kind have none.",
                "leave metadata.namespace out.",
            )


def _new_names(
    manifests: Sequence[Manifest], ids: Sequence[str], there: Mapping[str, str | None]
) -> dict[tuple[str, str | None, str], str]:
    """Of what can't be changed and stands with other content."""
    names = {}
    renamable = may_be_renamed(manifests)
    for manifest, id_ in zip(manifests, ids, strict=True):
        if manifest.key in renamable:
            plan = ObjectPlan(
                at=manifest.at, id=id_, api_version=manifest.api_version, kind=manifest.kind, name=manifest.name
            )
            names[manifest.key] = name_for(manifest.name, id_, content_digest(manifest.content, plan), there)
    return {key: name for key, name in names.items() if name != key[2]}


def _configuration(
    manifest: Manifest, used: Iterable[tuple[str, str]], configs: Mapping[tuple[str, str | None, str], str]
) -> str | None:
    """Changes when a ConfigMap or Secret of the package that its pods use does: then they are started anew."""
    if manifest.kind in ("Job", "CronJob"):
        return None
    found: list[Any] = [
        (kind, name, digest) for kind, name in sorted(used) if (digest := configs.get((kind, manifest.namespace, name)))
    ]
    if manifest.kind == "ReplicaSet":  # whose pods nobody replaces when their template has changed
        found.append(manifest_digest(at(manifest.content, "spec", "template")))
    return sha256(msgspec.json.encode(found)).hexdigest()[:32] if found else None


def _group_kind(manifest: Manifest) -> tuple[str, str]:
    return manifest.group, manifest.kind


def _is_definition(manifest: Manifest) -> bool:
    return _group_kind(manifest) == DEFINITION


def _spec(manifest: Manifest) -> Object:
    spec = manifest.content.get("spec")
    return spec if isinstance(spec, dict) else {}


def _defined(definition: Manifest) -> tuple[str, str]:
    """Group and kind of what it defines."""
    spec = _spec(definition)
    names = spec.get("names")
    return str(spec.get("group")), str(names.get("kind")) if isinstance(names, dict) else ""


def _encoded(content: Object) -> bytes:
    return msgspec.json.encode(content, order="sorted")
