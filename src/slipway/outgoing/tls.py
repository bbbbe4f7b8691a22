"""TLS contexts of clients: trusted CAs and client certificates, as PEM text instead of files."""

from __future__ import annotations

import os
import ssl

from slipway.model.errors import OutgoingRequestError

LARGEST_PEM = 64 << 10  # characters of PEM that a user gave: OpenSSL reads it on the event loop
MOST_CERTIFICATES = 100
_ENCRYPTED = ("ENCRYPTED", "DEK-Info")  # no base64 has these; the first is that of PKCS#8 and of Proc-Type


class RefusedPem(ValueError):
    """PEM that OpenSSL would take too long to read. The message says what is wrong, and then the cure."""

    def __init__(self, what: str, cure: str) -> None:
        super().__init__(f"{what}; {cure}")
        self.what, self.cure = what, cure


def client_context(verify: bool | str, cert: tuple[str, str] | None = None) -> ssl.SSLContext:
    """`verify` True trusts whom this machine and the Mozilla list trust, a PEM only that CA, False everybody."""
    context = _trusting(verify)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if cert:
        try:
            load_chain(context, "\n".join(cert))
        except RefusedPem as error:
            raise OutgoingRequestError(f"The client certificate or its key {error}.") from None
        except (ssl.SSLError, ValueError):
            raise OutgoingRequestError(
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
        raise OutgoingRequestError("The CA can't be read. Give it as PEM.") from None
    return context


def check_pem(pem: str) -> None:
    """RefusedPem before OpenSSL reads certificates or a key that a user gave.

    Of an encrypted key the key says itself how many rounds its passphrase goes through: that may take minutes.
    """
    if len(pem) > LARGEST_PEM:
        raise RefusedPem(f"is larger than {LARGEST_PEM >> 10} KiB", "give only what is needed")
    if pem.count("-----BEGIN") > MOST_CERTIFICATES:
        raise RefusedPem(f"has more than {MOST_CERTIFICATES} certificates", "give only those that are needed")
    if any(word in pem for word in _ENCRYPTED):
        raise RefusedPem("is encrypted", "give the key without a passphrase")


def load_chain(context: ssl.SSLContext, pem: str) -> None:
    """OpenSSL wants a file: it gets one that is in memory only and has no name others could open. See check_pem."""
    check_pem(pem)
    descriptor = os.memfd_create("slipway")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(pem.encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")  # never ask a terminal
    finally:
        os.close(descriptor)
