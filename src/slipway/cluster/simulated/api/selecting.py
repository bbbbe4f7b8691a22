"""Selectors of labels and fields, and the pages of a list."""

from __future__ import annotations

import re
from typing import Any

from slipway.cluster.simulated.api.refusal import bad_request
from slipway.kube.seam import Object, Objects

_TERM = re.compile(r"([^=!\s]+)\s*(==|=|!=)\s*(\S*)")


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
