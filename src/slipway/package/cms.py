"""Detached CMS signatures (RFC 5652): taken apart, and checked against the digest of what they sign.

Whether the signer is trusted is decided in certificate_chain.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from asn1crypto import cms
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from slipway.model.errors import PackageError
from slipway.package.certificate import MALFORMED, MOST_CERTIFICATES, from_der, is_pem, pem_blocks
from slipway.package.digests import algorithm_named

_HASHES: dict[str, hashes.HashAlgorithm] = {
    "SHA-256": hashes.SHA256(),
    "SHA-384": hashes.SHA384(),
    "SHA-512": hashes.SHA512(),
}
_SMALLEST_RSA, _SMALLEST_CURVE = 2048, 256

# The digests, by algorithm, that the signed content may have (more than one where line ends may differ).
ContentDigests = Callable[[str], Sequence[bytes]]


@dataclass(frozen=True)
class Cms:
    """The parts of a signature with one signer."""

    algorithm: str  # digest, as digests.py names it
    scheme: str  # rsassa_pkcs1v15, rsassa_pss, ecdsa
    salt_length: int
    signature: bytes
    attributes: bytes | None  # the signed attributes as they were hashed
    content_digest: bytes | None  # the digest that the signed attributes give
    issuer_and_serial: tuple[bytes, int] | None
    key_id: bytes | None
    certificates: tuple[x509.Certificate, ...]


def parse_cms(data: bytes, file: str) -> Cms:
    """Take apart a PEM or DER signature."""
    try:
        return _parse(data, file)
    except MALFORMED as error:
        raise _unusable(file, f"The signature can't be read ({type(error).__name__}).") from None


def _unusable(file: str, what: str) -> PackageError:
    return PackageError(what, file=file, cure="sign again: detached CMS, one signer, SHA-256 or stronger.")


def _parse(data: bytes, file: str) -> Cms:
    if is_pem(data):
        (data,) = pem_blocks(data, "CMS", "PKCS7")
    info = cms.ContentInfo.load(data, strict=True)
    if info["content_type"].native != "signed_data":
        raise _unusable(file, "The file is CMS, but not a signature.")
    signed = info["content"]
    if signed["encap_content_info"]["content"].native is not None:
        raise _unusable(file, "The signature carries its own copy of the content.")
    if len(signed["signer_infos"]) != 1:
        raise _unusable(file, "The signature does not have exactly one signer.")
    signer = signed["signer_infos"][0]
    algorithm = algorithm_named(signer["digest_algorithm"]["algorithm"].native)
    if algorithm is None:
        raise _unusable(file, f"The signature uses {signer['digest_algorithm']['algorithm'].native} digests.")
    scheme, salt_length = _scheme(signer["signature_algorithm"], algorithm, file)
    attributes, content_digest = _attributes(signer["signed_attrs"], signed, file)
    issuer_and_serial, key_id = _signer_id(signer["sid"])
    return Cms(
        algorithm=algorithm,
        scheme=scheme,
        salt_length=salt_length,
        signature=signer["signature"].native,
        attributes=attributes,
        content_digest=content_digest,
        issuer_and_serial=issuer_and_serial,
        key_id=key_id,
        certificates=_certificates(signed["certificates"], file),
    )


def _scheme(found: Any, algorithm: str, file: str) -> tuple[str, int]:
    scheme = str(found.signature_algo)
    if scheme not in ("rsassa_pkcs1v15", "rsassa_pss", "ecdsa"):
        raise _unusable(file, f"Signatures of kind {scheme} are not known.")
    bare = found["algorithm"].native in ("rsassa_pkcs1v15", "ecdsa")
    if not bare and algorithm_named(found.hash_algo) != algorithm:
        raise _unusable(file, f"The signature mixes {found.hash_algo} with {algorithm}.")
    if scheme != "rsassa_pss":
        return scheme, 0
    mask = found["parameters"]["mask_gen_algorithm"]["parameters"]["algorithm"].native
    if algorithm_named(mask) != algorithm:
        raise _unusable(file, f"The signature mixes {mask} with {algorithm}.")
    return scheme, int(found["parameters"]["salt_length"].native)


def _attributes(found: Any, signed: Any, file: str) -> tuple[bytes | None, bytes | None]:
    if not found:
        return None, None
    values: dict[str, list[Any]] = {}
    for attribute in found:
        if attribute["type"].native in values:
            raise _unusable(file, "The signature has a signed attribute twice.")
        values[attribute["type"].native] = list(attribute["values"])
    digest, content_type = values.get("message_digest", []), values.get("content_type", [])
    if len(digest) != 1 or len(content_type) != 1:
        raise _unusable(file, "The signature's signed attributes lack the digest or the content type.")
    if content_type[0].native != signed["encap_content_info"]["content_type"].native:
        raise _unusable(file, "The signature's two content types differ.")
    return found.untag().dump(), digest[0].native


def _signer_id(found: Any) -> tuple[tuple[bytes, int] | None, bytes | None]:
    if found.name == "subject_key_identifier":
        return None, found.chosen.native
    return (found.chosen["issuer"].dump(), found.chosen["serial_number"].native), None


def _certificates(found: Any, file: str) -> tuple[x509.Certificate, ...]:
    if len(found) > MOST_CERTIFICATES:
        raise _unusable(file, "The signature carries too many certificates.")
    return from_der(one.chosen.dump() for one in found if one.name == "certificate")


def find_signer(signature: Cms, certificates: Iterable[x509.Certificate]) -> x509.Certificate | None:
    """The certificate that the signature names."""
    for certificate in certificates:
        if signature.issuer_and_serial is not None:
            name = (certificate.issuer.public_bytes(), certificate.serial_number)
            if name == signature.issuer_and_serial:
                return certificate
        elif signature.key_id == _key_id(certificate):
            return certificate
    return None


def _key_id(certificate: x509.Certificate) -> bytes | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def check_signature(signature: Cms, signer: x509.Certificate, content: ContentDigests, file: str) -> None:
    """PackageError unless the signer's key made this signature over this content."""
    digests = content(signature.algorithm)
    try:
        if signature.attributes is None:
            _verify_any(signature, signer, digests)
        elif signature.content_digest not in digests:
            raise InvalidSignature
        else:
            digest = hashes.Hash(_HASHES[signature.algorithm])
            digest.update(signature.attributes)
            _verify(signature, signer, digest.finalize())
    except InvalidSignature:
        raise PackageError(
            "The signature does not match: the content was changed after it was signed, or another key signed it.",
            file=file,
            cure="get the package from its provider again, or sign it again.",
        ) from None
    except MALFORMED as error:
        raise _unusable(file, f"The signature can't be checked ({type(error).__name__}).") from None


def _verify_any(signature: Cms, signer: x509.Certificate, digests: Sequence[bytes]) -> None:
    for digest in digests[:-1]:
        try:
            return _verify(signature, signer, digest)
        except InvalidSignature:
            continue
    return _verify(signature, signer, digests[-1])


def _verify(signature: Cms, signer: x509.Certificate, digest: bytes) -> None:
    key = signer.public_key()
    prehashed = Prehashed(_HASHES[signature.algorithm])
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _SMALLEST_RSA and signature.scheme != "ecdsa":
        key.verify(signature.signature, digest, _padding(signature), prehashed)
    elif isinstance(key, ec.EllipticCurvePublicKey) and key.key_size >= _SMALLEST_CURVE and signature.scheme == "ecdsa":
        key.verify(signature.signature, digest, ec.ECDSA(prehashed))
    else:
        raise ValueError("the key is too short or of another kind than the signature")


def _padding(signature: Cms) -> padding.AsymmetricPadding:
    if signature.scheme == "rsassa_pkcs1v15":
        return padding.PKCS1v15()
    return padding.PSS(padding.MGF1(_HASHES[signature.algorithm]), signature.salt_length)
