"""The certificates of a registry that is given none: an authority, which heals keep, and one for its machine."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from slipway.package.certificate import MALFORMED

AUTHORITY_DAYS, SERVER_DAYS = 3650, 730
LEAST_DAYS = 60  # that a certificate is kept with
Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Authority:
    """PEM. The key is in clear: made for one step."""

    certificate: str
    private_key: str = field(repr=False)


def make_authority(common_name: str) -> Authority:
    key, name = ec.generate_private_key(ec.SECP256R1()), _name(common_name)
    made = (
        _builder(name, name, key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(_pem(made), _key_pem(key))


def make_server_certificate(authority: Authority, names: Sequence[str]) -> tuple[str, str]:
    """Certificate and key, for addresses and host names; the first is what it is called."""
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    issuer_key = serialization.load_pem_private_key(authority.private_key.encode(), None)
    assert isinstance(issuer_key, Key)  # noqa: S101 - we made it
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    made = (
        _builder(_name(names[0]), issuer.subject, key.public_key(), SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName([_general_name(one) for one in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256())
    )
    return _pem(made), _key_pem(key)


def is_still_good(certificate: bytes | None, authority: Authority, names: Sequence[str]) -> bool:
    """Whether a certificate that a machine has is from this authority, for these names, and not soon at its end."""
    if certificate is None:
        return False
    try:
        found = x509.load_pem_x509_certificate(certificate)
        found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate.encode()))
        has = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # noqa: BLE001 - whatever is wrong with it, another one is made
        return False
    left = found.not_valid_after_utc - datetime.now(UTC)
    return set(has) == {_general_name(one) for one in names} and left > timedelta(days=LEAST_DAYS)


def why_not_a_pair(certificate: bytes, private_key: str) -> str | None:
    """What is wrong with a certificate and a key that were given; None when nothing is."""
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    try:
        own = x509.load_pem_x509_certificates(certificate)[0]
        certified = own.public_key().public_bytes(*form)
    except MALFORMED:
        return "the certificate is not PEM, or of a kind that is not known"
    try:
        key = serialization.load_pem_private_key(private_key.encode(), None)
    except MALFORMED:
        return "the private key is not PEM without a passphrase, or of a kind that is not known"
    if certified != key.public_key().public_bytes(*form):
        return "the private key belongs to another certificate"
    if own.not_valid_after_utc <= datetime.now(UTC):
        return f"the certificate has expired on {own.not_valid_after_utc:%Y-%m-%d}"
    return None


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks of machines differ
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: Key) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
