"""The certificate that Slipway shows, and whose certificates it wants to see: read before anything else starts."""

from __future__ import annotations

import ssl
from pathlib import Path

from slipway.model.errors import SettingsError
from slipway.setting_files import require_closed
from slipway.settings import Settings


def server_tls(settings: Settings) -> ssl.SSLContext | None:
    """None is plain HTTP. SettingsError names the setting whose file won't do."""
    if settings.tls_certificate is None:
        for name in ("tls_key", "tls_client_ca"):
            if getattr(settings, name) is not None:
                raise SettingsError(f"{name} goes with tls_certificate, which is missing. Name both, or neither.")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate = _readable(settings.tls_certificate, "tls_certificate")
    key = _readable(settings.tls_key, "tls_key") if settings.tls_key else certificate
    require_closed(key, "tls_key" if settings.tls_key else "tls_certificate")
    try:
        context.load_cert_chain(certificate, key, password="")  # never ask a terminal
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise SettingsError(
            f"tls_certificate {certificate} and tls_key {key} don't go together ({reason}). Both are PEM, the "
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


def _readable(path: Path, setting: str) -> Path:
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise SettingsError(f"{setting}: {path} can't be read: {error.strerror}.") from None
