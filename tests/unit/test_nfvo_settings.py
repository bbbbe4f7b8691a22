from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slipway.factories import nfvo_client
from slipway.model.errors import SettingsError
from slipway.settings import load_settings

URL = "https://nfvo.example"


def made(**given: Any) -> str:
    return nfvo_client(load_settings(overrides=given, environment={}), given.pop("nfvo_url", URL)).grants


def test_grants_are_below_the_address() -> None:
    assert made() == made(nfvo_url=f"{URL}/") == "https://nfvo.example/grant/v1/grants"
    assert made(nfvo_url=f"{URL}/somewhere") == "https://nfvo.example/somewhere/grant/v1/grants"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nfvo_url": "nfvo.example"}, "nfvo_url: The URL has no scheme. Give one such as https://"),
        ({"nfvo_url": "https://user:word@nfvo.example"}, "nfvo_url: .* has a user or a password in it"),
        ({"nfvo_auth": "basic"}, "needs nfvo_user and nfvo_password_file"),
        (
            {"nfvo_auth": "basic", "nfvo_user": "u", "nfvo_password_file": "/not/there"},
            "nfvo_password_file: /not/there",
        ),
        ({"nfvo_auth": "oauth2", "nfvo_client_id": "c"}, "needs nfvo_token_url, nfvo_client_id and"),
        ({"nfvo_auth": "kerberos"}, "nfvo_auth"),
        ({"grant_seconds": 0}, "grant_seconds"),
    ],
)
def test_what_does_not_fit_together_is_said_at_the_start(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        made(**given)


def test_a_ca_that_is_none_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(SettingsError, match=r"nfvo_ca_file: .*ca\.pem: The CA can't be read"):
        made(nfvo_ca_file=tmp_path / "ca.pem")


def test_a_token_url_is_checked_as_well(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "secret").chmod(0o600)
    with pytest.raises(SettingsError, match="nfvo_token_url"):
        made(
            nfvo_auth="oauth2",
            nfvo_client_id="c",
            nfvo_client_secret_file=tmp_path / "secret",
            nfvo_token_url="ftp://tokens.example",
        )
