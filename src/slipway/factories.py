"""Makes objects from settings: the server's TLS, identity providers, the notification client, the NFVO client.

All of them read files that settings name, before anything else starts. Files with a secret in them must be closed to
others, or Slipway does not start.
"""

from __future__ import annotations

import base64
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from slipway.model.errors import OutgoingRequestError, SettingsError
from slipway.notify.client import ClientCertificate, NotificationClient
from slipway.outgoing.guard import Guard
from slipway.outgoing.tls import client_context
from slipway.settings import Settings

if TYPE_CHECKING:
    from slipway.access.identity_provider import IdentityProvider
    from slipway.access.jwt import Issuer
    from slipway.access.keystone import Keystone
    from slipway.nfvo.grants import Nfvo
    from slipway.outgoing.oauth2 import ClientCredentials

# For addresses from the operator's own settings, not from users.
OWN = Guard(loopback=True)
GROUP_READS = 0o040


def server_tls(settings: Settings) -> ssl.SSLContext | None:
    """None is plain HTTP. SettingsError names the setting whose file cannot be used."""
    if settings.tls_certificate is None:
        for name in ("tls_key", "tls_client_ca"):
            if getattr(settings, name) is not None:
                raise SettingsError(f"{name} needs tls_certificate, which is missing. Set both, or neither.")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate = _readable(settings.tls_certificate, "tls_certificate")
    key = _readable(settings.tls_key, "tls_key") if settings.tls_key else certificate
    _require_closed(key, "tls_key" if settings.tls_key else "tls_certificate")
    try:
        context.load_cert_chain(certificate, key, password="")  # never ask a terminal
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise SettingsError(
            f"tls_certificate {certificate} and tls_key {key} do not belong together ({reason}). Both are PEM, the "
            "certificate with its intermediates, the key without a passphrase."
        ) from None
    if settings.tls_client_ca is not None:
        ca = _readable(settings.tls_client_ca, "tls_client_ca")
        try:
            context.load_verify_locations(ca)
        except ssl.SSLError:
            raise SettingsError(f"tls_client_ca {ca} holds no certificate. Give the CA as PEM.") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def identity_providers(settings: Settings) -> tuple[IdentityProvider, ...]:
    """In the order to ask them: the issuer first, which looks at its own tokens only and mostly without a request."""
    found: list[IdentityProvider] = []
    if settings.oidc_issuer:
        found.append(_issuer(settings, settings.oidc_issuer))
    if settings.keystone_url:
        found.append(_keystone(settings, settings.keystone_url))
    return tuple(found)


def _issuer(settings: Settings, issuer: str) -> Issuer:
    from slipway.access.identity_provider import read_role_names
    from slipway.access.jwt import Claims, Issuer

    if not settings.oidc_audience:
        raise SettingsError("oidc_issuer needs oidc_audience: what its tokens must be made for.")
    roles = read_role_names(settings.oidc_roles, "oidc_roles")
    claims = Claims(roles, settings.oidc_role_claim, settings.oidc_project_claim or None)
    verify = _ca(settings.oidc_ca_file, "oidc_ca_file")
    return Issuer(issuer, settings.oidc_audience, OWN, claims, verify=verify)


def _keystone(settings: Settings, url: str) -> Keystone:
    from slipway.access.identity_provider import read_role_names
    from slipway.access.keystone import Keystone, ServiceUser

    if not settings.keystone_user or settings.keystone_password_file is None:
        raise SettingsError(
            "keystone_url needs keystone_user and keystone_password_file: only a user of its own may ask Keystone "
            "whose a token is."
        )
    user = ServiceUser(
        name=settings.keystone_user,
        password=read_secret(settings.keystone_password_file, "keystone_password_file"),
        project=settings.keystone_project,
        user_domain=settings.keystone_user_domain,
        project_domain=settings.keystone_project_domain,
    )
    roles = read_role_names(settings.keystone_roles, "keystone_roles")
    return Keystone(url, OWN, user, roles, verify=_ca(settings.keystone_ca_file, "keystone_ca_file"))


