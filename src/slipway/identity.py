"""Who vouches for callers besides our own tokens: a Keystone and an OpenID issuer, as far as settings name them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from slipway.access.jwt import Claims, Issuer
from slipway.access.keystone import Keystone, ServiceUser
from slipway.access.role_names import read_role_names
from slipway.model.access import Caller
from slipway.model.errors import OutsideError, SettingsError
from slipway.outside.guard import Guard
from slipway.outside.tls import client_context
from slipway.setting_files import read_secret, read_text
from slipway.settings import Settings

# Their addresses stand in the operator's own settings: nobody else has named them.
OWN = Guard(loopback=True)


class Provider(Protocol):
    async def caller(self, token: str) -> Caller | None:
        """Who sends the token; None when it is none of theirs. Unavailable when that can't be said now."""
        ...

    async def close(self) -> None: ...


def providers(settings: Settings) -> tuple[Provider, ...]:
    """In the order to ask them: the issuer first, which looks at its own tokens only and mostly without a request."""
    found: list[Provider] = []
    if settings.oidc_issuer:
        found.append(_issuer(settings, settings.oidc_issuer))
    if settings.keystone_url:
        found.append(_keystone(settings, settings.keystone_url))
    return tuple(found)


def _issuer(settings: Settings, issuer: str) -> Issuer:
    if not settings.oidc_audience:
        raise SettingsError("oidc_issuer needs oidc_audience: what its tokens must be made for.")
    roles = read_role_names(settings.oidc_roles, "oidc_roles")
    claims = Claims(roles, settings.oidc_role_claim, settings.oidc_project_claim or None)
    verify = _ca(settings.oidc_ca_file, "oidc_ca_file")
    return Issuer(issuer, settings.oidc_audience, OWN, claims, verify=verify)


def _keystone(settings: Settings, url: str) -> Keystone:
    if not settings.keystone_user or settings.keystone_password_file is None:
        raise SettingsError(
            "keystone_url needs keystone_user and keystone_password_file: only a user of its own may ask Keystone "
            "whose a token is."
        )
    user = ServiceUser(
        name=settings.keystone_user,
        password=read_secret(settings.keystone_password_file, "keystone_password_file").strip("\n"),
        project=settings.keystone_project,
        user_domain=settings.keystone_user_domain,
        project_domain=settings.keystone_project_domain,
    )
    roles = read_role_names(settings.keystone_roles, "keystone_roles")
    return Keystone(url, OWN, user, roles, verify=_ca(settings.keystone_ca_file, "keystone_ca_file"))


def _ca(path: Path | None, setting: str) -> bool | str:
    if path is None:
        return True
    pem = read_text(path, setting)
    try:
        client_context(pem)
    except OutsideError as error:
        raise SettingsError(f"{setting}: {path}: {error.detail}") from None
    return pem
