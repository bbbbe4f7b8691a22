"""What a package says of itself before its VNFD is read: TOSCA.meta and the manifest, in both shapes of SOL004."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slipway.model.errors import PackageError
from slipway.model.package import Checksum, is_url
from slipway.package.archive import Archive
from slipway.package.digests import USE_STRONG, Digests, algorithm_named
from slipway.package.key_value_blocks import Block, read_blocks

TOSCA_META = "TOSCA-Metadata/TOSCA.meta"
_YAML = (".yaml", ".yml")
_CMS = re.compile(rb"^-----BEGIN (?:CMS|PKCS7)-----", re.MULTILINE)


@dataclass(frozen=True)
class DeclaredFile:
    """A file that TOSCA.meta or the manifest names, and where it does."""

    path: str
    file: str
    line: int
    algorithm: str | None = None
    hash: str | None = None
    media_type: str | None = None
    signature: str | None = None
    certificate: str | None = None

    @property
    def is_outside(self) -> bool:
        return is_url(self.path)

    def checksum(self) -> Checksum:
        """Of an artifact outside of the package, as declared: it is all that is known of it here."""
        if self.algorithm is None or self.hash is None:
            raise self._error(
                f"The artifact {self.path[:200]} is outside of the package and has no digest.",
                "give Algorithm and Hash, or put the file in the package.",
            )
        known, digest = algorithm_named(self.algorithm), self.hash.strip().lower()
        if known is None:
            raise self._error(f"The digest algorithm {self.algorithm!r} is unknown or too weak.", USE_STRONG)
        length = int(known.removeprefix("SHA-")) // 4
        if not re.fullmatch(f"[0-9a-f]{{{length}}}", digest):
            raise self._error(f"Hash is not a {known} digest: {length} hexadecimal digits.", "correct it.")
        return Checksum(known, digest)

    def _error(self, what: str, cure: str) -> PackageError:
        return PackageError(what, file=self.file, line=self.line, cure=cure)


@dataclass(frozen=True)
class Manifest:
    path: str
    signed_part: bytes  # all before the signature
    signature: bytes | None  # the PEM block at its end
    declared: tuple[DeclaredFile, ...]


@dataclass(frozen=True)
class Meta:
    """`certificate` is the file with the signer's certificate, where the package names one."""

    entry: str
    declared: tuple[DeclaredFile, ...]
    manifest: Manifest | None = None
    certificate: str | None = None

    def all_declared(self) -> tuple[DeclaredFile, ...]:
        return self.declared + (self.manifest.declared if self.manifest else ())


def read_meta(archive: Archive) -> Meta:
    return _from_directory(archive) if TOSCA_META in archive else _from_root(archive)


def verify_digests(meta: Meta, archive: Archive, digests: Digests) -> None:
    """Every file that is declared is there, and is what its digest says."""
    for one in meta.all_declared():
        if not one.is_outside and one.path not in archive:
            raise PackageError(
                f"The file {one.path!r} is not in the package.",
                file=one.file,
                line=one.line,
                cure="add the file, or remove its block.",
            )
        if (one.algorithm is None) != (one.hash is None):
            raise PackageError(
                "Algorithm and Hash come together.", file=one.file, line=one.line, cure="give both, or neither."
            )
        if one.is_outside:
            one.checksum()
        elif one.algorithm is not None and one.hash is not None:
            digests.verify(one.path, one.algorithm, one.hash, file=one.file, line=one.line)


def _from_directory(archive: Archive) -> Meta:
    blocks = read_blocks(archive.read(TOSCA_META, archive.limits.text_bytes), TOSCA_META)
    head = blocks[0] if blocks else Block(1)
    entry = head.fields.get("Entry-Definitions")
    if not entry:
        raise PackageError(
            "Entry-Definitions is missing in the first block.",
            file=TOSCA_META,
            line=head.line,
            cure="add `Entry-Definitions: Definitions/<top file>.yaml`.",
        )
    manifest = head.fields.get("ETSI-Entry-Manifest")
    certificate = head.fields.get("ETSI-Entry-Certificate")
    for key, path in (
        ("Entry-Definitions", entry),
        ("ETSI-Entry-Manifest", manifest),
        ("ETSI-Entry-Certificate", certificate),
    ):
        if path is not None and path not in archive:
            raise PackageError(
                f"{key} names {path!r}, which is not in the package.",
                file=TOSCA_META,
                line=head.line,
                cure="correct the path.",
            )
    named = [TOSCA_META, *(path for path in (entry, manifest, certificate) if path)]
    if len(set(named)) < len(named):
        raise PackageError(
            "Entry-Definitions, ETSI-Entry-Manifest and ETSI-Entry-Certificate must name different files, and none of"
            f" them {TOSCA_META}.",
            file=TOSCA_META,
            line=head.line,
            cure="correct the paths.",
        )
    return Meta(
        entry=entry,
        declared=_declared(blocks[1:], TOSCA_META),
        manifest=_read_manifest(archive, manifest) if manifest else None,
        certificate=certificate,
    )


def _from_root(archive: Archive) -> Meta:
    roots = [name for name in archive.names() if "/" not in name and name.lower().endswith(_YAML)]
    if len(roots) != 1:
        found = ", ".join(sorted(roots)[:5]) or "none"
        raise PackageError(
            f"The package has neither {TOSCA_META} nor exactly one YAML file at its root (found: {found}).",
            file=archive.source.label,
            cure=f"add {TOSCA_META} with Entry-Definitions.",
        )
    stem = roots[0].rpartition(".")[0]
    manifest = f"{stem}.mf"
    certificate = next((name for name in (f"{stem}.cert", f"{stem}.crt") if name in archive), None)
    return Meta(
        entry=roots[0],
        declared=(),
        manifest=_read_manifest(archive, manifest) if manifest in archive else None,
        certificate=certificate,
    )


def _read_manifest(archive: Archive, path: str) -> Manifest:
    data = archive.read(path, archive.limits.text_bytes)
    match = _CMS.search(data)
    signed_part, signature = (data[: match.start()], data[match.start() :]) if match else (data, None)
    return Manifest(path, signed_part, signature, _declared(read_blocks(signed_part, path), path))


def _declared(blocks: list[Block], file: str) -> tuple[DeclaredFile, ...]:
    return tuple(_declaration(block, name, file) for block in blocks if (name := block.name) is not None)


def _declaration(block: Block, name: str, file: str) -> DeclaredFile:
    get = block.fields.get
    return DeclaredFile(
        path=name.removeprefix("./"),
        file=file,
        line=block.line,
        algorithm=get("Algorithm"),
        hash=get("Hash"),
        media_type=get("Content-Type"),
        signature=get("Signature"),
        certificate=get("Certificate"),
    )
