"""Whatever the bytes: a package is read, or PackageError comes out. Nothing else, ever."""

from __future__ import annotations

import tempfile
from pathlib import Path

from asn1crypto import pem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.model.errors import PackageError
from slipway.package.cms import parse_cms
from slipway.package.reader import read_package
from tests.unit.package.certificates import identity, signed_manifest, signed_whole
from tests.unit.package.csars import HEAD, META, VNFD, VNFD_TEXT, raw_members, raw_zip, valid_files, zipped

VALID = raw_zip(raw_members(valid_files()))
SIGNER = identity("Provider")
SIGNED = raw_zip(raw_members(signed_manifest(SIGNER)))
CMS = signed_whole(SIGNER)["sample.cms"]
quick = settings(suppress_health_check=[HealthCheck.too_slow])


def read_or_refuse(data: bytes) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "package.csar"
        path.write_bytes(data)
        try:
            read_package(path)
        except PackageError:
            return False
        return True


@given(st.binary(max_size=2000))
@quick
def test_random_bytes(data: bytes) -> None:
    assert not read_or_refuse(data)


changes = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from([0, 1, 2, 8, 0x7F, 0x80, 0xFF, 0x0A, 0x3A]) | st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


def changed(data: bytes, paths: list[tuple[int, int]]) -> bytes:
    mutable = bytearray(data)
    for place, value in paths:
        mutable[place % len(mutable)] = value
    return bytes(mutable)


@given(changes)
@quick
def test_a_valid_package_with_bytes_changed(paths: list[tuple[int, int]]) -> None:
    read_or_refuse(changed(VALID, paths))


@given(changes)
@quick
def test_the_zip_structure_with_bytes_changed(paths: list[tuple[int, int]]) -> None:
    read_or_refuse(VALID[:-400] + changed(VALID[-400:], paths))


@given(st.integers(0, len(VALID)), st.integers(0, len(VALID)), st.binary(max_size=30))
@quick
def test_a_valid_package_with_a_part_replaced(start: int, end: int, part: bytes) -> None:
    read_or_refuse(VALID[: min(start, end)] + part + VALID[max(start, end) :])


@given(changes)
@quick
def test_a_vnfd_with_bytes_changed(paths: list[tuple[int, int]]) -> None:
    read_or_refuse(zipped({**valid_files(), VNFD: changed(VNFD_TEXT.encode(), paths)}))


LINES = VNFD_TEXT.splitlines(keepends=True)
VALUES = ["[]", "{}", "null", "1", "-1", "text", "[a]", "{a: b}", "{get_input: x}", "[[1]]", "'2 GB'", "{node: worker}"]


@given(st.lists(st.tuples(st.integers(0, len(LINES) - 1), st.sampled_from(["", *VALUES])), min_size=1, max_size=3))
@quick
def test_a_vnfd_with_values_changed(edits: list[tuple[int, str]]) -> None:
    lines = list(LINES)
    for number, value in edits:
        head, colon, _ = lines[number].partition(":")
        lines[number] = f"{head}: {value}\n" if value and colon else ""
    read_or_refuse(zipped(valid_files("".join(lines))))


@given(st.text(st.sampled_from("abc: \n-SourceNameHash,/.\t\r#"), max_size=300))
@quick
def test_random_meta_files(text: str) -> None:
    read_or_refuse(zipped({**valid_files(), META: (HEAD + text).encode()}))


@given(changes)
@quick
def test_a_signed_package_with_bytes_changed(paths: list[tuple[int, int]]) -> None:
    read_or_refuse(changed(SIGNED, paths))


@given(changes)
@quick
def test_signatures_with_bytes_changed(paths: list[tuple[int, int]]) -> None:
    _, _, der = pem.unarmor(CMS)
    try:
        parse_cms(changed(der, paths), "a.cms")
    except PackageError:
        return
