"""Whom a server must be vouched for by, and what we show of ourselves: certificates as PEM text, never as files."""

from __future__ import annotations

import os
import ssl

from slipway.model.errors import OutsideError


def client_context(verify: bool | str, cert: tuple[str, str] | None = None) -> ssl.SSLContext:
    """`verify` True trusts whom this machine and the Mozilla list trust, a PEM only that CA, False everybody."""
    context = _trusting(verify)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if cert:
        try:
            load_chain(context, "\n".join(cert))
        except (ssl.SSLError, ValueError):
            raise OutsideError(
                "The client certificate does not go with its key. Give both as PEM, the key without a passphrase."
            ) from None
    return context


def _trusting(verify: bool | str) -> ssl.SSLContext:
    if verify is True:
        import httpx

        context = httpx.create_ssl_context(trust_env=False)
        context.load_default_certs()
        return context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        context.load_verify_locations(cadata=verify)
    except (ssl.SSLError, ValueError, TypeError):  # not a certificate, empty, not ASCII
        raise OutsideError("The CA can't be read. Give it as PEM.") from None
    return context


def load_chain(context: ssl.SSLContext, pem: str) -> None:
    """OpenSSL wants a file: it gets one that is in memory only and has no name others could open."""
    descriptor = os.memfd_create("slipway")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(pem.encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")  # never ask a terminal
    finally:
        os.close(descriptor)
