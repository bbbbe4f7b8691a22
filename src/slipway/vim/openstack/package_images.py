"""Software images that a package carries as files: which ones a stack needs, and the steps that bring and free them.

Glance has one image for each file, whatever VNFDs call it, and its name is made of the file's digest:

    slipway-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

So plans and templates name it before it is there; a VNFC's record tells what it was made from, also after the package
has changed; and an image that somebody deleted can be brought back without a change to any stack.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from slipway.model.descriptor import Flavour, Storage, Vdu
from slipway.model.package import SoftwareImage
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.target import VnfTarget
from slipway.package.digests import SHA256

UPLOAD_IMAGE, RELEASE_IMAGES = "openstack.upload_image", "openstack.release_images"  # the actions
GIB, MIB = 1 << 30, 1 << 20
_NAME = re.compile(r"slipway-([0-9a-f]{64})")

_Imaged = TypeVar("_Imaged", Vdu, Storage)


class UploadImage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`title`: what the VNFD calls it. `kept`: the VNF used it before, so undo leaves it. `min_disk` in GiB and
    `min_ram` in MiB, as in Glance."""

    title: str
    vnfd_id: str
    path: str
    digest: str
    disk_format: str
    container_format: str
    min_disk: int = 0
    min_ram: int = 0
    kept: bool = False

    @property
    def name(self) -> str:
        return image_name(self.digest)


class ReleaseImages(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`kept`: digests of those that the VNF goes on using."""

    kept: tuple[str, ...] = ()


def image_name(digest: str) -> str:
    return f"slipway-{digest}"


def with_image_names(target: VnfTarget) -> VnfTarget:
    """With Glance's names in place of the VNFD's, for images that the package carries or that a storage was granted."""
    vdus, storages = target.flavour.vdus, target.flavour.storages
    flavour = replace(
        target.flavour,
        vdus={name: _renamed(vdu) for name, vdu in vdus.items()},
        storages={name: _granted(_renamed(one), target.images.get(name)) for name, one in storages.items()},
    )
    return dataclasses.replace(target, flavour=flavour)


def carried_images(target: VnfTarget) -> dict[str, str]:
    """Names in Glance of the images that the package carries, by VDU and storage; where a grant has another, none."""
    return {node: image_name(digest) for node, digest, _ in _carried(target.flavour) if node not in target.images}


def image_names_in(value: Any) -> set[str]:
    """Names of images of packages, wherever they stand in a template, in parameters, or in a list."""
    if isinstance(value, str):
        return {value} if _NAME.fullmatch(value) else set()
    below: Iterable[Any] = ()
    if isinstance(value, Mapping):
        below = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        below = value
    return {name for part in below for name in image_names_in(part)}


def upload_steps(target: VnfTarget, needed: Iterable[str], before: Iterable[str]) -> Plan:
    """One for each of the `needed` images that the target's package carries. `before`: what the VNF used already."""
    needed, kept = set(needed), set(before)
    files = {digest: image for _, digest, image in sorted(_carried(target.flavour), key=lambda one: one[1])}
    wanted = {digest: image for digest, image in files.items() if image_name(digest) in needed}
    names = [image.name for image in wanted.values()]
    steps = []
    for digest, image in wanted.items():
        title = image.name if names.count(image.name) == 1 else f"{image.name} ({digest[:12]})"
        steps.append(_upload(target.vnfd_id, digest, image, title, kept=image_name(digest) in kept))
    return Plan(tuple(steps))


def release_step(kept: Iterable[str] = ()) -> Plan:
    """It can't be undone, for an image may be gone; so it comes when all else of the operation is done."""
    digests = sorted(found[1] for name in kept if (found := _NAME.fullmatch(name)))
    return Plan.of(
        Step(
            id="release images",
            action=RELEASE_IMAGES,
            args=msgspec.to_builtins(ReleaseImages(kept=tuple(digests))),
            effects=(Effect(Verb.REMOVE, "image", "that no VNF uses"),),
            irreversible=True,
            last=True,
        )
    )


def _upload(vnfd_id: str, digest: str, image: SoftwareImage, title: str, *, kept: bool) -> Step:
    args = UploadImage(
        title=title,
        vnfd_id=vnfd_id,
        path=image.image_path or "",
        digest=digest,
        disk_format=(image.disk_format or "qcow2").lower(),
        container_format=(image.container_format or "bare").lower(),
        min_disk=-(-image.min_disk // GIB),
        min_ram=-(-image.min_ram // MIB),
        kept=kept,
    )
    effects = () if kept else (Effect(Verb.MAKE, "image", title),)
    return Step(id=f"upload image {title}", action=UPLOAD_IMAGE, args=msgspec.to_builtins(args), effects=effects)


def _renamed(node: _Imaged) -> _Imaged:
    digest = _digest(node.image)
    return replace(node, image=replace(node.image, name=image_name(digest))) if node.image and digest else node


def _granted(storage: Storage, image: str | None) -> Storage:
    return replace(storage, image=replace(storage.image, name=image)) if storage.image and image else storage


def _carried(flavour: Flavour) -> Iterator[tuple[str, str, SoftwareImage]]:
    """VDU or storage, digest, image."""
    nodes: tuple[Vdu | Storage, ...] = (*flavour.vdus.values(), *flavour.storages.values())
    for node in nodes:
        if node.image and (digest := _digest(node.image)):
            yield node.name, digest, node.image


def _digest(image: SoftwareImage | None) -> str | None:
    """None when the package does not carry it. (One that was onboarded by an earlier Slipway may have another kind.)"""
    if image is None or image.image_path is None or image.checksum is None or image.checksum.algorithm != SHA256:
        return None
    return image.checksum.hash
