"""Both shapes of a package, its digests, and what can be got out of it afterwards."""

from __future__ import annotations

import hashlib
import io
import stat
import zipfile
from pathlib import Path

import pytest

from slipway.model.errors import PackageError
from slipway.package.archive import Archive
from slipway.package.limits import PackageLimits
from slipway.package.reader import manifest_of, open_member, read_package
from tests.unit.package.csars import (
    HEAD,
    META,
    SCRIPT,
    VNFD,
    VNFD_TEXT,
    block,
    read,
    valid_files,
    written,
    zipped,
)


def test_artifacts_have_checksum_size_and_media_type(tmp_path: Path) -> None:
    package = read(valid_files(), tmp_path)
    (artifact,) = package.artifacts
    assert (artifact.artifact_path, artifact.size_bytes, artifact.media_type) == (SCRIPT, 25, "text/plain")
    assert artifact.checksum.hash == hashlib.sha256(valid_files()[SCRIPT]).hexdigest()
    assert package.descriptor.artifacts == package.artifacts


def test_the_package_checksum_is_that_of_the_file(tmp_path: Path) -> None:
    path = written(valid_files(), tmp_path)
    assert read_package(path).checksum.hash == hashlib.sha256(path.read_bytes()).hexdigest()


def test_files_can_be_opened_afterwards(tmp_path: Path) -> None:
    package = read(valid_files(), tmp_path)
    with open_member(package.path, SCRIPT) as script:
        assert script.readline() == b"#!/bin/sh\n"
        assert script.read() == b"echo installed\n"
    with pytest.raises(PackageError, match="no such file"):
        open_member(package.path, "Scripts/absent.sh")


def test_the_vnfd_files_begin_with_the_entry(tmp_path: Path) -> None:
    types = "Definitions/etsi_nfv_sol001_vnfd_types.yaml"
    files = {**valid_files(), types: b"not: [even, valid"}
    assert list(read(files, tmp_path).vnfd_files()) == [VNFD, types, META]


def test_a_single_vnfd_at_the_root_with_a_manifest(tmp_path: Path) -> None:
    vnfd = VNFD_TEXT.replace("../Scripts/install.sh", "Scripts/install.sh").encode()
    script = valid_files()[SCRIPT]
    manifest = "metadata:\n  vnf_product_name: Sample\n" + block("vnfd.yaml", vnfd, "SHA-512").replace("Name", "Source")
    package = read({"vnfd.yaml": vnfd, "vnfd.mf": manifest.encode(), SCRIPT: script}, tmp_path)
    assert manifest_of(package.path) == manifest.encode()
    assert package.descriptor.product_name == "Sample"
    assert [one.artifact_path for one in package.artifacts] == [SCRIPT]


def test_manifest_digests_are_checked_with_their_line(tmp_path: Path) -> None:
    manifest = "metadata:\n  vnf_product_name: Sample\n\nSource: vnfd.yaml\nAlgorithm: SHA-256\nHash: 00\n"
    files = {"vnfd.yaml": VNFD_TEXT.encode(), "vnfd.mf": manifest.encode()}
    with pytest.raises(PackageError, match=r"vnfd\.mf:4: The digest of vnfd\.yaml does not match"):
        read(files, tmp_path)


def test_manifest_entries_need_no_empty_line_between_them(tmp_path: Path) -> None:
    files = valid_files()
    files[META] = (HEAD + "ETSI-Entry-Manifest: a.mf\n").encode()
    files["a.mf"] = (block(SCRIPT, files[SCRIPT]).strip() + "\n" + block(VNFD, b"changed").strip()).encode()
    with pytest.raises(PackageError, match=r"a\.mf:5: The digest of Definitions/vnfd\.yaml"):
        read(files, tmp_path)


def test_artifacts_outside_are_not_looked_for(tmp_path: Path) -> None:
    files = valid_files()
    files[META] += f"\nSource: https://example.org/image.qcow2\nAlgorithm: SHA-256\nHash: {'0' * 64}\n".encode()
    package = read(files, tmp_path)
    assert [one.artifact_path for one in package.artifacts if one.is_outside] == ["https://example.org/image.qcow2"]


def test_crlf_and_continued_lines_are_understood(tmp_path: Path) -> None:
    files = valid_files()
    digest = hashlib.sha512(files[SCRIPT]).hexdigest()
    text = HEAD + f"\nName: {SCRIPT}\nAlgorithm: sha512\nHash: {digest[:64]}\n {digest[64:]}\n"
    files[META] = text.replace("\n", "\r\n").encode()
    assert read(files, tmp_path).artifacts[0].checksum.algorithm == "SHA-512"


def _streamed(files: dict[str, bytes]) -> bytes:
    """Written to a pipe: sizes come behind the data."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: object) -> int:
            raise io.UnsupportedOperation

        def tell(self) -> int:
            raise io.UnsupportedOperation

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return pipe.getvalue()


def _wide(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(content)
        archive.comment = b"made by a tool that likes comments"
    return buffer.getvalue()


def _with_directories(files: dict[str, bytes]) -> bytes:
    return zipped({"Scripts/": b"", "Definitions/": b"", **files})


@pytest.mark.parametrize("write", [_streamed, _wide, _with_directories])
def test_archives_of_other_writers_are_read(write: object, tmp_path: Path) -> None:
    assert callable(write)
    package = read(write(valid_files()), tmp_path)
    with open_member(package.path, SCRIPT) as script:
        assert script.read() == valid_files()[SCRIPT]


def test_large_members_come_in_pieces(tmp_path: Path) -> None:
    content = hashlib.sha256(b"seed").digest() * 100_000
    path = written({"large": content}, tmp_path)
    with Archive.open(path) as archive:
        pieces = list(archive.chunks("large"))
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= 1024 * 1024


def test_the_executable_bit_is_known(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("run.sh")
        info.external_attr = (stat.S_IFREG | 0o755) << 16
        archive.writestr(info, b"")
    with Archive.open(written(buffer.getvalue(), tmp_path)) as archive:
        assert archive.member("run.sh").executable


def test_limits_can_be_narrowed(tmp_path: Path) -> None:
    path = written(valid_files(), tmp_path)
    with pytest.raises(PackageError, match="3 members; at most 2"):
        read_package(path, limits=PackageLimits(entries=2))


def test_a_path_that_is_not_there_is_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_package(tmp_path / "absent.csar")