def notification_client(settings: Settings, guard: Guard) -> NotificationClient:
    ca = _read(settings.callback_ca_file, "callback_ca_file") if settings.callback_ca_file else None
    return NotificationClient(guard, _client_certificate(settings), ca)


def _client_certificate(settings: Settings) -> ClientCertificate | None:
    """Slipway's own certificate for subscribers."""
    if settings.client_certificate is None and settings.client_key is None:
        return None
    if settings.client_certificate is None or settings.client_key is None:
        raise SettingsError("client_certificate and client_key belong together: set both, or none.")
    certificate = _read(settings.client_certificate, "client_certificate")
    try:
        digest = x509.load_pem_x509_certificate(certificate.encode()).fingerprint(SHA256())
    except ValueError:
        raise SettingsError(f"client_certificate: {settings.client_certificate} holds no PEM certificate.") from None
    thumbprint = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return ClientCertificate(certificate, read_secret(settings.client_key, "client_key"), thumbprint)


def nfvo_client(settings: Settings, url: str) -> Nfvo:
    from slipway.nfvo.grants import Nfvo

    _check_url(url, "nfvo_url")
    verify = _ca(settings.nfvo_ca_file, "nfvo_ca_file")
    return Nfvo(url, OWN, _nfvo_credentials(settings), verify=verify, seconds=settings.grant_seconds)


def _nfvo_credentials(settings: Settings) -> ClientCredentials | tuple[str, str] | None:
    from slipway.outgoing.oauth2 import ClientCredentials

    if settings.nfvo_auth == "basic":
        if not settings.nfvo_user or settings.nfvo_password_file is None:
            raise SettingsError("nfvo_auth basic needs nfvo_user and nfvo_password_file.")
        return settings.nfvo_user, read_secret(settings.nfvo_password_file, "nfvo_password_file")
    if settings.nfvo_auth == "oauth2":
        if not settings.nfvo_token_url or not settings.nfvo_client_id or settings.nfvo_client_secret_file is None:
            raise SettingsError("nfvo_auth oauth2 needs nfvo_token_url, nfvo_client_id and nfvo_client_secret_file.")
        _check_url(settings.nfvo_token_url, "nfvo_token_url")
        secret = read_secret(settings.nfvo_client_secret_file, "nfvo_client_secret_file")
        return ClientCredentials(settings.nfvo_token_url, settings.nfvo_client_id, secret)
    return None


def _check_url(url: str, setting: str) -> None:
    try:
        OWN.read(url)
    except OutgoingRequestError as error:
        raise SettingsError(f"{setting}: {error.detail}") from None


def _ca(path: Path | None, setting: str) -> bool | str:
    """What httpx takes as `verify`."""
    if path is None:
        return True
    pem = _read(path, setting)
    try:
        client_context(pem)
    except OutgoingRequestError as error:
        raise SettingsError(f"{setting}: {path}: {error.detail}") from None
    return pem


def read_secret(path: Path, setting: str) -> str:
    """Without the line break at its end. SettingsError also when others may read or write it."""
    _require_closed(path, setting)
    return _read(path, setting).strip("\n")


def _read(path: Path, setting: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{setting}: {path} cannot be read: {error}.") from None


def _readable(path: Path, setting: str) -> Path:
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise SettingsError(f"{setting}: {path} cannot be read: {error.strerror}.") from None


def _require_closed(path: Path, setting: str) -> None:
    """SettingsError when others than its owner may read or write it; a file of root may be read by its group."""
    try:
        status = path.stat()
    except OSError as error:
        raise SettingsError(f"{setting}: {path} cannot be read: {error}.") from None
    too_open = status.st_mode & 0o077
    if status.st_uid == 0 and os.geteuid() != 0:
        too_open &= ~GROUP_READS
    if too_open:
        raise SettingsError(
            f"{setting}: {path} is open to others (mode {status.st_mode & 0o777:04o}), and what is in it must be taken "
            f"for known. Cure: chmod 600 {path}, and replace the secret if others may have read it."
        )
