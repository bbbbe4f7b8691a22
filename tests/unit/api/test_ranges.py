from __future__ import annotations

import pytest

from slipway.api.file_response import read_range
from slipway.model.errors import RangeNotSatisfiable


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=2-5", (2, 6)),
        ("bytes=2-", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=2-99", (2, 10)),
        ("bytes=0-", (0, 10)),
        ("bytes=0-9999999999999999999", (0, 10)),
        (f"bytes={'9' * 5000}-", None),
        (f"bytes=-{'9' * 5000}", None),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("lines=0-1", None),
        ("nonsense", None),
    ],
)
def test_a_range(header: str, expected: tuple[int, int] | None) -> None:
    assert read_range(header, 10) == expected


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=99-100", 10), ("bytes=-0", 10), ("bytes=0-", 0)]
)
def test_a_range_outside(header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable):
        read_range(header, size)
