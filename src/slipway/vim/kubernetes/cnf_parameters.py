"""What additionalParams say about a CNF: its manifests, its namespace, and which object each VDU is.

lcm-kubernetes-def-files: [Files/kubernetes/web.yaml, ...]     paths in the package; else those that the VNFD names
namespace: prod                                                for every object that has one
force_conflicts: true                                          also fields that others have set since, in this request
vdu_mapping: {VDU1: {kind: Deployment, name: web}}             where an object is not named as its VDU
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.package import is_url
from slipway.model.target import CONFIGURATION_PATHS, Change, VnfTarget

FILES, NAMESPACE, MAPPING = "lcm-kubernetes-def-files", "namespace", "vdu_mapping"
OF_A_CNF = (FILES, NAMESPACE, MAPPING)
FORCE = "force_conflicts"  # of one request: fields that others have set are set all the same
MOST_FILES = 200
REPLICAS_PATH = "spec.replicas"
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NO_NUMBERS = frozenset({"apiVersion", "kind", "metadata", "status"})
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*){0,15}")


@dataclass(frozen=True)
class MappedObject:
    """`replicas_path` where its number is elsewhere than in `spec.replicas`."""

    kind: str
    name: str
    replicas_path: str | None = None


@dataclass(frozen=True)
class CnfParameters:
    files: tuple[str, ...]
    namespace: str | None = None
    mapping: Mapping[str, MappedObject] = field(default_factory=dict)


def cnf_parameters(target: VnfTarget) -> CnfParameters:
    """BadRequest or Unprocessable names the parameter and the cure."""
    given = target.parameters
    return CnfParameters(_files(target), namespace_of(given.get(NAMESPACE)), _mapping(target, given.get(MAPPING)))


def refuse_parameters(change: Change) -> None:
    """Unprocessable for what can be known to be wrong before any file is read."""
    if change.after is None:
        return
    after = cnf_parameters(change.after)
    if unknown := sorted(configuration_paths(change) - set(after.files)):
        raise Unprocessable(
            f"metadata.{CONFIGURATION_PATHS}: {unknown[0]!r} is none of the VNF's manifests; they are: "
            f"{', '.join(after.files)}."
        )
    if not isinstance(change.additional_params.get(FORCE, False), bool):
        raise BadRequest(f"additionalParams.{FORCE}: it must be true or false.")
    if change.before is not None:
        if cnf_parameters(change.before).namespace != after.namespace:
            raise Unprocessable(
                f"additionalParams.{NAMESPACE}: the objects of the VNF are in another namespace and can't move; leave "
                "it out, or terminate the VNF and instantiate it there."
            )
        lasting = [name for name in OF_A_CNF if name in change.additional_params]
        if lasting and any(change.additional_params[one] != change.after.parameters.get(one) for one in lasting):
            raise Unprocessable(
                f"additionalParams.{lasting[0]}: it is read at the instantiation and when the package changes; leave "
                "it out."
            )
    if not after.files:
        raise Unprocessable(
            f"The package names no manifests for a Kubernetes VIM: list them in additionalParams.{FILES}, or as "
            "artifacts of a Mciop node in the VNFD; or choose another VIM."
        )
    if change.after.file_names and (absent := [one for one in after.files if one not in change.after.file_names]):
        raise Unprocessable(f"additionalParams.{FILES}: the package has no file {absent[0]!r}; correct the path.")


def _files(target: VnfTarget) -> tuple[str, ...]:
    given = target.parameters.get(FILES)
    if given is None:
        return target.flavour.manifests
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, str) and one for one in given):
        raise BadRequest(f"additionalParams.{FILES}: it must be a list of paths in the package.")
    if len(given) > MOST_FILES:
        raise BadRequest(f"additionalParams.{FILES}: there are {len(given)} files; at most {MOST_FILES} are read.")
    for at, path in enumerate(given):
        if is_url(path):
            raise Unprocessable(
                f"additionalParams.{FILES}[{at}]: {path[:200]!r} is a URL, and no copy is kept of what is outside of "
                "the package, which each retry and rollback must read again; put the file into the package, and name "
                "its path there."
            )
    paths = _normal(given)
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise BadRequest(f"additionalParams.{FILES}: {twice!r} is there twice; name it once.")
    return paths


def _normal(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(posixpath.normpath(path).lstrip("/") for path in paths)


def configuration_paths(change: Change) -> frozenset[str]:
    """Manifests whose ConfigMaps and Secrets alone are to follow the package."""
    return frozenset(_normal(change.configuration_files))


def namespace_of(given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or not _LABEL.fullmatch(given):
        raise BadRequest(
            f"additionalParams.{NAMESPACE}: it must be the name of a namespace: up to 63 lower-case letters, digits "
            "and hyphens."
        )
    return given


def is_replicas_path(path: Any) -> bool:
    """Of a field that may hold a number: not one that says what the object is."""
    return isinstance(path, str) and bool(_FIELD.fullmatch(path)) and path.split(".")[0] not in _NO_NUMBERS


def _mapping(target: VnfTarget, given: Any) -> dict[str, MappedObject]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise BadRequest(f"additionalParams.{MAPPING}: it must be an object with VDUs: {{VDU: {{kind, name}}}}.")
    mapping = {}
    for vdu, one in given.items():
        place = f"additionalParams.{MAPPING}.{vdu}"
        if vdu not in target.flavour.vdus:
            known = ", ".join(target.flavour.vdus)
            raise BadRequest(f"{place}: the flavour has no such VDU; it has: {known}.")
        if not isinstance(one, dict) or not all(isinstance(one.get(key), str) for key in ("kind", "name")):
            raise BadRequest(f"{place}: it must be an object with kind and name.")
        if unknown := [key for key in one if key not in ("kind", "name", "replicas_path")]:
            raise BadRequest(f"{place}.{unknown[0]}: nothing is done about it; leave it out.")
        path = one.get("replicas_path")
        if path is not None and not is_replicas_path(path):
            raise BadRequest(f"{place}.replicas_path: it must be the path of a field, such as {REPLICAS_PATH}.")
        mapping[vdu] = MappedObject(one["kind"], one["name"], path)
    return mapping
