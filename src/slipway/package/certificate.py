"""X.509 certificates from strangers: loaded only if every part that is looked at later can be read."""

from __future__ import annotations

from collections.abc import Iterable

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.utils import CryptographyDeprecationWarning

from slipway.package.member_name import shown

# What the ASN.1 and X.509 parsers raise on malformed input; the last one where warnings are errors.
MALFORMED = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    CryptographyDeprecationWarning,
)
MOST_CERTIFICATES = 16


def from_pem_or_der(data: bytes) -> tuple[x509.Certificate, ...]:
    """One of MALFORMED, when the data are something else."""
    if b"-----BEGIN CERTIFICATE-----" in data:
        return _readable(x509.load_pem_x509_certificates(data))
    return from_der([data])


def from_der(encoded: Iterable[bytes]) -> tuple[x509.Certificate, ...]:
    return _readable([x509.load_der_x509_certificate(one) for one in encoded])


def _readable(certificates: list[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """The library parses lazily; here everything is parsed once, so that nothing can break later."""
    if len(certificates) > MOST_CERTIFICATES:
        raise ValueError("too many certificates")
    for one in certificates:
        if one.serial_number <= 0 or one.not_valid_before_utc > one.not_valid_after_utc:
            raise ValueError("serial number or dates")
        _ = one.issuer.public_bytes(), one.public_key(), list(one.extensions), one.signature_hash_algorithm
        name_of(one)
    return tuple(certificates)


def name_of(certificate: x509.Certificate) -> str:
    return shown(certificate.subject.rfc4514_string()) or f"serial {certificate.serial_number:x}"
