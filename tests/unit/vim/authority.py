"""A certificate authority made for one run: for servers on a loopback address, and for those who log in to them."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    def __init__(self, name: str = "authority of a test") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        built = _builder(name, self._key.public_key(), self._name)
        self._certificate = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(
            self._key, hashes.SHA256()
        )
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode()

    def issued(self, name: str, *hosts: str) -> tuple[str, str]:
        """A certificate and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, key.public_key(), self._name)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return certificate.public_bytes(Encoding.PEM).decode(), private.decode()

    def server_context(self, *hosts: str) -> ssl.SSLContext:
        """For a server of these names; clients may show a certificate of the same authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write("".join(self.issued("server", *(hosts or ("127.0.0.1",)))))
            file.flush()
            context.load_cert_chain(file.name)
        context.load_verify_locations(cadata=self.pem)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


def _builder(name: str, key: ec.EllipticCurvePublicKey, issuer: x509.Name) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
