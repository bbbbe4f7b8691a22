"""What is in an archive of images, docker's or OCI's: which blobs and manifests make which image.

Archives are strangers. They are unpacked by the registry's machine, member by member; here are only the lists and small
documents that it reads out of them, bounded, and every name that goes on into a command is narrowed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar"
MANIFESTS = (MANIFEST, "application/vnd.oci.image.manifest.v1+json")
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MOST_IMAGES, MOST_BLOBS, DEEPEST = 200, 2000, 3
LARGEST_DOCUMENT = 4 << 20  # bytes of a manifest or configuration
MOST_DOCUMENTS, MOST_BYTES = 2000, 64 << 20  # of a whole archive, for all of them are kept until it is pushed
_MEMBER = re.compile(r"(?!-)[A-Za-z0-9._+-]+(?:/[A-Za-z0-9._+-]+)*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")

Read = Callable[[str], Awaitable[bytes]]  # a member of the archive, no larger than LARGEST_DOCUMENT


class BrokenArchive(Exception):
    """Says what is wrong with it."""


@dataclass(frozen=True)
class Blob:
    """`member` of the archive holds it; one that we made ourselves has its content."""

    digest: str
    member: str | None = None
    content: bytes = b""


@dataclass(frozen=True)
class Manifest:
    reference: str  # a tag, or the digest of one that an index names
    media_type: str
    content: bytes


@dataclass(frozen=True)
class ArchivedImage:
    """What is pushed, in this order: blobs, then manifests, the one with the tag last."""

    repository: str
    tag: str
    blobs: tuple[Blob, ...]
    manifests: tuple[Manifest, ...]


def read_listing(text: str) -> dict[str, int]:
    """Sizes by name, of plain files: lines of a size and a name. What has another name than ours can't be named."""
    lines = (line.partition(" ") for line in text.splitlines())
    return {name: int(size) for size, _, name in lines if size.isdecimal() and is_member(name)}


def is_member(name: str) -> bool:
    return bool(_MEMBER.fullmatch(name)) and not {".", ".."} & set(name.split("/"))


async def images_in(listing: Mapping[str, int], read: Read, file_name: str) -> list[ArchivedImage]:
    """`file_name`: what an image is called whose archive says a tag at most."""
    read = _within_bounds(read)
    try:
        if "manifest.json" in listing:
            found = await _of_docker(listing, read)
        elif "index.json" in listing:
            found = await _of_oci(listing, read, file_name)
        else:
            raise BrokenArchive("it has neither manifest.json, as docker's have, nor index.json, as OCI's have")
    except (KeyError, TypeError, AttributeError, RecursionError, msgspec.DecodeError) as error:
        raise BrokenArchive(f"its documents are not as they should be ({type(error).__name__}: {error})") from None
    if not found:
        raise BrokenArchive("there is no image in it that has a name")
    return _bounded(found, MOST_IMAGES, "names")


def _within_bounds(read: Read) -> Read:
    """An index may name the same manifests again and again, at each of its levels: what is read twice counts twice."""
    documents = size = 0

    async def bounded(member: str) -> bytes:
        nonlocal documents, size
        content = await read(member)
        documents, size = documents + 1, size + len(content)
        if documents > MOST_DOCUMENTS or size > MOST_BYTES:
            most = f"{MOST_DOCUMENTS}, or {MOST_BYTES >> 20} MiB,"
            raise BrokenArchive(f"it has more than {most} of manifests and configurations")
        return content

    return bounded


