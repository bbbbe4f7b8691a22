"""Whether a signer's certificate leads to one that the operator trusts.

An explicit walk, because the usual verifiers are made for TLS servers and want a host name. A path is: dates in force,
every issuer a CA that may sign certificates and allows the length, every signature SHA-256 or stronger, and no
certificate on it is for other purposes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from slipway.package.certificate import MALFORMED, name_of

T = TypeVar("T", bound=x509.ExtensionType)

_LONGEST = 8
_STRONG = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
_UNDERSTOOD = (
    x509.BasicConstraints,
    x509.KeyUsage,
    x509.ExtendedKeyUsage,
    x509.SubjectKeyIdentifier,
    x509.AuthorityKeyIdentifier,
    x509.CertificatePolicies,
    x509.SubjectAlternativeName,
)
_SIGNS_DOCUMENTS = frozenset(
    {ExtendedKeyUsageOID.CODE_SIGNING, ExtendedKeyUsageOID.EMAIL_PROTECTION, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
)


def reason_not_trusted(
    signer: x509.Certificate, others: Sequence[x509.Certificate], anchors: Sequence[x509.Certificate]
) -> str | None:
    """None when a path leads from the signer to an anchor; else the reason, for a person."""
    try:
        return _fault_of_signer(signer) or _fault_of_paths(signer, others, anchors)
    except MALFORMED as error:
        return f"a certificate is malformed ({type(error).__name__})"


def _fault_of_signer(signer: x509.Certificate) -> str | None:
    if fault := _fault(signer):
        return fault
    usage = _extension(signer, x509.KeyUsage)
    if usage is not None and not (usage.digital_signature or usage.content_commitment):
        return f"{name_of(signer)} may not sign documents (key usage)"
    return _fault_of_purpose(signer)


def _fault_of_purpose(certificate: x509.Certificate) -> str | None:
    """A CA issues for many purposes: who has a certificate for a web server must not sign packages with it."""
    purposes = _extension(certificate, x509.ExtendedKeyUsage)
    if purposes is not None and _SIGNS_DOCUMENTS.isdisjoint(purposes):
        return (
            f"{name_of(certificate)} may not sign packages: its extended key usage has none of "
            "codeSigning, emailProtection, anyExtendedKeyUsage"
        )
    return None


def _fault_of_paths(
    signer: x509.Certificate, others: Sequence[x509.Certificate], anchors: Sequence[x509.Certificate]
) -> str | None:
    """Breadth first; `below` counts the intermediate CAs under the one looked at."""
    faults: list[str] = []
    seen = {signer}
    level = [signer]
    for below in range(_LONGEST):
        if any(one in anchors for one in level):
            return None
        above: list[x509.Certificate] = []
        for child in level:
            for issuer in _issuers(child, [*anchors, *others]):
                fault = _fault(issuer) or _fault_of_ca(issuer, below)
                if fault:
                    faults.append(fault)
                elif issuer not in seen:
                    seen.add(issuer)
                    above.append(issuer)
        level = above
    return faults[0] if faults else f"no trusted certificate has issued {name_of(signer)}"


def _issuers(child: x509.Certificate, candidates: Sequence[x509.Certificate]) -> Iterator[x509.Certificate]:
    for candidate in candidates:
        if candidate.subject == child.issuer and isinstance(child.signature_hash_algorithm, _STRONG):
            try:
                child.verify_directly_issued_by(candidate)
            except (InvalidSignature, *MALFORMED):
                continue
            yield candidate


def _fault(certificate: x509.Certificate) -> str | None:
    now = datetime.now(UTC)
    if now < certificate.not_valid_before_utc:
        return f"{name_of(certificate)} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d}"
    if now > certificate.not_valid_after_utc:
        return f"{name_of(certificate)} expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    for extension in certificate.extensions:
        if extension.critical and not isinstance(extension.value, _UNDERSTOOD):
            return f"{name_of(certificate)} has a critical extension that is not understood"
    return None


def _fault_of_ca(certificate: x509.Certificate, below: int) -> str | None:
    constraints = _extension(certificate, x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        return f"{name_of(certificate)} is not a certificate authority"
    if constraints.path_length is not None and constraints.path_length < below:
        return f"{name_of(certificate)} does not allow a chain this long"
    usage = _extension(certificate, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        return f"{name_of(certificate)} may not sign certificates (key usage)"
    return _fault_of_purpose(certificate)


def _extension(certificate: x509.Certificate, kind: type[T]) -> T | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
