"""A file of a package in pieces: as often as wanted, and never the whole of another file."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO

import pytest

from slipway.model.errors import StepError
from slipway.model.package_content import PIECE, PackageContent

CONTENT = bytes(range(256)) * (PIECE // 128) + b"end"  # two pieces and a bit


def content(digest: str) -> PackageContent:
    return PackageContent("image.img", len(CONTENT), digest, lambda: BytesIO(CONTENT))


def test_it_begins_anew_each_time_it_is_read() -> None:
    file = content(sha256(CONTENT).hexdigest())
    assert b"".join(file) == b"".join(file) == CONTENT
    assert len(file) == len(CONTENT)


def test_of_another_file_the_last_piece_is_not_given() -> None:
    got = list[bytes]()
    with pytest.raises(StepError, match=r"image\.img of the package is not the file that the operation was planned"):
        got.extend(iter(content("0" * 64)))
    assert len(b"".join(got)) < len(CONTENT)


def test_one_that_is_gone_is_no_lost_connection() -> None:
    def gone() -> BytesIO:
        raise FileNotFoundError("no such package")

    file = PackageContent("image.img", 3, "0" * 64, gone)
    with pytest.raises(StepError, match=r"image\.img of the package can't be read: no such package Cure: "):
        list(file)
