"""The persistent volumes that a package's manifests describe: untrusted YAML, checked before anything is planned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from slipway.cluster.parameters import ClusterParameters, StorageServerParameters
from slipway.cluster.spec import StepArguments
from slipway.cluster.storage_checks import is_within
from slipway.kube.interface import Object
from slipway.model.errors import PackageError
from slipway.model.target import PackageFile
from slipway.vim.kubernetes.manifests import Manifest, parsed

MOST = 64
KIND = ("v1", "PersistentVolume")
OF_ANY_SOURCE = frozenset(  # what a volume may say of itself whatever it is kept on; all else is another source
    ["accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
     "storageClassName", "volumeAttributesClassName", "volumeMode"]
)  # fmt: skip
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class VolumeManifest(StepArguments, frozen=True, kw_only=True):
    """`point`: the storage server's connection point, whose address becomes the server's in the manifest."""

    manifest: Object
    point: str

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    def served_by(self, address: str) -> Object:
        spec = self.manifest["spec"]
        return {**self.manifest, "spec": {**spec, "nfs": {**spec["nfs"], "server": address}}}


def persistent_volumes(parameters: ClusterParameters, files: Mapping[str, PackageFile]) -> tuple[VolumeManifest, ...]:
    """PackageError names the file, the volume, what is wrong with it and the cure."""
    server = parameters.storage_server
    found = list(_read(parameters, files, server)) if server else []
    if len(found) > MOST:
        raise PackageError(f"The manifests have {len(found)} persistent volumes; at most {MOST} can be registered.",
                           cure="name fewer in pv_registration_params.")  # fmt: skip
    return tuple(found)


def _read(
    parameters: ClusterParameters, files: Mapping[str, PackageFile], server: StorageServerParameters
) -> Iterator[VolumeManifest]:
    names: dict[str, str] = {}
    for wanted in parameters.pv_registration_params:
        path = wanted.pv_manifest_file_path
        if path not in files:
            raise PackageError("The package has no such manifest of a persistent volume.", file=path,
                               cure="name one that it has in pv_registration_params.")  # fmt: skip
        manifests, _ = parsed(path, files[path].content)
        if not manifests:
            raise PackageError("There is no persistent volume in it.", file=path, cure="describe one in it.")
        for manifest in manifests:
            _check(manifest, server)
            if manifest.name in names:
                raise manifest.error(
                    f"there is another one of that name in {names[manifest.name]}.", "give it another."
                )
            names[manifest.name] = path
            yield VolumeManifest(manifest=msgspec.to_builtins(manifest.content), point=wanted.nfs_server_cp)


def _check(manifest: Manifest, server: StorageServerParameters) -> None:
    if (manifest.api_version, manifest.kind) != KIND:
        raise manifest.error(f"it is no PersistentVolume of {KIND[0]}.", "put other objects into manifests of a CNF.")
    if not _NAME.fullmatch(manifest.name):
        raise manifest.error("that is no name in Kubernetes.", "write small letters, digits, - and . only.")
    if manifest.namespace is not None:
        raise manifest.error("a persistent volume is in no namespace.", "leave metadata.namespace out.")
    for held in ("finalizers", "ownerReferences"):
        if manifest.content["metadata"].get(held):
            raise manifest.error(f"with metadata.{held} others would decide when it goes, and a heal of the storage "
                                 "server waits for that.", "leave it out.")  # fmt: skip
    spec = manifest.content.get("spec")
    nfs = spec.get("nfs") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(nfs, dict):
        raise manifest.error("it is not NFS: spec.nfs is missing.", "give spec.nfs.path; the server is put in.")
    if others := [f"spec.{name}" for name in sorted(map(str, {*spec} - OF_ANY_SOURCE - {"nfs"}))]:
        raise manifest.error(f"a volume of NFS has no {', '.join(others)[:200]}.", "leave it out.")
    claim = spec.get("claimRef")
    if claim is not None and not isinstance(claim, dict):
        raise manifest.error("spec.claimRef is no object.", "give name and namespace of the claim in it.")
    if claim is not None and "uid" in claim:
        raise manifest.error("spec.claimRef.uid is that of a claim in another cluster.", "give name and namespace.")
    path = nfs.get("path")
    exports = [export.export_dir for export in server.nfs_server_setup_params]
    if not isinstance(path, str) or _CONTROL.search(path) or ".." in path.split("/") or not any(
        is_within(path, export) for export in exports
    ):  # fmt: skip
        raise manifest.error("spec.nfs.path is nothing that the storage server exports.",
                             f"write one of: {', '.join(dict.fromkeys(exports))}.")  # fmt: skip
