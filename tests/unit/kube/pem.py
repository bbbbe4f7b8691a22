"""A CA whose hash is known, and keys made anew for each run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

CA = """\
-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIUYG/a2y4b7dP2sHBcNQi2EL0xkREwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKa3ViZXJuZXRlczAgFw0yNjExMTYwNDU0MDhaGA8yMTI2MTAy
MzA0NTQwOFowFTETMBEGA1UEAwwKa3ViZXJuZXRlczBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABBw1lKtq6MeXReQBtNkasgeEg8tMvlP+60TSs/r5FNPxkLFJmER6
CeQRyhtHI/VyMkgumFITHz5p9g/UVxOFwE6jUzBRMB0GA1UdDgQWBBSCQE3zJmrI
3pI8vmaeJFreHtJ7mzAfBgNVHSMEGDAWgBSCQE3zJmrI3pI8vmaeJFreHtJ7mzAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIAPKQf9t0jeV8UK/xBj1
W8h+u1mwd9qoUxON1DCXZeNHAiEAi24b6VLqKsNGqg7mLbu4eJYP+HP+9ueewOWX
ryR+5iU=
-----END CERTIFICATE-----
"""
CA_HASH = "d02624bdf6b48e43ec39659aec465a5c0c4106e9b05e4c144ba33b9b4edf7600"

_key = ec.generate_private_key(ec.SECP256R1())


def _text(key: ec.EllipticCurvePrivateKey, encryption: KeySerializationEncryption) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def _certificate(key: ec.EllipticCurvePrivateKey) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes-admin")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    dated = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return dated.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


KEY = _text(_key, NoEncryption())
ENCRYPTED_KEY = _text(_key, BestAvailableEncryption(b"locked"))
OTHER_KEY = _text(ec.generate_private_key(ec.SECP256R1()), NoEncryption())
CERTIFICATE = _certificate(_key)

# Encrypted by PKCS#8. It says that its passphrase goes through 8,388,607 rounds, which take some ten seconds.
SLOW_KEY = """\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHtMFgGCSqGSIb3DQEFDTBLMCoGCSqGSIb3DQEFDDAdBAgiaSz1QfKe0QIDf///
MAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBDxUHR6zF4aRjHXmXwnn0TXBIGQ
LgCAJ2SaI0s7U+xzYMq2KHmi+qgziprB6btNTw38opj9umCHCHFH03jf1AfsSUgf
X6qyUmDIanABdFoWnImS5BP1nuJvy43sK6LbFQ/P5oAy/lq65pT6QIpedqLPIdO1
9rW1TTRQtWjJu0hrdGIK3ClXiKvyoIhTDg86jGSZw+ppLranW+enf5cVKurZTAF+
-----END ENCRYPTED PRIVATE KEY-----
"""
