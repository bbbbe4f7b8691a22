"""Signatures of packages: who signed one, and whether the operator's policy accepts it.

SOL004 option 1 signs the manifest, which lists the digests of all other files; single files may have signatures of
their own. Option 2 signs the whole CSAR inside an outer ZIP. A signature that is there and does not match is refused
under every policy.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from cryptography import x509

from slipway.model.errors import PackageError
from slipway.package.archive import Archive
from slipway.package.certificate import MALFORMED, from_pem_or_der, name_of
from slipway.package.certificate_chain import reason_not_trusted
from slipway.package.digests import Digests
from slipway.package.meta import DeclaredFile, Manifest, Meta

if TYPE_CHECKING:
    from slipway.package.cms import ContentDigests

CERTIFICATE_SUFFIXES = (".cert", ".crt", ".pem", ".cer")


class UnsignedPolicy(StrEnum):
    """What happens to a package without a trusted signature."""

    ACCEPT = "accept"
    REFUSE = "refuse"


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """`trusted` is False when the signature matches but no trust anchors are configured."""

    signer: str
    trusted: bool
    file: str


class Verifier:
    """The operator's trust, applied to the signatures of one package."""

    def __init__(self, policy: UnsignedPolicy, anchors: Sequence[x509.Certificate]) -> None:
        self.policy, self.anchors = policy, tuple(anchors)

    def verify(
        self, data: bytes, content: ContentDigests, certificates: Sequence[x509.Certificate], file: str
    ) -> Signature:
        """The signature in `data` over `content`, or PackageError."""
        # Few packages are signed, and what reads signatures takes a while to load.
        from slipway.package.cms import check_signature, find_signer, parse_cms

        cms = parse_cms(data, file)
        others = [*cms.certificates, *certificates]
        signer = find_signer(cms, [*others, *self.anchors])
        if signer is None:
            raise PackageError(
                "The signer's certificate is missing.",
                file=file,
                cure="put it into the signature, or into the file that ETSI-Entry-Certificate names.",
            )
        check_signature(cms, signer, content, file)
        if self.anchors:
            if reason := reason_not_trusted(signer, others, self.anchors):
                raise PackageError(
                    f"The signer is not trusted: {reason}.",
                    file=file,
                    cure="add the provider's CA certificate to the trusted ones, or have the package signed again.",
                )
        elif self.policy is UnsignedPolicy.REFUSE:
            raise PackageError(
                f"The package is signed by {name_of(signer)}, but no trusted certificates are configured.",
                file=file,
                cure="configure the provider's CA certificate as trusted.",
            )
        return Signature(signer=name_of(signer), trusted=bool(self.anchors), file=file)

    def accept_unsigned(self, file: str) -> None:
        if self.policy is UnsignedPolicy.REFUSE:
            raise PackageError("The package is not signed.", file=file, cure="sign it (SOL004 option 1 or 2).")


def verify_outer(outer: Archive, csar: str, cms: str, digests: Digests, verifier: Verifier) -> Signature:
    """Option 2: the signature of the CSAR that lies in the outer ZIP."""
    certificates: list[x509.Certificate] = []
    for name in outer.names():
        if name.lower().endswith(CERTIFICATE_SUFFIXES):
            certificates += load_certificates(outer, name)
        elif name not in (csar, cms):
            raise PackageError(
                "The file is beside a signed CSAR, but nothing signs it.",
                file=name,
                cure="leave only the CSAR, its signature and certificates in the ZIP.",
            )
    data = outer.read(cms, outer.limits.signature_bytes)
    return verifier.verify(data, _digests_of(csar, digests), certificates, cms)


def verify_manifest(archive: Archive, meta: Meta, verifier: Verifier) -> Signature | None:
    """Option 1: the signature of the manifest, where there is one. Then the manifest must cover every file."""
    if meta.manifest is None:
        return None
    found = _manifest_signature(archive, meta.manifest)
    if found is None:
        return None
    file, data = found
    certificates = load_certificates(archive, meta.certificate) if meta.certificate else ()
    signature = verifier.verify(data, _digests_of_text(meta.manifest.signed_part), certificates, file)
    known = _covered(meta.manifest) | _exempt(archive, meta)
    for name in archive.names():
        if name not in known:
            raise PackageError(
                f"The manifest is signed, but has no digest of {name}.",
                file=meta.manifest.path,
                cure="list every file with Source, Algorithm and Hash, then sign again.",
            )
    return signature


