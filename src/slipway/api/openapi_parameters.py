"""What query parameters and headers mean, in a sentence each."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_FLAG = {"type": "string", "enum": ["", "true"]}

QUERY: dict[str, dict[str, Any]] = {
    "filter": {"description": "Which ones: (eq,vnfInstanceName,a);(gt,metadata/size,3)", "schema": _TEXT},
    "all_fields": {"description": "Everything.", "schema": _FLAG, "allowEmptyValue": True},
    "fields": {"description": "What is mandatory, and these: a,b/c", "schema": _TEXT},
    "exclude_fields": {"description": "All but these: a,b/c; what is mandatory stays.", "schema": _TEXT},
    "exclude-fields": {"description": "The same, as the stock client writes it.", "schema": _TEXT},
    "exclude_default": {
        "description": "As without any selector; with fields: these, too.",
        "schema": _FLAG,
        "allowEmptyValue": True,
    },
    "nextpage_opaque_marker": {"description": "The next page; it comes with the header Link.", "schema": _TEXT},
    "all_records": {"description": "No pages.", "schema": {"type": "string", "enum": ["yes"]}},
    "lifetime_seconds": {
        "description": "How long the token is valid; 43200 if unsaid.",
        "schema": {"type": "integer", "minimum": 600, "maximum": 604800},
    },
    "id": {"description": "Exactly this id.", "schema": _TEXT},
    "name": {"description": "Exactly this name.", "schema": _TEXT},
}
HEADERS = {
    "If-Match": "The ETag that the resource must still have.",
    "Range": "The one part that is wanted: bytes=0-1023",
}
SOMETIMES = frozenset({"Link"})  # headers that an answer has only if there is something to say
