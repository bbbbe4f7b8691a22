from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slipway.access.jwt import Issuer
from slipway.access.keystone import Keystone
from slipway.factories import identity_providers
from slipway.model.access import Caller, Role
from slipway.model.errors import SettingsError
from slipway.settings import Settings, load_settings
from tests.unit.vim.keystone_standin import a_keystone


def settings(**values: Any) -> Settings:
    return load_settings(overrides=values, environment={})


def test_nobody_vouches_for_callers_unless_somebody_is_named() -> None:
    assert identity_providers(settings()) == ()


@pytest.mark.parametrize(("values", "said"), [
    ({"oidc_issuer": "https://id.example"}, "oidc_audience"),
    ({"oidc_issuer": "https://id.example", "oidc_audience": "x", "oidc_roles": ["x=boss"]}, "oidc_roles"),
    ({"oidc_issuer": "https://id.example", "oidc_audience": "x", "oidc_ca_file": "/nowhere"}, "oidc_ca_file"),
    ({"keystone_url": "https://k.example"}, "keystone_user"),
    ({"keystone_url": "https://k.example", "keystone_user": "x"}, "keystone_password_file"),
    ({"keystone_url": "https://k.example", "keystone_user": "x", "keystone_password_file": "/nowhere"}, "/nowhere"),
])  # fmt: skip
def test_what_is_missing_or_wrong_is_named_at_the_start(values: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        identity_providers(settings(**values))


async def test_a_keystone_and_an_issuer_are_made_from_settings(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("slipway-password\n")
    password.chmod(0o600)
    with a_keystone() as keystone:
        issuer, ours = identity_providers(
            settings(
                keystone_url=keystone.url,
                keystone_user="slipway",
                keystone_password_file=password,
                keystone_roles=["member=reader"],
                oidc_issuer="https://id.example",
                oidc_audience="slipway",
            )
        )
        assert isinstance(issuer, Issuer)
        assert isinstance(ours, Keystone)
        token = keystone.issue("demo", "demo")
        assert await issuer.authenticate(token) is None  # and asks nobody
        assert await ours.authenticate(token) == Caller("demo", Role.READER, keystone.projects["demo"].id)
        await issuer.close()
        await ours.close()


def test_a_ca_that_is_none_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    with pytest.raises(SettingsError, match=r"oidc_ca_file: .*CA can't be read"):
        identity_providers(settings(oidc_issuer="https://id.example", oidc_audience="x", oidc_ca_file=broken))
