"""A file with a secret in it that others can read stops the start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slipway.factories import identity_providers, nfvo_client, notification_client, server_tls
from slipway.model.errors import SettingsError
from slipway.outgoing.guard import Guard
from slipway.serving import token_of
from slipway.settings import Settings
from slipway.store.keyring import Keyring
from tests.unit.outgoing.certificates import Authority

SECRET = "a-secret-of-enough-characters"


@pytest.fixture(scope="module")
def certificates() -> tuple[str, str]:
    pair = Authority().vouch_for("localhost")
    return pair.certificate, pair.key


USES: dict[str, Callable[[Path, Path], Any]] = {
    "token_file": lambda secret, certificate: token_of(secret),
    "keystone_password_file": lambda secret, certificate: identity_providers(
        Settings(keystone_url="https://k.example", keystone_user="me", keystone_password_file=secret)
    ),
    "nfvo_password_file": lambda secret, certificate: nfvo_client(
        Settings(nfvo_auth="basic", nfvo_user="me", nfvo_password_file=secret), "https://n.example"
    ),
    "nfvo_client_secret_file": lambda secret, certificate: nfvo_client(
        Settings(
            nfvo_auth="oauth2",
            nfvo_token_url="https://t.example",
            nfvo_client_id="me",
            nfvo_client_secret_file=secret,
        ),
        "https://n.example",
    ),
    "client_key": lambda secret, certificate: notification_client(
        Settings(client_certificate=certificate, client_key=secret), Guard()
    ),
    "tls_key": lambda secret, certificate: server_tls(Settings(tls_certificate=certificate, tls_key=secret)),
    "tls_certificate": lambda secret, certificate: server_tls(Settings(tls_certificate=secret)),
}


@pytest.mark.parametrize("setting", USES)
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o602, 0o660])
def test_it_is_refused_while_others_can_read_or_write_it(
    tmp_path: Path, certificates: tuple[str, str], setting: str, mode: int
) -> None:
    secret, certificate = _files(tmp_path, certificates, setting)
    secret.chmod(mode)
    with pytest.raises(SettingsError, match=f"^{setting}: .*chmod 600 {secret}"):
        USES[setting](secret, certificate)
    for closed in (0o600, 0o400):
        secret.chmod(closed)
        assert USES[setting](secret, certificate)


def test_so_is_the_key_file(tmp_path: Path) -> None:
    Keyring(tmp_path / "secrets.key")
    (tmp_path / "secrets.key").chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        Keyring(tmp_path / "secrets.key")


def test_a_token_that_is_made_is_closed(tmp_path: Path) -> None:
    token_of(tmp_path / "token")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def _files(directory: Path, certificates: tuple[str, str], setting: str) -> tuple[Path, Path]:
    certificate, key = certificates
    texts = {"tls_key": key, "client_key": key, "tls_certificate": certificate + key}
    (directory / "secret").write_text(texts.get(setting, SECRET))
    (directory / "certificate").write_text(certificate)
    return directory / "secret", directory / "certificate"
