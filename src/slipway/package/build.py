"""From a source tree to a CSAR: digests computed, the same bytes every time, checked as the server would check it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import IO

from slipway.model.errors import PackageError
from slipway.package.file_window import CHUNK
from slipway.package.key_value_blocks import Block, read_blocks
from slipway.package.limits import DEFAULT_LIMITS
from slipway.package.meta import TOSCA_META
from slipway.package.reader import Package, read_package
from slipway.package.tosca.files import VnfdFiles
from slipway.package.tosca.node_types import NodeTypes
from slipway.package.tosca.topology import read_topology
from slipway.package.warnings import Warnings
from slipway.package.yaml_reader import read_yaml

_EPOCH = (1980, 1, 1, 0, 0, 0)
_LEFT_OUT = ("__pycache__",)  # and everything hidden
_YAML = (".yaml", ".yml")
_ABOUT_THE_PACKAGE = (".mf", ".cms", ".p7s", ".cert")
_MEDIA_TYPES = {
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".json": "application/json",
    ".sh": "application/x-sh",
    ".py": "text/x-python",
    ".tgz": "application/gzip",
    ".gz": "application/gzip",
    ".crt": "application/x-x509-ca-cert",
    ".txt": "text/plain",
    ".md": "text/markdown",
}


def build_package(source_dir: Path, target: Path) -> Package:
    """Write `target` from the files below `source_dir`, all or nothing, and return it as read back."""
    files = _collect(source_dir)
    meta = _tosca_meta(source_dir, files)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=target.parent) as folder:
        unfinished = Path(folder) / target.name
        with unfinished.open("wb") as output:
            _write(output, source_dir, files, meta)
            output.flush()
            os.fsync(output.fileno())
        package = read_package(unfinished)
        unfinished.replace(target)
    return dataclasses.replace(package, path=target)


def _collect(source_dir: Path) -> list[str]:
    """The package paths of all files, sorted. Links and special files are refused, hidden ones left out."""
    if not source_dir.is_dir():
        raise PackageError("This is not a directory.", file=str(source_dir), cure="name the package's source tree.")
    found = []
    waiting = [source_dir]
    while waiting:
        for path in waiting.pop().iterdir():
            if path.name.startswith(".") or path.name in _LEFT_OUT:
                continue
            name = path.relative_to(source_dir).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                waiting.append(path)
            elif stat.S_ISREG(mode):
                found.append(name)
            else:
                kind = "symbolic link" if stat.S_ISLNK(mode) else "special file"
                raise PackageError(f"This is a {kind}.", file=name, cure="put the file itself there.")
    return sorted(found)


def _tosca_meta(source_dir: Path, files: list[str]) -> bytes:
    """Block 0 as the source has it, or a new one; then a block with a digest for every file."""
    old = read_blocks((source_dir / TOSCA_META).read_bytes(), TOSCA_META) if TOSCA_META in files else []
    media_types = {block.name: block.fields.get("Content-Type") for block in old}
    head = old[0] if old and old[0].name is None else _new_head(source_dir, files)
    named = set(head.fields.values())
    blocks = [head.fields]
    for name in files:
        if name == TOSCA_META or name.endswith(_ABOUT_THE_PACKAGE) or (name in named and not name.endswith(_YAML)):
            continue
        media_type = media_types.get(name) or _MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream")
        digest = _digest(source_dir / name)
        blocks.append({"Name": name, "Content-Type": media_type, "Algorithm": "SHA-256", "Hash": digest})
    return "\n".join("".join(f"{key}: {value}\n" for key, value in block.items()) for block in blocks).encode()


def _new_head(source_dir: Path, files: list[str]) -> Block:
    fields = {
        "TOSCA-Meta-File-Version": "1.0",
        "Created-by": "Slipway",
        "CSAR-Version": "1.1",
        "Entry-Definitions": _entry(source_dir, files),
    }
    return Block(1, fields)


def _entry(source_dir: Path, files: list[str]) -> str:
    """The top file by its name; else the only one with node templates; else the only one at the root."""
    definitions = [name for name in files if name.startswith("Definitions/") and name.endswith(_YAML)]
    tops = [name for name in definitions if "top" in Path(name).name]
    roots = [name for name in files if "/" not in name and name.endswith(_YAML)]
    for candidates in (tops, roots if not definitions else []):
        if len(candidates) == 1:
            return candidates[0]
    describing = [name for name in definitions if _has_nodes(source_dir, name)]
    if len(describing) == 1:
        return describing[0]
    found = ", ".join(tops or describing or roots) or "none"
    raise PackageError(
        f"The entry file of the VNFD is ambiguous (candidates: {found}).",
        file=TOSCA_META,
        cure="write TOSCA-Metadata/TOSCA.meta with Entry-Definitions.",
    )


def _has_nodes(source_dir: Path, name: str) -> bool:
    if Path(name).name.startswith("etsi_nfv_sol001_"):
        return False
    path = source_dir / name
    if path.stat().st_size > DEFAULT_LIMITS.text_bytes:
        return False
    root = read_yaml(path.read_bytes(), name).root
    topology = read_topology(root, name, NodeTypes(VnfdFiles(name, {name: root}, ())), Warnings())
    return topology is not None and bool(topology.nodes)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(output: IO[bytes], source_dir: Path, files: list[str], meta: bytes) -> None:
    with zipfile.ZipFile(output, "w") as archive:
        _write_member(archive, TOSCA_META, len(meta), executable=False, content=meta)
        for name in files:
            if name != TOSCA_META:
                path = source_dir / name
                status = path.stat()
                _write_member(archive, name, status.st_size, executable=bool(status.st_mode & 0o100), content=path)


def _write_member(archive: zipfile.ZipFile, name: str, size: int, *, executable: bool, content: bytes | Path) -> None:
    """Large members are stored: images are compressed already, and reading them stays cheap."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    info.compress_type = zipfile.ZIP_STORED if size > DEFAULT_LIMITS.ratio_from else zipfile.ZIP_DEFLATED
    info.file_size = size
    with archive.open(info, "w") as member:
        if isinstance(content, bytes):
            member.write(content)
            return
        with content.open("rb") as file:
            while chunk := file.read(CHUNK):
                member.write(chunk)
