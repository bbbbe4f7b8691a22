"""Archives of images, as strangers make them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.registry.image_archive import (
    ArchivedImage,
    BrokenArchive,
    digest_of,
    image_name,
    images_in,
    is_member,
    read_listing,
)

OCI = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


async def images(files: Mapping[str, bytes], missing: frozenset[str] = frozenset()) -> list[ArchivedImage]:
    async def read(member: str) -> bytes:
        return files[member]

    return await images_in({name: len(content) for name, content in files.items() if name not in missing}, read, "file")


def docker(**more: Any) -> dict[str, bytes]:
    layers = [b"one", b"two", b"one"]
    digests = [digest_of(layer) for layer in layers]
    entry = {"Config": "c.json", "RepoTags": ["docker.io/library/web:1"], "Layers": ["a/l.tar", "b/l.tar", "c/l.tar"]}
    return {
        "manifest.json": json.dumps([entry | more]).encode(),
        "c.json": json.dumps({"rootfs": {"diff_ids": digests}}).encode(),
        **dict(zip(entry["Layers"], layers, strict=True)),
    }


def oci(ref: str | None = "web:1") -> dict[str, bytes]:
    layer, config = b"layer", b"{}"
    described = [{"mediaType": "x", "digest": digest_of(one), "size": len(one)} for one in (config, layer)]
    manifest = json.dumps({"config": described[0], "layers": described[1:]}).encode()
    platforms = json.dumps({"manifests": [{"mediaType": OCI, "digest": digest_of(manifest)}]}).encode()
    notes = {"org.opencontainers.image.ref.name": ref} if ref else {}
    entry = {"mediaType": INDEX, "digest": digest_of(platforms), "annotations": notes}
    return {
        "index.json": json.dumps({"manifests": [entry]}).encode(),
        **{f"blobs/sha256/{hashlib.sha256(one).hexdigest()}": one for one in (layer, config, manifest, platforms)},
    }


async def test_what_docker_saves() -> None:
    files = docker()
    (image,) = await images(files, missing=frozenset({"c/l.tar"}))  # a link to the same layer
    assert (image.repository, image.tag) == ("library/web", "1")
    assert {blob.digest for blob in image.blobs} == {digest_of(one) for one in (b"one", b"two", files["c.json"])}
    (manifest,) = image.manifests
    told = json.loads(manifest.content)
    assert [layer["size"] for layer in told["layers"]] == [3, 3, 3]
    assert told["config"]["digest"] == digest_of(files["c.json"])


async def test_what_skopeo_writes() -> None:
    (image,) = await images(oci())
    assert (image.repository, image.tag) == ("web", "1")
    assert [manifest.media_type for manifest in image.manifests] == [OCI, INDEX]
    assert image.manifests[-1].reference == "1"
    assert len(image.blobs) == 2
    (named,) = await images(oci("latest"))
    assert (named.repository, named.tag) == ("file", "latest")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "neither"),
        (docker(Config="/etc/shadow"), "no file"),
        (docker(Layers=["a/l.tar"]), "1 layers"),
        (docker(Layers=["x", "y", "z"]), "is not in it as a file"),
        (docker(RepoTags=["a b:1"]), "no name of an image"),
        (docker(RepoTags=None), "no image in it that has a name"),
        (docker() | {"manifest.json": b"{}"}, "no list"),
        (docker() | {"manifest.json": b"[" * 1_000_000}, "RecursionError"),
        (docker() | {"manifest.json": json.dumps([{}] * 1000).encode()}, "more than 200"),
        (docker() | {"c.json": b'{"rootfs": {"diff_ids": ["sha256:../../x"]}}'}, "no SHA-256 digest"),
        (oci(None), "no image in it that has a name"),
        (oci() | {"index.json": b'{"manifests": [{"annotations": {"io.containerd.image.name": "a"}}]}'}, "KeyError"),
    ],
)
async def test_what_is_wrong_is_said(files: dict[str, bytes], why: str) -> None:
    with pytest.raises(BrokenArchive, match=why):
        await images(files)


async def test_another_content_than_the_digest_says_is_no_image() -> None:
    files = {name: content + b" " if name.startswith("blobs") else content for name, content in oci().items()}
    with pytest.raises(BrokenArchive, match="another content"):
        await images(files)


async def test_a_small_archive_can_not_ask_for_documents_without_end() -> None:
    """Indexes of indexes that name the same one 200 times each: millions of reads over SSH, all kept in memory."""
    files = oci()
    entry = json.loads(files["index.json"])["manifests"][0]
    for _ in range(2):
        index = json.dumps({"manifests": [{"mediaType": INDEX, "digest": entry["digest"]}] * 200}).encode()
        files[f"blobs/sha256/{hashlib.sha256(index).hexdigest()}"] = index
        entry |= {"digest": digest_of(index)}
    with pytest.raises(BrokenArchive, match="manifests and configurations"):
        await images(files | {"index.json": json.dumps({"manifests": [entry]}).encode()})


async def test_large_documents_are_not_all_kept_in_memory() -> None:
    files = docker()
    (entry,) = json.loads(files["manifest.json"])
    config = files["c.json"] + b" " * (4 << 20)
    with pytest.raises(BrokenArchive, match="64 MiB"):
        await images(files | {"manifest.json": json.dumps([entry] * 100).encode(), "c.json": config})


async def test_names_of_images_are_bounded_as_images_are() -> None:
    files = docker(RepoTags=[f"web:{number}" for number in range(150)])
    (entry,) = json.loads(files["manifest.json"])
    assert len(await images(files)) == 150
    with pytest.raises(BrokenArchive, match="more than 200 names"):
        await images(files | {"manifest.json": json.dumps([entry] * 2).encode()})


@given(st.text())
def test_a_name_that_goes_into_a_command_is_a_plain_one(name: str) -> None:
    if is_member(name):
        assert not name.startswith(("-", "/"))
        assert ".." not in name.split("/")
        assert not set(name) & set(" \n'\"\\$`;&|<>*?")
    try:
        repository, tag = image_name(name)
    except BrokenArchive:
        return
    assert not set(repository + tag) & set(" \n'\"\\$`;&|<>*?%#@")


def test_a_listing_tells_plain_names_only() -> None:
    assert read_listing("12 a/b.tar\n5 ../x\n7 -rf\nx y\n3 /etc/passwd\n") == {"a/b.tar": 12}
