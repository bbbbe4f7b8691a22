from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.api.request_body import MOST_VALUES, Body, check_shape
from slipway.model.errors import BadRequest
from slipway.model.json_documents import DEEPEST
from slipway.model.requests import HealRequest, InstantiateRequest, ScaleRequest

texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=40,
)


@pytest.mark.parametrize(
    ("kind", "body", "beginning"),
    [
        (ScaleRequest, b'{"type": "SCALE_UP", "aspectId": "a"}', "type: Invalid enum value"),
        (ScaleRequest, b'{"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": 0}', "numberOfSteps: Expected"),
        (ScaleRequest, b'{"type": "SCALE_IN"}', "The body: Object missing required field `aspectId`."),
        (HealRequest, b'{"vnfcInstanceId": ["a", 1]}', "vnfcInstanceId[1]: Expected `str`"),
        (InstantiateRequest, b'{"flavourId": "f", "extVirtualLinks": [{"id": 1}]}', "extVirtualLinks[0].id: Expected"),
    ],
)
def test_an_error_begins_with_its_attribute(kind: type[msgspec.Struct], body: bytes, beginning: str) -> None:
    with pytest.raises(BadRequest) as refused:
        Body(kind).decode(body)
    assert refused.value.detail.startswith(beginning)


def test_an_error_inside_an_attribute_names_both() -> None:
    with pytest.raises(BadRequest, match=r"^request\.aspectId: "):
        Body(ScaleRequest).decode(b'{"type": "SCALE_IN", "aspectId": 1}', attribute="request")
    with pytest.raises(BadRequest, match=r"^request: "):
        Body(ScaleRequest).decode(b"[]", attribute="request")


@given(json_values)
def test_what_can_be_stored_passes(value: object) -> None:
    check_shape(json.dumps(value).encode())


@pytest.mark.parametrize("depth", [DEEPEST, DEEPEST + 1])
def test_the_limit_of_nesting_is_exact(depth: int) -> None:
    body = b"[" * depth + b"]" * depth
    if depth <= DEEPEST:
        check_shape(body)
    else:
        with pytest.raises(BadRequest, match="deeper"):
            check_shape(body)
    check_shape(b"[" + b"[]," * 500 + b"[]]")


@pytest.mark.parametrize("value", ["a\0", {"a\0": 1}, [2**64], {"a": -(2**70)}])
def test_what_no_database_holds_is_refused(value: object) -> None:
    with pytest.raises(BadRequest):
        check_shape(json.dumps(value).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b",".join([b"{}"] * MOST_VALUES) + b"]",
        b"[" + b",".join([b"1"] * (MOST_VALUES + 1)) + b"]",
        b"[" + b",".join([b'""'] * (4 * MOST_VALUES)) + b"]",
        b"{" + b",".join(b'"%d":1' % number for number in range(MOST_VALUES)) + b"}",
        b'["' + b"," * MOST_VALUES + b'",' + b",".join([b'"\\\\"'] * MOST_VALUES) + b"]",
        b"[" * 8_000_000,
    ],
    ids=["objects", "numbers", "texts", "keys", "after a text", "nothing else"],
)
def test_a_body_of_too_many_values_is_refused_before_it_is_decoded(body: bytes) -> None:
    with pytest.raises(BadRequest, match=f"more than {MOST_VALUES} values"):
        check_shape(body)


@pytest.mark.parametrize("text", [",:{[" * 100_000, '\\",' * 100_000, "\\\\" * 100_000 + "," * MOST_VALUES])
def test_what_stands_in_a_text_is_not_counted(text: str) -> None:
    body = json.dumps({"script": text, "more": list(range(100))}).encode()
    check_shape(body)
    assert Body(dict).decode(body)["script"] == text
