"""Which attributes an answer shows: the field selectors of SOL013, compiled once and applied to many documents.

    all_fields                      everything
    fields=a,b/c                    what must be there, and these
    exclude_fields=a,b/c            everything but these
    exclude_default                 everything but what the resource leaves out by default; also when nothing is said
    exclude_default & fields=a,b/c  the same, and these

What must be there are the attributes that the type requires, at every level that is entered, and `_links`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from slipway.model.attributes import Array, Attribute, Each, Fields, Map, Member, read_path, resolve, write_path
from slipway.model.errors import BadRequest

ALWAYS = frozenset({"_links"})

# By name, or Each.ENTRY for all entries of a map: True for the whole value, another tree for a part of it.
Tree = dict[str | Each, Any]


class Selection(msgspec.Struct, frozen=True):
    """Either `keep` says what stays, or `drop` says what goes; with neither everything stays."""

    keep: Tree | None = None
    drop: Tree = {}

    def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        if self.keep is not None:
            kept: dict[str, Any] = _kept(document, self.keep)
            return kept
        rest: dict[str, Any] = _rest(document, self.drop) if self.drop else document
        return rest

    def dropped_at_top(self, resource: Attribute) -> tuple[str, ...]:
        """Attributes that go as a whole, for the database to leave out already."""
        if self.keep is None:
            return tuple(name for name, part in self.drop.items() if part is True and isinstance(name, str))
        known = resource.known if isinstance(resource, Fields) else {}
        return tuple(name for name in known if name not in self.keep)


def select(
    resource: Attribute,
    *,
    all_fields: bool = False,
    fields: str | None = None,
    exclude_fields: str | None = None,
    exclude_default: bool = False,
    excluded_by_default: Sequence[str] = (),
    mandatory: Iterable[str] = (),
) -> Selection:
    """Compile the selectors of one request. `mandatory` are attributes that stay, beyond those the type requires."""
    _refuse_contradictions(all_fields, fields, exclude_fields, exclude_default)
    always = ALWAYS.union(mandatory)
    if fields is not None:
        wanted = _tree(resource, fields, "fields")
        if exclude_default and isinstance(resource, Fields):
            wanted = _joined(wanted, {name: True for name in resource.known if name not in excluded_by_default})
        return Selection(keep=_with_required(wanted, resource) | dict.fromkeys(always, True))
    if exclude_fields is not None:
        unwanted = _tree(resource, exclude_fields, "exclude_fields")
        _refuse_required(unwanted, resource, always)
        return Selection(drop=unwanted)
    if all_fields:
        return Selection()
    return Selection(drop=dict.fromkeys(excluded_by_default, True))


def _refuse_contradictions(
    all_fields: bool, fields: str | None, exclude_fields: str | None, exclude_default: bool
) -> None:
    given = {
        "all_fields": all_fields,
        "fields": fields is not None,
        "exclude_fields": exclude_fields is not None,
        "exclude_default": exclude_default,
    }
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1 and set(names) != {"fields", "exclude_default"}:
        raise BadRequest(f"{' and '.join(names)} contradict each other; only fields and exclude_default go together.")


def _tree(resource: Attribute, text: str, parameter: str) -> Tree:
    tree: Tree = {}
    for name in text.split(","):
        steps, _ = resolve(resource, read_path(name, parameter), parameter)
        branch: Any = True
        for step in reversed(steps):
            if step is not Each.ITEM:
                branch = {step.name if isinstance(step, Member) else step: branch}
        tree = _joined(tree, branch)
    return tree


def _joined(one: Any, other: Any) -> Any:
    """All of both; a whole value goes before a part of it."""
    if one is True or other is True:
        return True
    names = [*one, *(name for name in other if name not in one)]
    return {name: _joined(one.get(name, {}), other.get(name, {})) for name in names}


def _with_required(tree: Any, attribute: Attribute) -> Any:
    """The tree and, at each level that it enters, what the type requires."""
    attribute = _item(attribute)
    if tree is True or not isinstance(attribute, Fields | Map):
        return tree
    entered = {name: _with_required(part, _below(attribute, name)) for name, part in tree.items()}
    required = attribute.required if isinstance(attribute, Fields) else ()
    return entered | dict.fromkeys(required, True)


def _refuse_required(tree: Tree, attribute: Attribute, always: frozenset[str], before: tuple[str, ...] = ()) -> None:
    attribute = _item(attribute)
    if not isinstance(attribute, Fields | Map):
        return
    for name, part in tree.items():
        path = (*before, name) if isinstance(name, str) else before
        if part is not True:
            _refuse_required(part, _below(attribute, name), frozenset(), path)
        elif name in always or (isinstance(attribute, Fields) and name in attribute.required):
            raise BadRequest(f"exclude_fields: {write_path(path)} is always there and can't be left out.")


def _item(attribute: Attribute) -> Attribute:
    while isinstance(attribute, Array):
        attribute = attribute.item
    return attribute


def _below(attribute: Fields | Map, name: str | Each) -> Attribute:
    return attribute.value if isinstance(attribute, Map) else attribute.known[str(name)]


def _kept(value: Any, tree: Tree) -> Any:
    if isinstance(value, list):
        return [_kept(item, tree) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {name: _part(tree, name) for name in value}
    return {name: value[name] if part is True else _kept(value[name], part) for name, part in parts.items() if part}


def _rest(value: Any, tree: Tree) -> Any:
    if isinstance(value, list):
        return [_rest(item, tree) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {name: _part(tree, name) for name in value}
    return {name: _rest(value[name], part) if part else value[name] for name, part in parts.items() if part is not True}


def _part(tree: Tree, name: str) -> Any:
    everywhere = tree.get(Each.ENTRY)
    return _joined(tree.get(name, {}), everywhere) if everywhere else tree.get(name)
