"""What a release made: the objects of its manifest, which of them is which VDU, and Slipway's label on each.

With the label they are found as the objects of manifests are: VNFCs by owner references, drift, leftovers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from slipway.kube import paths
from slipway.kube.deletion import Doomed, delete
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import ObjectRef, uid_of
from slipway.kube.ownership import INSTANCE, owner_of
from slipway.model.errors import PackageError, VimError, VimFault
from slipway.model.machine import FoundObject
from slipway.vim.kubernetes.arguments import Placed
from slipway.vim.kubernetes.cnf_parameters import FORCE
from slipway.vim.kubernetes.helm.arguments import VduObject
from slipway.vim.kubernetes.helm.releases import HELM, KEY, helm_fields, release_id
from slipway.vim.kubernetes.inventory import labelled
from slipway.vim.kubernetes.manifests import (
    MOST_OBJECTS,
    MOST_VALUES,
    MOST_VALUES_OF_ALL,
    Manifest,
    read_together,
)
from slipway.vim.kubernetes.object_plan import OBJECT, VDU, object_id
from slipway.vim.kubernetes.object_steps import REMOVE_TIMEOUT
from slipway.vim.kubernetes.session import Session
from slipway.vim.kubernetes.waits import until_gone
from slipway.vim.kubernetes.wanted import WITH_PODS
from slipway.vim.kubernetes.waves import Wave, wave_of

KEEP = "helm.sh/resource-policy"  # an annotation: what has it stays when its release goes
HOOK = "helm.sh/hook"  # an annotation: Helm makes it at a moment, and it is no part of the release
LONGEST = 63  # characters of a name that charts make, as `helm create` writes it
HELM_TYPE, HELM_NAME = "helm.sh/release.v1", "sh.helm.release."  # of Secrets that Helm keeps revisions in
# Helm reads its keys in any case, and the server does not.
ANY_CASE = {"apiversion": "apiVersion", "kind": "kind", "metadata": "metadata"}
ANY_CASE_OF_METADATA = {"name": "name", "annotations": "annotations"}
NAME_LABELS = ("app.kubernetes.io/component", "app.kubernetes.io/name")


def read_manifest(release: str, *printed: bytes) -> tuple[Manifest, ...]:
    """What `helm get manifest` prints. Several texts are hooks before they are installed: one text afterwards."""
    return read_manifests(((f"release {release}", one) for one in printed), MOST_VALUES)


def read_manifests(texts: Iterable[tuple[str, bytes]], most: int = MOST_VALUES_OF_ALL) -> tuple[Manifest, ...]:
    try:
        manifests = tuple(read_together(texts, most))
    except PackageError as error:
        raise VimError(f"What the chart makes can't be read: {error.detail}", VimFault.PERMANENT) from None
    if len(manifests) > MOST_OBJECTS:
        raise VimError(
            f"The chart makes {len(manifests)} objects; at most {MOST_OBJECTS} can be one release.",
            VimFault.PERMANENT,
            cure="make two charts of it.",
        )
    return manifests


def check_rendered(manifests: Sequence[Manifest]) -> None:
    """What Helm, or Slipway itself, would take for something else than it is. VimError names the object. Pure."""
    for one in manifests:
        metadata = one.content["metadata"]
        if "items" in one.content:
            raise _refused(one, "it has items, which Helm makes in its place", "write its objects one by one")
        for there, known in ((one.content, ANY_CASE), (metadata, ANY_CASE_OF_METADATA)):
            for key in there:
                if (as_read := known.get(key.casefold(), key)) != key:
                    raise _refused(one, f"it has {key!r}, which Helm reads as {as_read!r}", "correct it")
        if one.kind in ("Secret", "ConfigMap") and (
            one.content.get("type") == HELM_TYPE or one.name.startswith(HELM_NAME) or _labels(one).get("owner") == HELM
        ):
            raise _refused(
                one,
                f"only Helm makes what has the type {HELM_TYPE}, a name {HELM_NAME}... or the label owner={HELM}",
                "leave it out, or give it another name and label",
            )


def _refused(manifest: Manifest, why: str, cure: str) -> VimError:
    return VimError(f"The chart makes {manifest}, which is refused: {why}.", VimFault.PERMANENT, cure=f"{cure}.")


def vdu_positions(
    release: str, key: str, vdus: Mapping[str, VduObject], manifests: Sequence[Manifest]
) -> dict[int, str]:
    """Which object each VDU is: VDUs by its position. VimError names the VDU and what the chart makes. Pure."""
    found: dict[int, str] = {}
    for vdu, wanted in vdus.items():
        at = _position(release, key, vdu, wanted, manifests)
        if at in found:
            raise _not_found(vdu, f"it would be {manifests[at]}, and so would {found[at]}")
        found[at] = vdu
    return found


def _position(release: str, key: str, vdu: str, wanted: VduObject, manifests: Sequence[Manifest]) -> int:
    workloads = [
        at for at, one in enumerate(manifests) if (one.kind == wanted.kind if wanted.kind else _runs_pods(one))
    ]
    for names in _names(release, key, wanted.name):
        if called := [at for at in workloads if manifests[at].name in names]:
            break
    else:
        called = [at for at in workloads if any(_labels(manifests[at]).get(one) == wanted.name for one in NAME_LABELS)]
    if len(called) == 1:
        return called[0]
    shown = ", ".join(str(manifests[at]) for at in (called or workloads)[:10]) or "none"
    if called:
        raise _not_found(vdu, f"several objects are called {wanted.name!r}: {shown}")
    raise _not_found(vdu, f"the chart makes no {wanted.kind or 'workload'} called {wanted.name!r}; it makes: {shown}")


def _names(release: str, key: str, name: str) -> list[set[str]]:
    """How a chart may call it, the surest first: as it is, or with the name of the release.

    `helm create` writes that before it, charts of packages for other managers behind it.
    """
    cut = [f"{release}-{name}"[:LONGEST].rstrip("-"), f"{name}-{release}"[:LONGEST].rstrip("-")]
    if re.match(rf"{re.escape(key)}(-|$)", name):  # as other managers have it, whose releases are called by the key
        cut.append(f"{release}{name.removeprefix(key)}"[:LONGEST].rstrip("-"))
    return [{name}, set(cut), {release} if key == name else set()]


def check_numbers(vdus: Mapping[str, VduObject], manifests: Sequence[Manifest], positions: Mapping[int, str]) -> None:
    """A value that is not the number of its VDU is told before anything is made."""
    for at, vdu in positions.items():
        wanted, spec = vdus[vdu], manifests[at].content.get("spec")
        number = spec.get("replicas") if isinstance(spec, dict) else None
        if wanted.replicas is not None and isinstance(number, int) and number != wanted.replicas:
            raise VimError(
                f"VDU {vdu}: {manifests[at]} of the chart has {number} replicas, and {wanted.replicas} are wanted: the "
                f"value {wanted.value} is not its number.",
                VimFault.PERMANENT,
                cure="name the value that is in additionalParams.helm_value_names.",
            )


def _not_found(vdu: str, why: str) -> VimError:
    return VimError(
        f"VDU {vdu}: {why}.",
        VimFault.PERMANENT,
        cure=f"say which object it is in additionalParams.vdu_mapping.{vdu} (kind, name).",
    )


def _runs_pods(manifest: Manifest) -> bool:
    return manifest.kind in WITH_PODS or wave_of(manifest.api_version, "") is Wave.CUSTOM_RESOURCES


def _labels(manifest: Manifest) -> Mapping[str, str]:
    return manifest.content["metadata"].get("labels") or {}


async def label_objects(
    session: Session, namespace: str, key: str, manifests: Sequence[Manifest], vdus: Mapping[int, str]
) -> list[FoundObject]:
    """All of them. Those that are to outlive the release lose the label that an earlier revision gave them."""

    async def label(at: int, manifest: Manifest) -> FoundObject | None:
        ref = await placed(session, manifest, namespace)
        if is_kept(manifest):
            await _unlabel(session, ref)
            return None
        id_ = f"{release_id(key)}/{object_id(ref.api_version, ref.kind, ref.name, manifest.namespace)}"
        notes = {OBJECT: id_, VDU: vdus.get(at)}
        patch = {"metadata": {"labels": {INSTANCE: session.owner.instance_id}, "annotations": notes}}
        resource = await session.api.discovery.resource(ref.api_version, ref.kind)
        try:
            there = await session.api.patch(resource.path(ref.namespace, ref.name), patch)
        except KubeError as error:
            if error.status != 404:
                raise
            if not manifest.expires:
                raise VimError(f"{ref} of the release is not there.", VimFault.TEMPORARY) from None
            there = {"metadata": {}}
        return FoundObject(
            id=id_,
            kind=ref.kind,
            name=ref.name,
            namespace=ref.namespace,
            api_version=ref.api_version,
            fields=helm_fields(there),
            vdu=vdus.get(at),
            expires=manifest.expires,
        )

    found = await gather_or_cancel(label(at, one) for at, one in enumerate(manifests))
    return [one for one in found if one]


async def _unlabel(session: Session, ref: ObjectRef) -> None:
    resource = await session.api.discovery.resource(ref.api_version, ref.kind)
    patch = {"metadata": {"labels": {INSTANCE: None}, "annotations": {OBJECT: None, VDU: None}}}
    try:
        await session.api.patch(resource.path(ref.namespace, ref.name), patch)
    except KubeError as error:
        if error.status != 404:
            raise


async def refuse_if_set_by_others(session: Session, objects: Sequence[Placed], fields: Mapping[str, str]) -> None:
    """Helm would set fields back without a word. VimError names the object."""
    kinds = {(one.api_version, one.kind, one.namespace) for one in objects}
    for found in await labelled(session.api, session.owner.instance_id, kinds):
        id_ = str((found["metadata"].get("annotations") or {}).get(OBJECT))
        if id_ in fields and helm_fields(found) != fields[id_]:
            metadata = found["metadata"]
            ref = ObjectRef(found["apiVersion"], found["kind"], metadata["name"], metadata.get("namespace"))
            raise VimError(
                f"{ref} of the release was changed by somebody else, and an upgrade would set it back.",
                VimFault.PERMANENT,
                cure="have it set back or put the change into the chart's values; to go on all the same, roll back and "
                f"ask again with additionalParams {FORCE}=true.",
            )


async def refuse_hooks_of_others(session: Session, namespace: str, hooks: Sequence[Manifest]) -> None:
    """Helm deletes what has the name of a hook before it makes that, whosever it is. VimError names it."""
    ours = session.owner.instance_id
    for hook in hooks:
        try:
            ref = await placed(session, hook, namespace)
            resource = await session.api.discovery.resource(ref.api_version, ref.kind)
            there = await session.api.get(resource.path(ref.namespace, ref.name), metadata_only=True)
        except KubeError as error:
            if error.status == 404:
                continue
            raise
        was_hook = HOOK in (there["metadata"].get("annotations") or {})  # an earlier revision's, mostly
        if owner_of(there) != ours and not (was_hook and owner_of(there) is None):
            raise VimError(
                f"{ref} is there already and is not the release's; a hook of the chart would take its place.",
                VimFault.PERMANENT,
                cure="give the hook another name, one with .Release.Name in it, or remove the object that is there.",
            )


def is_hook(manifest: Manifest) -> bool:
    return HOOK in (manifest.content["metadata"].get("annotations") or {})


def is_hook_at(manifest: Manifest, moments: Collection[str]) -> bool:
    """As Helm reads it: in any case, with spaces around each."""
    said = str((manifest.content["metadata"].get("annotations") or {}).get(HOOK))
    return any(one.strip().lower() in moments for one in said.split(","))


def is_kept(manifest: Manifest) -> bool:
    """As Helm reads it: in any case, with spaces around it."""
    return str((manifest.content["metadata"].get("annotations") or {}).get(KEEP)).strip().lower() == "keep"


async def placed(session: Session, manifest: Manifest, namespace: str) -> ObjectRef:
    resource = await session.api.discovery.resource(manifest.api_version, manifest.kind)
    place = (manifest.namespace or namespace) if resource.namespaced else None
    return ObjectRef(manifest.api_version, manifest.kind, manifest.name, place)


async def label_claims(session: Session, objects: Sequence[ObjectRef], key: str | None = None) -> None:
    """Volume claims that StatefulSets made outlive the release: the label lets them go with the VNF.

    `key`: of the release, when they are to go before that. What has the label of another VNF is not touched.
    """
    ours = session.owner.instance_id
    patch = {"metadata": {"labels": {INSTANCE: ours} | ({KEY: key} if key else {})}}
    for one in objects:
        if one.kind != "StatefulSet" or one.namespace is None:
            continue
        try:
            found = await session.api.get(paths.namespaced("/apis/apps/v1", one.namespace, "statefulsets", one.name))
        except KubeError as error:
            if error.status == 404:
                continue
            raise
        templates = [str(claim["metadata"]["name"]) for claim in found["spec"].get("volumeClaimTemplates") or ()]
        called = re.compile(rf"({'|'.join(map(re.escape, templates))})-{re.escape(one.name)}-[0-9]+")
        there = await session.api.list(_claims(one.namespace), metadata_only=True) if templates else []
        names = [
            str(claim["metadata"]["name"])
            for claim in there
            if (claim["metadata"].get("labels") or {}).get(INSTANCE) in (None, ours)
        ]
        await gather_or_cancel(
            session.api.patch(_claims(one.namespace, name), patch) for name in names if called.fullmatch(name)
        )


async def claims_of_release(session: Session, namespace: str, key: str) -> list[Doomed]:
    """Those that were labelled for it. Claims that are objects of charts have the label of the VNF alone."""
    selector = f"{session.owner.selector},{KEY}={key}"
    found = await session.api.list(_claims(namespace), metadata_only=True, labelSelector=selector)
    return [
        Doomed(ObjectRef("v1", "PersistentVolumeClaim", one["metadata"]["name"], namespace), uid_of(one))
        for one in found
    ]


async def remove_claims(session: Session, namespace: str, key: str) -> None:
    """Those of the release, and waited for."""
    doomed = await claims_of_release(session, namespace, key)
    await gather_or_cancel(delete(session.api, one) for one in doomed)
    await until_gone(session, doomed, REMOVE_TIMEOUT)


def _claims(namespace: str, name: str | None = None) -> str:
    return paths.namespaced("/api/v1", namespace, "persistentvolumeclaims", name)
