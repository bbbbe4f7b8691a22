"""What a path names: a collection, an object, or a subresource of one."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from slipway.cluster.simulated.api.kinds import BUILT_IN, BY_NAME, BY_PLURAL, DEFINITION, Kind, defined
from slipway.cluster.simulated.api.objects import ObjectStore
from slipway.cluster.simulated.api.refusal import NoSuchPath, no_such_resource
from slipway.kube import paths
from slipway.kube.seam import Object


@dataclass(frozen=True)
class Place:
    """`namespace` None: all of them, or a kind that has none. `name` None: the collection."""

    kind: Kind
    namespace: str | None
    name: str | None = None
    subresource: str | None = None


def place_of(path: str, store: ObjectStore) -> Place:
    version, rest = group_of(path)
    match rest:
        case ["namespaces", namespace, plural, *more] if plural not in ("status", "finalize") and len(more) < 3:
            kind = _kind(version, plural, store)
            if not kind.namespaced:
                raise NoSuchPath
            return Place(kind, namespace, *more)
        case [plural, *more] if len(more) < 3:
            kind = _kind(version, plural, store)
            if kind.namespaced and more:
                raise NoSuchPath
            return Place(kind, None, *more)
    raise NoSuchPath


def path_of(manifest: Object) -> str:
    """Of the object that a manifest is about. A kind that is not built in is taken for one with a plain plural."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    known = BY_NAME.get((version, kind)) or Kind(version, kind, f"{kind.lower()}s", "namespace" in metadata)
    if known.namespaced:
        return paths.namespaced(group, metadata.get("namespace") or "default", known.plural, metadata["name"])
    return f"{group}/{known.plural}/{paths.segment(metadata['name'])}"


def group_of(path: str) -> tuple[str, list[str]]:
    """The API version, and what comes after it."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest]:
            return version, rest
        case ["apis", group, version, *rest]:
            return f"{group}/{version}", rest
    raise NoSuchPath


def _kind(api_version: str, plural: str, store: ObjectStore) -> Kind:
    if kind := BY_PLURAL.get((api_version, plural)):
        return kind
    custom = defined(store.all_of(DEFINITION))
    for kind in custom:
        if (kind.api_version, kind.plural) == (api_version, plural):
            return kind
    if any(kind.api_version == api_version for kind in (*BUILT_IN, *custom)):
        raise no_such_resource()
    raise NoSuchPath
