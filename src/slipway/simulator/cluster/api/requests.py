"""What a request means: the object that its path names, selectors and pages of a list, patches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from slipway.kube import paths
from slipway.kube.interface import Object, Objects
from slipway.simulator.cluster.api.errors import NoSuchPath, bad_request, no_such_resource
from slipway.simulator.cluster.api.kinds import BUILT_IN, BY_NAME, BY_PLURAL, DEFINITION, Kind, defined
from slipway.simulator.cluster.api.objects import ObjectStore

_TERM = re.compile(r"([^=!\s]+)\s*(==|=|!=)\s*(\S*)")


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


def selected(found: Objects, query: dict[str, str]) -> Objects:
    fields, labels = _terms(query.get("fieldSelector", "")), _terms(query.get("labelSelector", ""))
    return [
        one
        for one in found
        if all((str(_field(one, name)) == value) is wanted for name, wanted, value in fields)
        and all(_label(one, name, value) is wanted for name, wanted, value in labels)
    ]


def fixed(query: dict[str, str], name: str) -> str | None:
    """The one value that a field selector asks for, when it does."""
    return next(
        (value for key, wanted, value in _terms(query.get("fieldSelector", "")) if wanted and key == name), None
    )


def page(found: Objects, query: dict[str, str]) -> Object:
    start = int(query.get("continue") or 0)
    end = start + int(query.get("limit") or len(found) or 1)
    metadata: Object = {"resourceVersion": "0"}
    if end < len(found):
        metadata |= {"continue": str(end), "remainingItemCount": len(found) - end}
    return {"metadata": metadata, "items": found[start:end]}


def matches(selector: Object | None, labels: dict[str, str] | None) -> bool:
    """As controllers and budgets select: matchLabels only. No selector selects nothing."""
    wanted = (selector or {}).get("matchLabels") or {}
    return bool(wanted) and all((labels or {}).get(key) == value for key, value in wanted.items())


def _terms(selector: str) -> list[tuple[str, bool, str | None]]:
    terms: list[tuple[str, bool, str | None]] = []
    for part in filter(None, (part.strip() for part in selector.split(","))):
        if match := _TERM.fullmatch(part):
            terms.append((match[1], match[2] != "!=", match[3]))
        elif re.fullmatch(r"!?[^=!\s]+", part):
            terms.append((part.lstrip("!"), not part.startswith("!"), None))
        else:
            raise bad_request(f"unable to parse requirement: {part}")
    return terms


def _field(found: Object, name: str) -> Any:
    value: Any = found
    for part in name.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return value


def _label(found: Object, name: str, value: str | None) -> bool:
    labels = found["metadata"].get("labels") or {}
    return name in labels if value is None else labels.get(name) == value


def applied(current: Any, manifest: Any, before: Any) -> Any:
    """The manifest over what is there. What the manifest before had and this one has not is taken back."""
    if not isinstance(current, dict) or not isinstance(manifest, dict):
        return manifest
    former = before if isinstance(before, dict) else {}
    kept = {key: value for key, value in current.items() if key in manifest or key not in former}
    return kept | {key: applied(current.get(key), value, former.get(key)) for key, value in manifest.items()}


def patched_by_operations(document: Object, operations: Objects) -> Object:
    """RFC 6902, as far as steps and tests go: add, replace and remove in maps."""
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place: Any = document
        for part in way:
            place = place.get(part) if isinstance(place, dict) else None
        if not isinstance(place, dict) or (operation["op"] != "add" and last not in place):
            raise bad_request(f"the server rejected our request due to an error in our request: {operation['path']}")
        if operation["op"] == "remove":
            del place[last]
        else:
            place[last] = operation["value"]
    return document
