"""Certificates that are made for a registry, and those that are given."""

from __future__ import annotations

import pytest
from cryptography import x509

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