async def _of_docker(listing: Mapping[str, int], read: Read) -> list[ArchivedImage]:
    images: list[ArchivedImage] = []
    for one in _bounded(msgspec.json.decode(await read("manifest.json")), MOST_IMAGES, "images"):
        config = await read(_listed(listing, str(one["Config"])))
        digests = [_digest(layer) for layer in msgspec.json.decode(config)["rootfs"]["diff_ids"]]
        members = [str(layer) for layer in _bounded(one["Layers"], MOST_BLOBS, "layers")]
        if len(members) != len(digests):
            raise BrokenArchive(f"an image has {len(members)} layers, and its configuration {len(digests)}")
        # A layer that several images have may be a link in all but one of them.
        files = {digest: name for digest, name in zip(digests, members, strict=True) if name in listing}
        if missing := [name for digest, name in zip(digests, members, strict=True) if digest not in files]:
            raise BrokenArchive(f"the layer {missing[0][:80]!r} is not in it as a file")
        layers = [{"mediaType": LAYER, "size": listing[files[one]], "digest": one} for one in digests]
        described = {"mediaType": CONFIG, "size": len(config), "digest": digest_of(config)}
        manifest = msgspec.json.encode(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": layers}
        )
        blobs = (*(Blob(digest, name) for digest, name in files.items()), Blob(digest_of(config), content=config))
        for repository, tag in _tags(one.get("RepoTags") or []):
            images.append(ArchivedImage(repository, tag, blobs, (Manifest(tag, MANIFEST, manifest),)))
    return images


async def _of_oci(listing: Mapping[str, int], read: Read, file_name: str) -> list[ArchivedImage]:
    images: list[ArchivedImage] = []
    index = msgspec.json.decode(await read("index.json"))
    for one in _bounded(index["manifests"], MOST_IMAGES, "images"):
        notes = one.get("annotations") or {}
        named = next((str(notes[name]) for name in _NAMES if notes.get(name)), None)
        if named is None:
            continue
        repository, tag = image_name(named if "/" in named or ":" in named else f"{file_name}:{named}")
        blobs: dict[str, Blob] = {}
        manifests = await _tree(one, tag, listing, read, blobs, DEEPEST)
        images.append(ArchivedImage(repository, tag, tuple(blobs.values()), tuple(manifests)))
    return images


async def _tree(
    one: Mapping[str, Any], reference: str, listing: Mapping[str, int], read: Read, blobs: dict[str, Blob], deep: int
) -> list[Manifest]:
    """A manifest with those that it names before it; `blobs` gets what they need."""
    digest, media_type = _digest(one["digest"]), str(one["mediaType"])
    content = await read(_listed(listing, _member_of(digest)))
    if digest_of(content) != digest:
        raise BrokenArchive(f"{digest[:20]}… has another content than its digest says")
    document = msgspec.json.decode(content)
    before: list[Manifest] = []
    if media_type in INDEXES and deep:
        for part in _bounded(document["manifests"], MOST_IMAGES, "platforms"):
            if _member_of(_digest(part["digest"])) not in listing:
                raise BrokenArchive("it has not all platforms that its index names")
            before += await _tree(part, str(part["digest"]), listing, read, blobs, deep - 1)
    elif media_type in MANIFESTS:
        for part in (document["config"], *_bounded(document["layers"], MOST_BLOBS, "layers")):
            blob = _digest(part["digest"])
            blobs[blob] = Blob(blob, _listed(listing, _member_of(blob)))
    else:
        raise BrokenArchive(f"{media_type[:80]!r} is no manifest that a registry takes")
    if len(blobs) > MOST_BLOBS:
        raise BrokenArchive(f"it has more than {MOST_BLOBS} blobs")
    return [*before, Manifest(reference, media_type, content)]


def image_name(named: str) -> tuple[str, str]:
    """Repository and tag without the registry that it came from: docker.io/library/web:1 is library/web:1."""
    place, _, rest = named.partition("/")
    if rest and ("." in place or ":" in place or place == "localhost"):
        named = rest
    repository, colon, tag = named.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = named, "latest"
    if not _REPOSITORY.fullmatch(repository) or len(repository) > 200 or not _TAG.fullmatch(tag):
        raise BrokenArchive(f"{named[:80]!r} is no name of an image")
    return repository, tag


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _tags(named: Any) -> Iterator[tuple[str, str]]:
    for one in _bounded(named, MOST_IMAGES, "names"):
        yield image_name(str(one))


def _member_of(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _listed(listing: Mapping[str, int], member: str) -> str:
    if member not in listing:
        raise BrokenArchive(f"there is no file {member[:100]!r} in it")
    return member


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise BrokenArchive("a digest in it is no SHA-256 digest")
    return value


def _bounded(value: Any, most: int, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise BrokenArchive(f"its list of {what} is no list")
    if len(value) > most:
        raise BrokenArchive(f"it has more than {most} {what}")
    return value
