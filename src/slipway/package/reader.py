"""Reads a CSAR file into a Package, after all checks: archive, digests, signatures, VNFD."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
from cryptography import x509

from slipway.model.descriptor import Descriptor, Flavour, Storage, Vdu
from slipway.model.errors import PackageError
from slipway.model.package import Artifact, Checksum, PackageWarning, SoftwareImage
from slipway.package.archive import Archive, MemberStream
from slipway.package.digests import SHA256, Digests
from slipway.package.file_window import CHUNK
from slipway.package.limits import DEFAULT_LIMITS, PackageLimits
from slipway.package.meta import TOSCA_META, Meta, read_meta, verify_digests
from slipway.package.signature import (
    Signature,
    UnsignedPolicy,
    Verifier,
    signature_files,
    unsigned_files,
    verify_artifacts,
    verify_manifest,
    verify_outer,
)
from slipway.package.tosca.artifact_files import ArtifactFiles
from slipway.package.tosca.descriptor import read_descriptor
from slipway.package.tosca.files import VnfdFiles, read_files
from slipway.package.warnings import Warnings

_CSAR = (".csar", ".zip")
_CMS = (".cms", ".p7s")
_Imaged = TypeVar("_Imaged", Vdu, Storage)


@dataclass(frozen=True)
class Package:
    """A package that has passed every check. `vnfd_paths` begin with the entry file."""

    path: Path
    descriptor: Descriptor
    artifacts: tuple[Artifact, ...]
    software_images: tuple[SoftwareImage, ...]
    signature: Signature | None
    checksum: Checksum
    vnfd_paths: tuple[str, ...]
    warnings: tuple[PackageWarning, ...] = ()
    limits: PackageLimits = DEFAULT_LIMITS

    def vnfd_files(self) -> dict[str, bytes]:
        """The VNFD's YAML files and TOSCA.meta, as GET .../vnfd wants them: by path, the entry file first."""
        with open_csar(self.path, self.limits) as archive:
            names = [name for name in (*self.vnfd_paths, TOSCA_META) if name in archive]
            return {name: archive.read(name, self.limits.text_bytes) for name in names}


def read_package(
    path: Path,
    policy: UnsignedPolicy = UnsignedPolicy.ACCEPT,
    trust: Sequence[x509.Certificate] = (),
    limits: PackageLimits = DEFAULT_LIMITS,
    label: str | None = None,
) -> Package:
    """Check a CSAR and read its VNFD. PackageError says what is wrong, where, and how to correct it.

    `label` is what people call the file, where it has another name here.
    """
    verifier = Verifier(policy, trust)
    with ExitStack() as stack:
        outer = stack.enter_context(Archive.open(path, limits, label))
        signature = None
        archive = outer
        if (wrapped := _wrapped(outer)) is not None:
            csar, cms = wrapped
            signature = verify_outer(outer, csar, cms, Digests(outer), verifier)
            archive = stack.enter_context(_unwrapped(outer, csar))
        return _read(path, archive, signature, verifier)


def _read(path: Path, archive: Archive, signature: Signature | None, verifier: Verifier) -> Package:
    digests = Digests(archive)
    meta = read_meta(archive)
    verify_digests(meta, archive, digests)
    verify_artifacts(archive, meta, digests, verifier)
    manifest_signature = verify_manifest(archive, meta, verifier)
    signature = signature or manifest_signature
    if signature is None:
        verifier.accept_unsigned(archive.source.label)
    unsigned = unsigned_files(archive, meta) if manifest_signature else frozenset()
    files = read_files(archive, meta.entry, unsigned)
    warnings = Warnings()
    descriptor = read_descriptor(files, ArtifactFiles(archive, digests, unsigned), warnings)
    images, flavours = _images(descriptor, archive, digests), _with_digests(descriptor, digests)
    artifacts = tuple(_artifacts(archive, digests, meta, files, images))
    return Package(
        path=path,
        descriptor=msgspec.structs.replace(descriptor, artifacts=artifacts, flavours=flavours),
        artifacts=artifacts,
        software_images=images,
        signature=signature,
        checksum=file_checksum(path),
        vnfd_paths=files.paths(),
        warnings=warnings.all(),
        limits=archive.limits,
    )


def _wrapped(archive: Archive) -> tuple[str, str] | None:
    """(CSAR, signature) of SOL004 option 2: an outer ZIP with nothing but those two and certificates."""
    names = archive.names()
    csars = [name for name in names if name.lower().endswith(_CSAR) and "/" not in name]
    if not csars or any("/" in name or name.lower().endswith((".yaml", ".yml", ".mf")) for name in names):
        return None
    signatures = [name for name in names if name.lower().endswith(_CMS)]
    if len(csars) != 1 or len(signatures) != 1:
        raise PackageError(
            f"The ZIP holds {len(csars)} CSAR and {len(signatures)} signature files.",
            file=archive.source.label,
            cure="put exactly one CSAR and its .cms file in it, or upload the CSAR itself.",
        )
    return csars[0], signatures[0]


def _unwrapped(outer: Archive, csar: str) -> Archive:
    inner = outer.inner(csar)
    if _wrapped(inner) is not None:
        inner.close()
        raise PackageError("The CSAR holds another CSAR.", file=csar, cure="wrap a CSAR once only.")
    return inner


