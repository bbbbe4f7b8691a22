"""Certificates and signatures made on the fly."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7
from cryptography.x509.oid import NameOID

from tests.unit.package.csars import HEAD, META, valid_files, zipped

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
Hash = hashes.SHA256 | hashes.SHA384 | hashes.SHA512


@dataclass(frozen=True)
class Identity:
    certificate: x509.Certificate
    key: Key

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


@cache
def rsa_key(size: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, size)


@cache
def curve_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def identity(
    name: str,
    issuer: Identity | None = None,
    *,
    key: Key | None = None,
    ca: bool = False,
    path_length: int | None = None,
    days: tuple[int, int] = (-1, 30),
    extensions: tuple[x509.ExtensionType, ...] = (),
) -> Identity:
    """A certificate by `issuer`, or by itself."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=path_length), critical=True)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    return Identity(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def cms(
    content: bytes,
    signer: Identity,
    *,
    chain: tuple[Identity, ...] = (),
    algorithm: Hash | None = None,
    pss: bool = False,
    options: tuple[pkcs7.PKCS7Options, ...] = (pkcs7.PKCS7Options.Binary,),
    encoding: Encoding = Encoding.PEM,
) -> bytes:
    algorithm = algorithm or hashes.SHA256()
    builder = pkcs7.PKCS7SignatureBuilder().set_data(content)
    if pss:
        scheme = padding.PSS(padding.MGF1(algorithm), padding.PSS.DIGEST_LENGTH)
        builder = builder.add_signer(signer.certificate, signer.key, algorithm, rsa_padding=scheme)
    else:
        builder = builder.add_signer(signer.certificate, signer.key, algorithm)
    for one in chain:
        builder = builder.add_certificate(one.certificate)
    return builder.sign(encoding, [pkcs7.PKCS7Options.DetachedSignature, *options])


def manifest_of(files: dict[str, bytes], left_out: tuple[str, ...] = ()) -> bytes:
    text = "metadata:\n  vnf_product_name: Sample\n  vnf_provider_id: Company\n"
    for name, content in files.items():
        if name not in left_out:
            text += f"\nSource: {name}\nAlgorithm: SHA-512\nHash: {hashlib.sha512(content).hexdigest()}\n"
    return text.encode()


def with_manifest(extra: dict[str, bytes] | None = None, head: str = "") -> dict[str, bytes]:
    files = {**valid_files(), **(extra or {})}
    files[META] = (HEAD + "ETSI-Entry-Manifest: sample.mf\n" + head).encode()
    return files


def signed_manifest(signer: Identity, *chain: Identity) -> dict[str, bytes]:
    """Option 1: the signature at the manifest's end."""
    files = with_manifest()
    manifest = manifest_of(files)
    return {**files, "sample.mf": manifest + cms(manifest, signer, chain=chain)}


def signed_whole(signer: Identity, *chain: Identity, csar: bytes | None = None) -> dict[str, bytes]:
    """Option 2: the CSAR and its signature in an outer ZIP."""
    inner = zipped(valid_files()) if csar is None else csar
    return {"sample.csar": inner, "sample.cms": cms(inner, signer, chain=chain)}