def verify_artifacts(archive: Archive, meta: Meta, digests: Digests, verifier: Verifier) -> None:
    """The signatures of single files."""
    signed = [one for one in meta.all_declared() if one.signature is not None]
    if len(signed) > archive.limits.signatures:
        raise PackageError(
            f"The package signs more than {archive.limits.signatures} files one by one.",
            file=signed[0].file,
            line=signed[0].line,
            cure="sign the manifest, which covers all files at once.",
        )
    for one in signed:
        data = archive.read(_present(archive, one.signature or "", one), archive.limits.signature_bytes)
        named = one.certificate or meta.certificate
        certificates = load_certificates(archive, _present(archive, named, one)) if named else ()
        verifier.verify(data, _digests_of(one.path, digests), certificates, one.signature or "")


def load_certificates(archive: Archive, name: str) -> tuple[x509.Certificate, ...]:
    data = archive.read(name, archive.limits.signature_bytes)
    try:
        return from_pem_or_der(data)
    except MALFORMED:
        raise PackageError(
            "The file is not a certificate, or holds more than certificates.",
            file=name,
            cure="leave only X.509 certificates in it, as PEM with lines of 64 characters or DER"
            " (openssl x509 -in OLD -out NEW).",
        ) from None


def _manifest_signature(archive: Archive, manifest: Manifest) -> tuple[str, bytes] | None:
    if manifest.signature is not None:
        return manifest.path, manifest.signature
    stem = manifest.path.removesuffix(".mf")
    for name in (f"{manifest.path}.cms", f"{manifest.path}.p7s", f"{stem}.cms", f"{stem}.p7s"):
        if name in archive:
            return name, archive.read(name, archive.limits.signature_bytes)
    return None


def _digests_of(name: str, digests: Digests) -> ContentDigests:
    return lambda algorithm: [bytes.fromhex(digests.of(name, algorithm))]


def _digests_of_text(text: bytes) -> ContentDigests:
    """As written, or with the CRLF line ends that CMS tools put in unless told that the content is binary."""
    forms = (text, re.sub(rb"\r*\n", b"\r\n", text))
    return lambda algorithm: [hashlib.new(algorithm.replace("-", ""), form).digest() for form in forms]


def signature_files(archive: Archive, meta: Meta) -> set[str]:
    """The manifest, signatures and certificates: files about the package rather than of the VNF."""
    named = {name for one in meta.all_declared() for name in (one.signature, one.certificate) if name}
    return named | _exempt(archive, meta)


def unsigned_files(archive: Archive, meta: Meta) -> frozenset[str]:
    """Files that could be replaced unnoticed though the manifest is signed: no part of the VNF may be there."""
    return frozenset(_exempt(archive, meta) - _covered(meta.manifest)) if meta.manifest else frozenset()


def _exempt(archive: Archive, meta: Meta) -> set[str]:
    """The only files that need no digest: the manifest can't list itself, nor what is made after it.

    Their names are fixed by SOL004, or stand in a TOSCA.meta of which the manifest has a digest.
    """
    if meta.manifest is None:
        return {meta.certificate} if meta.certificate else set()
    found = _manifest_signature(archive, meta.manifest)
    beside = found[0] if found else None
    return {name for name in (meta.manifest.path, beside, meta.certificate) if name}


def _covered(manifest: Manifest) -> set[str]:
    return {one.path for one in manifest.declared if one.hash is not None}


def _present(archive: Archive, name: str, declared: DeclaredFile) -> str:
    if name not in archive:
        raise PackageError(
            f"The signature or certificate {name!r} is not in the package.",
            file=declared.file,
            line=declared.line,
            cure="add the file, or remove the line.",
        )
    return name
