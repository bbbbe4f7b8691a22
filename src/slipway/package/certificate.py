"""Untrusted X.509 certificates: loaded only if every part that is used later can be parsed."""

from __future__ import annotations

import base64
import re
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
_PEM = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n((?:[A-Za-z0-9+/]{64}\r?\n)*[A-Za-z0-9+/]{1,64}={0,2}\r?\n)-----END \1-----\s*"
)


def from_pem_or_der(data: bytes) -> tuple[x509.Certificate, ...]:
    """One of MALFORMED, when the data are something else, or hold anything else beside the certificates."""
    if is_pem(data):
        return from_der(pem_blocks(data, "CERTIFICATE"))
    return from_der([data])


def is_pem(data: bytes) -> bool:
    return b"-----BEGIN " in data


def pem_blocks(data: bytes, *labels: str) -> list[bytes]:
    """The content of each block. Nothing may stand between them, and lines have 64 characters as RFC 7468 has it:
    other readers pass over what they don't know, so that a file could be a script as well.
    """
    blocks, at = [], 0
    data = data.strip()
    while at < len(data):
        found = _PEM.match(data, at)
        if found is None or found[1].decode() not in labels:
            raise ValueError("not PEM, or more than PEM")
        blocks.append(base64.b64decode(b"".join(found[2].split()), validate=True))
        at = found.end()
    return blocks


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
