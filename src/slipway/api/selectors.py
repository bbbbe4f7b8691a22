"""Attribute selectors of SOL013: which attributes of a document a caller wants to see.

(nothing)                   all but those the resource leaves out by default
all_fields                  all
fields=a,b/c                what every document must have, and these
exclude_fields=a,b/c        all but these; what every document must have stays
exclude_default[&fields=]   as nothing, but with the named ones
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slipway.model.attributes import Array, Attribute, Each, Fields, Key, Map, Step, read_path, resolve
from slipway.model.errors import BadRequest
from slipway.store.filters import LONGEST

Path = tuple[Step, ...]


class Selection:
    """`without` are top-level attributes that the database may leave out; `cut` does the rest."""

    def __init__(
        self, resource: Attribute, without: tuple[str, ...] = (), keep: Sequence[Path] = (), drop: Sequence[Path] = ()
    ) -> None:
        self.without = without
        self._resource = resource
        self._keep = _tree(keep)
        self._drop = _tree(drop)

    @property
    def cuts(self) -> bool:
        """Whether documents have to be taken apart."""
        return bool(self._keep or self._drop)

    def cut(self, document: Any) -> Any:
        if self._keep:
            document = _kept(document, self._keep, self._resource)
        return _dropped(document, self._drop) if self._drop else document


def select(query: Mapping[str, str], resource: Attribute, default: tuple[str, ...]) -> Selection:
    """What the query asks for. BadRequest when selectors contradict each other or name what isn't there."""
    given = [name for name in ("all_fields", "fields", "exclude_fields", "exclude_default") if name in query]
    if len(given) > 1 and given != ["fields", "exclude_default"]:
        raise BadRequest(f"{' and '.join(given)} can't be given together.")
    for flag in ("all_fields", "exclude_default"):
        if query.get(flag, "") not in ("", "true"):
            raise BadRequest(f"{flag}: it takes no value.")
    if given == ["all_fields"]:
        return Selection(resource)
    if given == ["exclude_fields"]:
        asked = _paths(query["exclude_fields"], resource, "exclude_fields")
        paths = [path for path in asked if not _is_mandatory(path, resource)]
        whole = tuple(path[0].name for path in paths if len(_names(path)) == 1 and isinstance(path[0], Key))
        return Selection(resource, whole, drop=[path for path in paths if len(_names(path)) > 1])
    if given == ["fields"]:
        return Selection(resource, keep=_paths(query["fields"], resource, "fields"))
    if "fields" in query:
        wanted = _paths(query["fields"], resource, "fields")
        named = {_names(path)[0] for path in wanted}
        others = [(Key(name),) for name in _known(resource) if name not in default and name not in named]
        return Selection(resource, tuple(name for name in default if name not in named), keep=[*wanted, *others])
    return Selection(resource, default)


def _paths(text: str, resource: Attribute, place: str) -> list[Path]:
    if len(text) > LONGEST:
        raise BadRequest(f"{place}: {len(text)} characters are too many; at most {LONGEST} are read.")
    return [_whole(resolve(resource, read_path(part, place), place)[0]) for part in text.split(",")]


def _whole(path: Path) -> Path:
    """A list is chosen as a whole, not item by item."""
    while isinstance(path[-1], Each):
        path = path[:-1]
    return path


def _is_mandatory(path: Path, kind: Attribute) -> bool:
    *way, last = path
    for step in way:
        match kind:
            case Array(item=inner) | Map(value=inner):
                kind = inner
            case Fields() if isinstance(step, Key):
                kind = kind.known[step.name]
    return isinstance(kind, Fields) and isinstance(last, Key) and last.name in kind.required


def _names(path: Path) -> list[str]:
    return [step.name for step in path if isinstance(step, Key)]


def _known(resource: Attribute) -> Sequence[str]:
    return list(resource.known) if isinstance(resource, Fields) else ()


Tree = dict[Step, Any]  # to another Tree, or to None: all that is below


def _tree(paths: Sequence[Path]) -> Tree:
    root: Tree = {}
    for path in sorted(paths, key=len):
        here: Tree | None = root
        for step in path[:-1]:
            here = here.setdefault(step, {}) if here is not None else None
        if here is not None:  # otherwise a shorter path has it already
            here[path[-1]] = None
    return root


def _kept(value: Any, tree: Tree | None, kind: Attribute) -> Any:
    if tree is None:
        return value
    if isinstance(value, list):
        item = kind.item if isinstance(kind, Array) else kind
        return [_kept(one, tree.get(Each.ITEM, tree), item) for one in value]
    if not isinstance(value, dict):
        return value
    if Each.ENTRY in tree and isinstance(kind, Map):
        return {key: _kept(one, tree[Each.ENTRY], kind.value) for key, one in value.items()}
    required = kind.required if isinstance(kind, Fields) else frozenset()
    return {
        key: _kept(one, tree.get(Key(key)), _below(kind, key))
        for key, one in value.items()
        if Key(key) in tree or key in required
    }


def _dropped(value: Any, tree: Tree) -> Any:
    if isinstance(value, list):
        return [_dropped(one, tree.get(Each.ITEM, tree)) for one in value]
    if not isinstance(value, dict):
        return value
    if Each.ENTRY in tree:
        return {key: _dropped(one, tree[Each.ENTRY]) for key, one in value.items()}
    rest = {key: one for key, one in value.items() if tree.get(Key(key), tree) is not None}
    return {key: _dropped(one, tree[Key(key)]) if Key(key) in tree else one for key, one in rest.items()}


def _below(kind: Attribute, key: str) -> Attribute:
    if isinstance(kind, Fields):
        return kind.known.get(key, kind)
    return kind.value if isinstance(kind, Map) else kind
