"""Writes container images without an engine: a layer is a tar file, an image two JSON documents, all of it a tar again.

The same inputs give the same bytes. Layers that images share are in an archive once.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Layer:
    """A tar file on the disk. Not compressed: a machine has it imported in half the time."""

    file: Path
    digest: str

    @property
    def size(self) -> int:
        return self.file.stat().st_size


@dataclass(frozen=True)
class Image:
    name: str
    layers: Sequence[Layer]
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Link:
    """A symbolic link, where a file might be."""

    target: str


def layer(file: Path) -> Layer:
    """One that is there."""
    with file.open("rb") as content:
        return Layer(file, hashlib.file_digest(content, "sha256").hexdigest())


def layer_of(file: Path, entries: Mapping[str, Path | Link | None]) -> Layer:
    """One made of programs, links and empty directories (None). It belongs to root, and has no times."""
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        empty = {path for path, source in entries.items() if source is None}
        for directory in sorted(empty | {str(up) for path in entries for up in Path(path).parents} - {"."}):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if directory == "tmp" else 0o755
            tar.addfile(entry)
        for path, source in sorted(entries.items()):
            if source is None:
                continue
            entry = tarfile.TarInfo(path)
            entry.mode = 0o755
            if isinstance(source, Link):
                entry.type, entry.linkname = tarfile.SYMTYPE, source.target
                tar.addfile(entry)
                continue
            entry.size = source.stat().st_size
            with source.open("rb") as content:
                tar.addfile(entry, content)
    return layer(file)


def write_archive(target: Path, images: Sequence[Image]) -> None:
    """For `ctr images import`. It gets its name when it is whole."""
    part = target.with_suffix(".part")
    manifests, written = [], set[str]()
    with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        for image in images:
            config, manifest = documents(image)
            for blob in (config, manifest):
                _add_blob(tar, written, hashlib.sha256(blob).hexdigest(), blob)
            for one in image.layers:
                _add_blob(tar, written, one.digest, one.file)
            names = {"io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": image.name}
            manifests.append({**_descriptor(MANIFEST, manifest), "annotations": names})
        _add(tar, "index.json", _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}))
    part.rename(target)


def documents(image: Image) -> tuple[bytes, bytes]:
    """An image's configuration and manifest."""
    digests = [f"sha256:{one.digest}" for one in image.layers]
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": [PATH], **image.config},
            "rootfs": {"type": "layers", "diff_ids": digests},
        }
    )
    layers = [
        {"mediaType": LAYER, "digest": digest, "size": one.size}
        for digest, one in zip(digests, image.layers, strict=True)
    ]
    body = {"schemaVersion": 2, "mediaType": MANIFEST, "config": _descriptor(CONFIG, config), "layers": layers}
    return config, _json(body)


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


def _json(document: Any) -> bytes:
    return msgspec.json.encode(document, order="sorted")


def _add_blob(tar: tarfile.TarFile, written: set[str], digest: str, content: bytes | Path) -> None:
    if digest not in written:
        written.add(digest)
        _add(tar, f"blobs/sha256/{digest}", content)


def _add(tar: tarfile.TarFile, name: str, content: bytes | Path) -> None:
    entry = tarfile.TarInfo(name)
    if isinstance(content, bytes):
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
        return
    entry.size = content.stat().st_size
    with content.open("rb") as file:
        tar.addfile(entry, file)


def without(source: Path, target: Path, unwanted: Sequence[str]) -> None:
    """A tar file less what lies under these directories."""
    with tarfile.open(source) as old, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as new:
        for member in old:
            if not f"{member.name}/".startswith(tuple(unwanted)):
                new.addfile(member, old.extractfile(member) if member.isfile() else None)
