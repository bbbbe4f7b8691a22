"""What is said of certificates before the server starts; how they are served is in tests/functional/test_tls.py."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from slipway.factories import server_tls
from slipway.model.errors import SettingsError
from slipway.settings import load_settings
from tests.unit.kube.pem import CA, CERTIFICATE, ENCRYPTED_KEY, KEY, OTHER_KEY


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "certificate": CERTIFICATE, "key": KEY, "other": OTHER_KEY, "locked": ENCRYPTED_KEY, "ca": CA,
        "both": CERTIFICATE + KEY, "empty": "",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    return {name: tmp_path / name for name in (*texts, "nowhere")}


def read(files: dict[str, Path], **settings: str) -> ssl.SSLContext | None:
    named = {f"tls_{name}": files[value] for name, value in settings.items()}
    return server_tls(load_settings(overrides=named, environment={}))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"certificate": "nowhere"}, "tls_certificate: .*nowhere cannot be read: No such file"),
        ({"certificate": "certificate", "key": "nowhere"}, "tls_key: .*nowhere cannot be read"),
        ({"certificate": "certificate", "key": "other"}, "do not belong together"),
        ({"certificate": "certificate", "key": "locked"}, "without a passphrase"),
        ({"certificate": "certificate"}, "do not belong together"),
        ({"certificate": "empty", "key": "key"}, "do not belong together"),
        ({"key": "key"}, "tls_key needs tls_certificate"),
        ({"client_ca": "ca"}, "tls_client_ca needs tls_certificate"),
        ({"certificate": "both", "client_ca": "key"}, "tls_client_ca .* holds no certificate"),
        ({"certificate": "both", "client_ca": "nowhere"}, "tls_client_ca: .* cannot be read"),
    ],
)
def test_a_file_that_will_not_do_is_named(settings: dict[str, str], said: str, files: dict[str, Path]) -> None:
    with pytest.raises(SettingsError, match=said):
        read(files, **settings)


def test_without_a_certificate_it_is_plain_http(files: dict[str, Path]) -> None:
    assert read(files) is None


def test_client_certificates_are_asked_for_when_their_ca_is_named(files: dict[str, Path]) -> None:
    open_to_all, strict = (
        read(files, certificate="certificate", key="key"),
        read(files, certificate="both", client_ca="ca"),
    )
    assert open_to_all is not None
    assert strict is not None
    assert (open_to_all.verify_mode, strict.verify_mode) == (ssl.CERT_NONE, ssl.CERT_REQUIRED)
    assert open_to_all.minimum_version == ssl.TLSVersion.TLSv1_2
