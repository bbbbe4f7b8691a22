"""The certificate by which Slipway shows who it is to those it calls."""

from __future__ import annotations

import base64

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from slipway.model.errors import SettingsError
from slipway.notify.calling import Calling, Identity
from slipway.outside.guard import Guard
from slipway.setting_files import read_secret, read_text
from slipway.settings import Settings


def caller_of_subscribers(settings: Settings, guard: Guard) -> Calling:
    ca = read_text(settings.callback_ca_file, "callback_ca_file") if settings.callback_ca_file else None
    return Calling(guard, _identity(settings), ca)


def _identity(settings: Settings) -> Identity | None:
    if settings.client_certificate is None and settings.client_key is None:
        return None
    if settings.client_certificate is None or settings.client_key is None:
        raise SettingsError("client_certificate and client_key belong together: set both, or none.")
    certificate = read_text(settings.client_certificate, "client_certificate")
    try:
        digest = x509.load_pem_x509_certificate(certificate.encode()).fingerprint(SHA256())
    except ValueError:
        raise SettingsError(f"client_certificate: {settings.client_certificate} holds no PEM certificate.") from None
    thumbprint = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return Identity(certificate, read_secret(settings.client_key, "client_key"), thumbprint)
