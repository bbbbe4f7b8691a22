"""Which server the command line believes, and the certificate it shows where one is asked for."""

from __future__ import annotations

import ssl
from pathlib import Path

from slipway.cli.errors import CliError


def client_tls(ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Without a CA of its own the server must be vouched for by those whom this machine trusts."""
    if key and not certificate:
        raise CliError("--client-key goes with --client-cert; name that, too.")
    for option, path in (("--ca-file", ca), ("--client-cert", certificate), ("--client-key", key)):
        if path is not None and not path.is_file():
            raise CliError(f"{option}: there is no file {path}.")
    try:
        context = ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError):
        raise CliError(f"--ca-file: {ca} holds no certificate; give the CA as PEM.") from None
    if certificate:
        try:
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise CliError(
                f"--client-cert {certificate} does not go with its key ({reason}); give both as PEM."
            ) from None
    return context
