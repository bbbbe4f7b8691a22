"""Signatures: who signed, whether it matches, and what the policy makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from asn1crypto import cms as asn1_cms
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7

from slipway.model.errors import PackageError
from slipway.package.reader import open_member, read_package
from slipway.package.signature import Signature, UnsignedPolicy
from tests.unit.package.certificates import (
    Hash,
    Identity,
    cms,
    curve_key,
    identity,
    manifest_of,
    rsa_key,
    signed_manifest,
    signed_whole,
    with_manifest,
)
from tests.unit.package.csars import (
    HEAD,
    META,
    SCRIPT,
    Raw,
    block,
    raw_zip,
    valid_files,
    written,
    zipped,
)

REFUSE, ACCEPT = UnsignedPolicy.REFUSE, UnsignedPolicy.ACCEPT


@pytest.fixture(scope="module")
def root() -> Identity:
    return identity("Root", ca=True)


@pytest.fixture(scope="module")
def signer(root: Identity) -> Identity:
    return identity("Provider", root)


def read_signed(
    files: Mapping[str, bytes] | bytes, folder: Path, *trust: Identity, policy: UnsignedPolicy = REFUSE
) -> Signature | None:
    anchors = [one.certificate for one in trust]
    return read_package(written(files, folder), policy, anchors).signature


def refusal(
    files: Mapping[str, bytes] | bytes, folder: Path, *trust: Identity, policy: UnsignedPolicy = ACCEPT
) -> PackageError:
    with pytest.raises(PackageError) as refused:
        read_signed(files, folder, *trust, policy=policy)
    return refused.value


def test_a_signed_manifest_names_its_trusted_signer(root: Identity, signer: Identity, tmp_path: Path) -> None:
    signature = read_signed(signed_manifest(signer), tmp_path, root)
    assert signature == Signature(signer="CN=Provider", trusted=True, file="sample.mf")


def test_a_signed_whole_package_names_its_trusted_signer(root: Identity, signer: Identity, tmp_path: Path) -> None:
    signature = read_signed(signed_whole(signer), tmp_path, root)
    assert signature == Signature(signer="CN=Provider", trusted=True, file="sample.cms")


@pytest.mark.parametrize("stored", [True, False])
def test_files_of_a_wrapped_package_can_be_opened(
    stored: bool, root: Identity, signer: Identity, tmp_path: Path
) -> None:
    files = signed_whole(signer)
    data = raw_zip([Raw(name.encode(), content) for name, content in files.items()]) if stored else zipped(files)
    package = read_package(written(data, tmp_path), REFUSE, [root.certificate])
    with open_member(package.path, SCRIPT) as script:
        assert script.read() == valid_files()[SCRIPT]
    assert next(iter(package.vnfd_files())) == "Definitions/vnfd.yaml"


@pytest.mark.parametrize("algorithm", [hashes.SHA256(), hashes.SHA384(), hashes.SHA512()], ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["rsa", "pss", "ecdsa"])
def test_signature_schemes(kind: str, algorithm: Hash, root: Identity, tmp_path: Path) -> None:
    signer = identity("Provider", root, key=curve_key() if kind == "ecdsa" else rsa_key())
    inner = zipped(valid_files())
    signature = cms(inner, signer, algorithm=algorithm, pss=kind == "pss", encoding=Encoding.DER)
    assert read_signed({"a.csar": inner, "a.cms": signature}, tmp_path, root) is not None


def test_a_manifest_signed_in_text_mode_is_accepted(root: Identity, signer: Identity, tmp_path: Path) -> None:
    files = with_manifest()
    manifest = manifest_of(files)
    files["sample.mf"] = manifest + cms(manifest, signer, options=())
    assert read_signed(files, tmp_path, root) is not None


def test_a_signature_beside_the_manifest_is_found(root: Identity, signer: Identity, tmp_path: Path) -> None:
    files = with_manifest()
    files["sample.mf"] = manifest_of(files)
    files["sample.mf.cms"] = cms(files["sample.mf"], signer)
    signature = read_signed(files, tmp_path, root)
    assert signature is not None
    assert signature.file == "sample.mf.cms"


def test_an_intermediate_certificate_may_come_with_the_signature(root: Identity, tmp_path: Path) -> None:
    middle = identity("Middle", root, ca=True, path_length=0)
    files = signed_manifest(identity("Provider", middle), middle)
    assert read_signed(files, tmp_path, root) is not None


def test_an_intermediate_certificate_may_be_a_file(root: Identity, tmp_path: Path) -> None:
    middle = identity("Middle", root, ca=True)
    files = with_manifest({"chain.cert": middle.pem}, "ETSI-Entry-Certificate: chain.cert\n")
    manifest = manifest_of(files, left_out=("chain.cert",))
    files["sample.mf"] = manifest + cms(manifest, identity("Provider", middle))
    assert read_signed(files, tmp_path, root) is not None


def test_a_trusted_certificate_may_be_the_signers_own(tmp_path: Path) -> None:
    alone = identity("Alone")
    assert read_signed(signed_whole(alone), tmp_path, alone) is not None


@pytest.mark.parametrize("wrap", [signed_manifest, signed_whole])
def test_an_unknown_signer_is_refused_under_every_policy(wrap: object, signer: Identity, tmp_path: Path) -> None:
    assert callable(wrap)
    stranger = identity("Root", ca=True)
    for policy in UnsignedPolicy:
        assert "not trusted" in refusal(wrap(signer), tmp_path, stranger, policy=policy).what


def test_without_trust_anchors_a_matching_signature_is_told_but_not_trusted(signer: Identity, tmp_path: Path) -> None:
    signature = read_signed(signed_manifest(signer), tmp_path, policy=ACCEPT)
    assert signature == Signature(signer="CN=Provider", trusted=False, file="sample.mf")


def test_without_trust_anchors_the_strict_policy_refuses(signer: Identity, tmp_path: Path) -> None:
    assert "no trusted certificates" in refusal(signed_manifest(signer), tmp_path, policy=REFUSE).what


def test_an_unsigned_package_goes_by_the_policy(root: Identity, tmp_path: Path) -> None:
    assert read_signed(valid_files(), tmp_path, root, policy=ACCEPT) is None
    assert "not signed" in refusal(valid_files(), tmp_path, root, policy=REFUSE).what


def test_a_changed_manifest_is_refused(signer: Identity, root: Identity, tmp_path: Path) -> None:
    files = signed_manifest(signer)
    files["sample.mf"] = files["sample.mf"].replace(b"Company", b"Someone")
    for trust in ((), (root,)):
        error = refusal(files, tmp_path, *trust)
        assert "changed after it was signed" in error.what
        assert error.file == "sample.mf"


def test_a_changed_file_is_refused(signer: Identity, root: Identity, tmp_path: Path) -> None:
    files = signed_manifest(signer)
    files[SCRIPT] += b"rm -rf /\n"
    error = refusal(files, tmp_path, root)
    assert "does not match" in error.what
    assert error.file == "sample.mf"
    assert error.line


def test_a_file_that_the_signed_manifest_does_not_list_is_refused(
    signer: Identity, root: Identity, tmp_path: Path
) -> None:
    files = {**signed_manifest(signer), "Scripts/added.sh": b"evil"}
    assert "no digest of Scripts/added.sh" in refusal(files, tmp_path, root).what


def test_a_changed_whole_package_is_refused(signer: Identity, root: Identity, tmp_path: Path) -> None:
    files = signed_whole(signer)
    files["sample.csar"] = zipped({**valid_files(), "Scripts/added.sh": b"evil"})
    assert "changed after it was signed" in refusal(files, tmp_path, root).what


def test_a_signature_by_another_key_is_refused(signer: Identity, root: Identity, tmp_path: Path) -> None:
    impostor = Identity(signer.certificate, identity("Impostor").key)
    assert "changed after it was signed" in refusal(signed_whole(impostor), tmp_path, root).what


@pytest.mark.parametrize(
    ("days", "reason"), [((-30, -1), "expired"), ((1, 30), "not valid before")], ids=["expired", "early"]
)
def test_a_certificate_out_of_its_dates_is_refused(
    days: tuple[int, int], reason: str, root: Identity, tmp_path: Path
) -> None:
    assert reason in refusal(signed_whole(identity("Provider", root, days=days)), tmp_path, root).what


def test_a_signer_may_not_issue_certificates(root: Identity, signer: Identity, tmp_path: Path) -> None:
    files = signed_whole(identity("Below", signer), signer)
    assert "not a certificate authority" in refusal(files, tmp_path, root).what


def test_a_chain_longer_than_allowed_is_refused(tmp_path: Path) -> None:
    short = identity("Root", ca=True, path_length=0)
    middle = identity("Middle", short, ca=True)
    files = signed_whole(identity("Provider", middle), middle)
    assert "chain this long" in refusal(files, tmp_path, short).what


def test_an_expired_trust_anchor_is_refused(tmp_path: Path) -> None:
    old = identity("Root", ca=True, days=(-30, -1))
    assert "expired" in refusal(signed_whole(identity("Provider", old)), tmp_path, old).what


def test_a_short_key_is_refused(root: Identity, tmp_path: Path) -> None:
    weak = identity("Provider", root, key=rsa_key(1024))
    assert "can't be checked" in refusal(signed_whole(weak), tmp_path, root).what


def test_a_signature_that_is_none_is_refused(root: Identity, tmp_path: Path) -> None:
    for garbage in (b"", b"garbage", b"\x30\x80" * 2000, b"-----BEGIN CMS-----\nAAAA\n-----END CMS-----\n"):
        files = {"a.csar": zipped(valid_files()), "a.cms": garbage}
        assert "can't be read" in refusal(files, tmp_path, root).what


def test_a_weak_digest_in_the_signature_is_refused(root: Identity, signer: Identity, tmp_path: Path) -> None:
    inner = zipped(valid_files())
    info = asn1_cms.ContentInfo.load(cms(inner, signer, encoding=Encoding.DER))
    info["content"]["signer_infos"][0]["digest_algorithm"] = {"algorithm": "sha1"}
    assert "sha1" in refusal({"a.csar": inner, "a.cms": info.dump(force=True)}, tmp_path, root).what


def test_a_signature_with_its_own_content_is_refused(root: Identity, signer: Identity, tmp_path: Path) -> None:
    inner = zipped(valid_files())
    builder = pkcs7.PKCS7SignatureBuilder().set_data(inner)
    attached = builder.add_signer(signer.certificate, signer.key, hashes.SHA256()).sign(Encoding.DER, [])
    assert "own copy" in refusal({"a.csar": inner, "a.cms": attached}, tmp_path, root).what


def test_a_package_in_a_package_in_a_package_is_refused(root: Identity, signer: Identity, tmp_path: Path) -> None:
    once = zipped(signed_whole(signer))
    assert "another CSAR" in refusal(signed_whole(signer, csar=once), tmp_path, root).what


def _with_signed_script(signer: Identity, content: bytes) -> dict[str, bytes]:
    files = valid_files()
    files["Scripts/install.cms"] = cms(content, signer)
    files[META] = (
        HEAD + block(SCRIPT, files[SCRIPT]) + "Signature: Scripts/install.cms\nCertificate: Scripts/install.cert\n"
    ).encode()
    files["Scripts/install.cert"] = signer.pem
    return files


def test_the_signature_of_a_single_file_is_checked(root: Identity, signer: Identity, tmp_path: Path) -> None:
    script = valid_files()[SCRIPT]
    package = read_package(written(_with_signed_script(signer, script), tmp_path), ACCEPT, [root.certificate])
    assert [one.artifact_path for one in package.artifacts] == [SCRIPT]
    error = refusal(_with_signed_script(signer, script + b"!"), tmp_path, root)
    assert error.file == "Scripts/install.cms"


def test_sequences_of_certificates_are_bounded(root: Identity, signer: Identity, tmp_path: Path) -> None:
    many: Sequence[Identity] = [identity(f"Number {number}", root) for number in range(20)]
    assert "too many certificates" in refusal(signed_whole(signer, *many), tmp_path, root).what
