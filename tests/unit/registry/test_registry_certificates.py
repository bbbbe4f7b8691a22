"""Certificates that are made for a registry, and those that are given."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from slipway.registry.certificates import (
    is_still_good,
    make_authority,
    make_server_certificate,
    why_not_a_pair,
)

NAMES = ["10.0.0.9", "registry.example.com"]


def test_a_certificate_is_kept_while_authority_and_names_are_the_same() -> None:
    authority, other = make_authority("one"), make_authority("two")
    certificate, key = make_server_certificate(authority, NAMES)
    assert is_still_good(certificate.encode(), authority, NAMES)
    assert not is_still_good(certificate.encode(), authority, NAMES[:1])
    assert not is_still_good(certificate.encode(), other, NAMES)
    assert not is_still_good(b"nonsense", authority, NAMES)
    assert not is_still_good(None, authority, NAMES)
    assert why_not_a_pair(certificate.encode(), key) is None
    assert authority.private_key not in repr(authority)


def test_it_is_for_its_names_and_signs_no_others() -> None:
    authority = make_authority("one")
    certificate = x509.load_pem_x509_certificate(make_server_certificate(authority, NAMES)[0].encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == NAMES
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


@pytest.mark.parametrize(
    ("certificate", "key", "why"),
    [("x", "x", "not PEM"), (None, "x", "private key is not PEM"), (None, None, "belongs to another")],
)
def test_what_is_wrong_with_a_pair_is_said(certificate: str | None, key: str | None, why: str) -> None:
    authority = make_authority("one")
    good, _ = make_server_certificate(authority, NAMES)
    _, others = make_server_certificate(authority, NAMES)
    said = why_not_a_pair((certificate or good).encode(), key or others)
    assert said is not None
    assert why in said


CURVE, NO_CURVE = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030177")
VERSION, NO_VERSION = bytes.fromhex("a003020102"), bytes.fromhex("a003020107")


@pytest.mark.parametrize(("known", "unknown"), [(CURVE, NO_CURVE), (VERSION, NO_VERSION)])
def test_a_certificate_of_a_kind_that_nobody_knows_is_said(known: bytes, unknown: bytes) -> None:
    certificate, key = make_server_certificate(make_authority("one"), NAMES)
    content = x509.load_pem_x509_certificate(certificate.encode()).public_bytes(Encoding.DER)
    said = why_not_a_pair(_pem("CERTIFICATE", content.replace(known, unknown, 1)), key)
    assert said == "the certificate is not PEM, or of a kind that is not known"


def test_a_key_of_a_kind_that_nobody_knows_is_said() -> None:
    certificate, key = make_server_certificate(make_authority("one"), NAMES)
    content = base64.b64decode("".join(key.splitlines()[1:-1])).replace(CURVE, NO_CURVE)
    said = why_not_a_pair(certificate.encode(), _pem("PRIVATE KEY", content).decode())
    assert said == "the private key is not PEM without a passphrase, or of a kind that is not known"


def _pem(label: str, content: bytes) -> bytes:
    return b"".join(
        (f"-----BEGIN {label}-----\n".encode(), base64.encodebytes(content), f"-----END {label}-----\n".encode())
    )
