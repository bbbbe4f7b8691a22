"""An NFVO's answers, hostile until checked: a grant that can be kept and used, or words that can be shown."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from slipway.model.attributes import Array, Attribute, Fields, Map, attributes_of
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.grant import Grant, GrantRequest
from slipway.model.secrets import refuse_references

DEEPEST = 64
LONGEST = 1000  # characters of an answer that are shown
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")


def read_grant(body: bytes, asked: GrantRequest) -> Grant:
    """What it says beyond the types in model/grant.py is left out. Unprocessable names the attribute."""
    try:
        document = msgspec.json.decode(body)
        _check_storable(document)
        refuse_references(document)
        grant = msgspec.convert(_known(document, attributes_of(Grant)), Grant)
    except msgspec.ValidationError as error:
        match = _PLACE.search(str(error))
        what = str(error)[: match.start()] if match else str(error)
        raise unusable(f"{match[1] if match else 'it'}: {what}") from None
    except BadRequest as error:
        raise unusable(error.detail.rstrip(".")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise unusable("it is no JSON") from None
    for name, ours, theirs in (
        ("vnfInstanceId", asked.vnf_instance_id, grant.vnf_instance_id),
        ("vnfLcmOpOccId", asked.vnf_lcm_op_occ_id, grant.vnf_lcm_op_occ_id),
    ):
        if ours != theirs:
            raise unusable(f"{name}: it is for {theirs!r}, and {ours!r} was asked for")
    return grant


def unusable(why: str) -> Unprocessable:
    return Unprocessable(
        f"The NFVO's grant can't be used: {plain(why)}. Cure: mend what the NFVO answers, then begin again."
    )


def said(body: bytes) -> str:
    """An NFVO's own words: those of its ProblemDetails, else the beginning of whatever it sent."""
    try:
        problem = msgspec.json.decode(body, type=dict[str, Any])
        words = ": ".join(str(problem[name]) for name in ("title", "detail") if problem.get(name))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        words = ""
    return plain(words or body[:LONGEST].decode(errors="replace")).strip() or "nothing more"


def plain(words: str) -> str:
    """No more than a person reads, and no control characters."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words[:LONGEST])
    return shown if len(words) <= LONGEST else f"{shown} ..."


def _known(value: Any, shape: Attribute) -> Any:
    """Only what the types know: a newer NFVO may say more than we understand."""
    if isinstance(shape, Fields) and isinstance(value, dict):
        return {name: _known(item, shape.known[name]) for name, item in value.items() if name in shape.known}
    if isinstance(shape, Array) and isinstance(value, list):
        return [_known(item, shape.item) for item in value]
    if isinstance(shape, Map) and isinstance(value, dict):
        return {name: _known(item, shape.value) for name, item in value.items()}
    return value


def _check_storable(document: Any) -> None:
    """BadRequest for what no database holds."""
    waiting = [(document, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEEPEST:
            raise BadRequest(f"it is nested deeper than {DEEPEST} levels")
        if isinstance(value, dict):
            waiting += [(key, depth) for key in value] + [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        elif isinstance(value, str) and "\0" in value:
            raise BadRequest("it has a zero character in a text")
        elif isinstance(value, int) and abs(value) >= 2**63:
            raise BadRequest("it has an integer of more than 64 bits")
