"""The NFVO that grants operations, as the settings name it."""

from __future__ import annotations

from pathlib import Path

from slipway.model.errors import OutsideError, SettingsError
from slipway.nfvo.grants import Nfvo
from slipway.nfvo.login import Anonymous, Basic, Login, OAuth2
from slipway.outside.guard import Guard
from slipway.outside.tls import client_context
from slipway.setting_files import read_secret, read_text
from slipway.settings import Settings

# Its address stands in the operator's own settings: nobody else has named it.
OWN = Guard(loopback=True)


def nfvo(settings: Settings, url: str) -> Nfvo:
    _check_url(url, "nfvo_url")
    return Nfvo(url, OWN, _login(settings), verify=_ca(settings), seconds=settings.grant_seconds)


def _login(settings: Settings) -> Login:
    if settings.nfvo_auth == "basic":
        if not settings.nfvo_user or settings.nfvo_password_file is None:
            raise SettingsError("nfvo_auth basic needs nfvo_user and nfvo_password_file.")
        return Basic(settings.nfvo_user, _secret(settings.nfvo_password_file, "nfvo_password_file"))
    if settings.nfvo_auth == "oauth2":
        if not settings.nfvo_token_url or not settings.nfvo_client_id or settings.nfvo_client_secret_file is None:
            raise SettingsError("nfvo_auth oauth2 needs nfvo_token_url, nfvo_client_id and nfvo_client_secret_file.")
        _check_url(settings.nfvo_token_url, "nfvo_token_url")
        secret = _secret(settings.nfvo_client_secret_file, "nfvo_client_secret_file")
        return OAuth2(settings.nfvo_token_url, settings.nfvo_client_id, secret)
    return Anonymous()


def _check_url(url: str, setting: str) -> None:
    try:
        OWN.read(url)
    except OutsideError as error:
        raise SettingsError(f"{setting}: {error.detail}") from None


def _ca(settings: Settings) -> bool | str:
    if settings.nfvo_ca_file is None:
        return True
    pem = read_text(settings.nfvo_ca_file, "nfvo_ca_file")
    try:
        client_context(pem)
    except OutsideError as error:
        raise SettingsError(f"nfvo_ca_file: {settings.nfvo_ca_file}: {error.detail}") from None
    return pem


def _secret(path: Path, setting: str) -> str:
    return read_secret(path, setting).strip("\n")
