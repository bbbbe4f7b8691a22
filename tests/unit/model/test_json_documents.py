"""JSON merge patch: the cases of RFC 7396, appendix A, that have an object or a value at the top."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.model.errors import BadRequest
from slipway.model.json_documents import bounded, difference, merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_cases_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": 1, "b": 2}, {"b": 2}, {"a": None}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": 1}, {"a": 1}, {}),
    ],
)
def test_a_difference_is_the_patch_from_one_document_to_the_other(before: Any, after: Any, patch: Any) -> None:
    assert difference(before, after) == patch
    assert merge_patch(before, patch) == after


def test_the_target_is_left_as_it_was() -> None:
    target = {"a": {"b": 1}}
    merge_patch(target, {"a": {"b": 2, "c": 3}})
    assert target == {"a": {"b": 1}}


def test_what_grew_too_large_is_named() -> None:
    assert bounded({"a": 1}, "metadata") == {"a": 1}
    with pytest.raises(BadRequest, match=r"^metadata: it would have .* at most 1048576"):
        bounded({"a": "x" * 1024 * 1024}, "metadata")