def open_csar(path: Path, limits: PackageLimits = DEFAULT_LIMITS) -> Archive:
    """The CSAR of a file that has been read before: the file itself, or the one it wraps."""
    outer = Archive.open(path, limits)
    try:
        wrapped = _wrapped(outer)
        inner = _unwrapped(outer, wrapped[0]) if wrapped is not None else outer
    except BaseException:
        outer.close()
        raise
    if inner is not outer:
        outer.close()
    return inner


def open_member(path: Path, name: str, limits: PackageLimits = DEFAULT_LIMITS) -> io.BufferedReader:
    """One file of a CSAR, streamed; closing it closes the CSAR."""
    archive = open_csar(path, limits)
    try:
        archive.member(name)
    except PackageError:
        archive.close()
        raise
    return io.BufferedReader(MemberStream(archive.chunks(name), archive), CHUNK)


def size_of(path: Path, name: str, limits: PackageLimits = DEFAULT_LIMITS) -> int:
    """What one file of a CSAR has unpacked. The VNFD may say something else of an image."""
    with open_csar(path, limits) as archive:
        return archive.member(name).size


def zipped_size(sizes: Mapping[str, int]) -> int:
    """Of what `zipped_members` gives, known before it is made: local header, content and row of each, and the end."""
    return sum(30 + 46 + 2 * len(name.encode()) + size for name, size in sizes.items()) + 22


def zipped_members(path: Path, names: Iterable[str], limits: PackageLimits = DEFAULT_LIMITS) -> io.BufferedReader:
    """Some files of a CSAR as a ZIP, the same bytes every time, in a file without a name that the caller closes."""
    with tempfile.TemporaryFile() as target:
        with open_csar(path, limits) as archive, zipfile.ZipFile(target, "w") as bundle:
            for name in names:
                info = zipfile.ZipInfo(name)
                info.file_size = archive.member(name).size
                with bundle.open(info, "w") as member:
                    for chunk in archive.chunks(name):
                        member.write(chunk)
        target.flush()
        return os.fdopen(os.dup(target.fileno()), "rb")


def vnfd_of(path: Path, limits: PackageLimits = DEFAULT_LIMITS) -> dict[str, bytes]:
    """As `Package.vnfd_files`, of a CSAR that was checked when it came: no more is read than is asked for."""
    with open_csar(path, limits) as archive:
        names = [*read_files(archive, read_meta(archive).entry).paths(), TOSCA_META]
        return {name: archive.read(name, limits.text_bytes) for name in names if name in archive}


def manifest_of(path: Path, limits: PackageLimits = DEFAULT_LIMITS) -> bytes | None:
    with open_csar(path, limits) as archive:
        manifest = read_meta(archive).manifest
        return None if manifest is None else archive.read(manifest.path, limits.text_bytes)


def file_checksum(path: Path) -> Checksum:
    with path.open("rb") as file:
        return Checksum(SHA256, hashlib.file_digest(file, "sha256").hexdigest())


def _images(descriptor: Descriptor, archive: Archive, digests: Digests) -> tuple[SoftwareImage, ...]:
    """Each image once, although flavours share them, with what the VNFD leaves to be known from elsewhere."""
    found: dict[bytes, SoftwareImage] = {}
    for flavour in descriptor.flavours.values():
        images = [vdu.image for vdu in flavour.vdus.values()] + [one.image for one in flavour.storages.values()]
        found |= {msgspec.json.encode(image): image for image in images if image is not None}
    return tuple(_completed(image, descriptor, archive, digests) for image in found.values())


def _completed(image: SoftwareImage, descriptor: Descriptor, archive: Archive, digests: Digests) -> SoftwareImage:
    checksum, size, path = image.checksum, image.size, image.image_path
    return msgspec.structs.replace(
        image,
        provider=image.provider or descriptor.provider,
        checksum=digests.checksum(path) if checksum is None and path else checksum,
        size=archive.member(path).size if size is None and path else size,
    )


def _with_digests(descriptor: Descriptor, digests: Digests) -> dict[str, Flavour]:
    """Planners know the images that the package carries by one digest, whatever algorithm the VNFD prefers."""
    return {
        name: msgspec.structs.replace(
            flavour,
            vdus={key: _with_digest(vdu, digests) for key, vdu in flavour.vdus.items()},
            storages={key: _with_digest(one, digests) for key, one in flavour.storages.items()},
        )
        for name, flavour in descriptor.flavours.items()
    }


def _with_digest(node: _Imaged, digests: Digests) -> _Imaged:
    image = node.image
    if image is None or image.image_path is None:
        return node
    checksum = Checksum(SHA256, digests.of(image.image_path))
    return msgspec.structs.replace(node, image=msgspec.structs.replace(image, checksum=checksum))


def _artifacts(
    archive: Archive, digests: Digests, meta: Meta, files: VnfdFiles, images: tuple[SoftwareImage, ...]
) -> Iterable[Artifact]:
    """All files but the VNFD, metadata, signatures and images; and the artifacts outside of the package."""
    papers = {TOSCA_META, *files.paths(), *signature_files(archive, meta)}
    papers |= {image.image_path for image in images if image.image_path}
    media_types = {one.path: one.media_type for one in meta.all_declared() if one.media_type}
    for member in archive:
        if member.name not in papers:
            yield Artifact(
                artifact_path=member.name,
                checksum=digests.checksum(member.name),
                size_bytes=member.size,
                media_type=media_types.get(member.name),
            )
    outside = {one.path: one for one in meta.all_declared() if one.is_outside}
    for one in outside.values():
        yield Artifact(artifact_path=one.path, checksum=one.checksum(), media_type=one.media_type)
