"""Turns attribute filters into SQL: the database looks into the documents, Python never does.

A filter holds if any value that its path leads to holds: one of the items of an array, one of the entries of a map.
`neq`, `nin` and `ncont` hold if `eq`, `in` and `cont` don't, so also where there is no value at all; together the two
always give the whole list. Text is compared by code points, `cont` minds case. In content without a declared type
(metadata, additionalParams) numbers are compared with numbers, text with text, true and false with those words; a list
at the end of the path counts by its items, lists on the way are not entered.

Values are bound parameters, always. Nothing under an `accessInfo` can be asked for, nor a secret's reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlalchemy import ColumnElement, Dialect, FromClause, and_, false, func, literal, not_, select

from slipway.model.attributes import Each, Free, Key, Scalar, Step, resolve
from slipway.model.errors import BadRequest
from slipway.model.secrets import REFERENCE
from slipway.store.comparison import Comparison
from slipway.store.filters import DENIES, Filter
from slipway.store.json_sql import JsonPath, Scalars, document
from slipway.store.resources import ListedResource

_UNREADABLE = re.compile(r'["\\\x00-\x1f]')


def condition(resource: ListedResource, filters: Sequence[Filter], dialect: Dialect) -> ColumnElement[bool] | None:
    """What rows must fulfil; None when there is no filter."""
    return and_(*(_holds(resource, wanted, dialect) for wanted in filters)) if filters else None


def _holds(resource: ListedResource, wanted: Filter, dialect: Dialect) -> ColumnElement[bool]:
    place = f"filter {wanted.name}"
    _refuse_secrets(wanted, place)
    steps, kind = resolve(resource.attributes, wanted.path, place, wanted.by_key)
    if not isinstance(kind, Scalar | Free):
        raise BadRequest(f"{place}: this holds more than one value; name an attribute below it.")
    operator = DENIES.get(wanted.operator, wanted.operator)
    comparison = Comparison(operator, wanted.values, place)
    if len(steps) == 1 and (column := resource.columns.get(wanted.path[0])) is not None:
        holds = comparison.of_column(column, kind)
    else:
        start = document(resource.table.c.doc, dialect)
        holds = _any(start, steps, isinstance(kind, Free), lambda found: comparison.of_json(found, kind))
    return holds if operator is wanted.operator else not_(func.coalesce(holds, false()))


def _any(
    place: JsonPath, steps: Sequence[Step], free: bool, test: Callable[[Scalars], ColumnElement[bool]]
) -> ColumnElement[bool]:
    """Whether the test holds for any value that the steps lead to: one EXISTS for each array or map on the way."""
    for position, step in enumerate(steps):
        if isinstance(step, Key):
            place = place.member(step.name)
        elif step is Each.KEY:
            rows, keys = place.keys()
            return _exists(rows, test(keys))
        else:
            rows, inner = place.each(step)
            return _exists(rows, _any(inner, steps[position + 1 :], free, test))
    if free and steps:
        rows, items = place.items_or_itself()
        return _exists(rows, test(items))
    return test(place.scalars())


def _exists(rows: FromClause, holds: ColumnElement[bool]) -> ColumnElement[bool]:
    return select(literal(1)).select_from(rows).where(holds).exists()


def _refuse_secrets(wanted: Filter, place: str) -> None:
    for name in wanted.path:
        if name == REFERENCE or re.sub("[^a-z]", "", name.lower()) == "accessinfo":
            raise BadRequest(f"{place}: access information and secrets can't be filtered on.")
        if _UNREADABLE.search(name):
            raise BadRequest(f"{place}: a name can't hold quotation marks, backslashes or control characters here.")
