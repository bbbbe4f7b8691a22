"""Validates an NFVO's responses: a grant that can be stored and used, or an error text that can be shown."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.model.attributes import Array, Attribute, Fields, Map, attributes_of
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.grant import Grant, GrantRequest
from slipway.model.json_documents import check_storable, split_validation_error
from slipway.model.secrets import refuse_references

LONGEST = 1000  # characters of an answer that are shown


def read_grant(body: bytes, asked: GrantRequest) -> Grant:
    """What it says beyond the types in model/grant.py is left out. Unprocessable names the attribute."""
    try:
        document = msgspec.json.decode(body)
        check_storable(document)
        refuse_references(document)
        grant = msgspec.convert(_known(document, attributes_of(Grant)), Grant)
    except msgspec.ValidationError as error:
        attribute, what = split_validation_error(error)
        raise unusable(f"{attribute or 'it'}: {what}") from None
    except BadRequest as error:
        raise unusable(error.detail.rstrip(".")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise unusable("it is not JSON") from None
    except ValueError as error:
        raise unusable(f"it {error}") from None
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
    """The NFVO's error text: the detail of its ProblemDetails, else the beginning of the body."""
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
