"""Who asks a cluster, and how it is known to be the one: read from a kubeconfig, kept in memory, never shown."""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from slipway.model.errors import PackageError, StepError
from slipway.outgoing.tls import RefusedPem, check_pem, load_chain
from slipway.package.yaml_reader import read_yaml

LARGEST = 1 << 20  # bytes of a kubeconfig
# Beginning with a dot, TLS would not take it; an address may be one.
_SERVER_NAME = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:-]{0,252}")
FLATTEN = "give the output of `kubectl config view --raw --flatten --minify`."


@dataclass(frozen=True)
class Credentials:
    """A server, its CA, and a client certificate, a token or a password. In clear: made for one step, never stored."""

    server: str  # https://host:port
    ca: str | None = field(repr=False)  # PEM; None trusts the authorities of this machine
    client_certificate: str | None = field(default=None, repr=False)  # PEM
    client_key: str | None = field(default=None, repr=False)  # PEM
    token: str | None = field(default=None, repr=False)
    server_name: str | None = None  # that the server's certificate must have, when it is not the host of `server`
    username: str | None = field(default=None, repr=False)  # with the password, for a proxy before the server
    password: str | None = field(default=None, repr=False)
    verify: bool = field(default=True, repr=False)  # False believes any certificate

    def __post_init__(self) -> None:
        if not _is_https(self.server):
            raise StepError("The address of the Kubernetes API is not an https:// URL.", cure="give https://host:port.")
        if self.server_name and not _SERVER_NAME.fullmatch(self.server_name):
            raise StepError(
                "The name of the Kubernetes API (tls_server_name) is none that a certificate has.",
                cure="give it as kubernetes.default, or leave it out.",
            )
        if self.token is not None and not _is_header(self.token):
            raise StepError(
                "The token for Kubernetes has characters that no token has.", cure="give it without spaces."
            )

    @property
    def secrets(self) -> list[str]:
        return [value for value in (self.token, self.client_key, self.password) if value]

    @property
    def authorization(self) -> str | None:
        """The header that says who asks; None for a client certificate alone."""
        if self.token:
            return f"Bearer {self.token}"
        if self.username is None or self.password is None:
            return None
        return f"Basic {base64.b64encode(f'{self.username}:{self.password}'.encode()).decode()}"


def from_kubeconfig(text: str) -> Credentials:
    """The current context of a kubeconfig such as kubeadm's admin.conf. Nothing it names is run, and no file read."""
    config = _read(text)
    context = _named(config, "contexts", "context", config.get("current-context"))
    cluster = _named(config, "clusters", "cluster", context.get("cluster"))
    user = _named(config, "users", "user", context.get("user"))
    _refuse(cluster, {"insecure-skip-tls-verify": "does not check the server", "proxy-url": "asks for a proxy"})
    _refuse(user, {"exec": "runs a program for credentials", "auth-provider": "asks for a plugin"})
    _refuse(user, {"client-certificate": "names a file", "client-key": "names a file", "tokenFile": "names a file"})
    _refuse(cluster, {"certificate-authority": "names a file"})
    certificate, key = _data(user, "client-certificate-data"), _data(user, "client-key-data")
    ca, token = _data(cluster, "certificate-authority-data"), _string_or_none(user, "token")
    if ca is None:
        raise _invalid("has no certificate-authority-data")
    if not token and not (certificate and key):
        raise _invalid("has neither a token nor a client certificate with its key")
    return Credentials(
        server=_string_or_none(cluster, "server") or "",
        ca=ca,
        client_certificate=certificate if key else None,
        client_key=key if certificate else None,
        token=token,
        server_name=_string_or_none(cluster, "tls-server-name"),
    )


def ca_of(text: str) -> str:
    """The CA of the only cluster in a kubeconfig without users, as kubeadm publishes it."""
    clusters = _read(text).get("clusters")
    first = clusters[0] if isinstance(clusters, list) and clusters else None
    cluster = first.get("cluster") if isinstance(first, dict) else None
    ca = _data(cluster, "certificate-authority-data") if isinstance(cluster, dict) else None
    if ca is None:
        raise _invalid("has no certificate-authority-data")
    return ca


def _read(text: str) -> dict[str, Any]:
    if len(text) > LARGEST:
        raise _invalid(f"is larger than {LARGEST >> 10} KiB")
    try:
        return read_yaml(text.encode(errors="replace"), "kubeconfig").root
    except PackageError as error:
        # Only where: what stands there may be a key.
        raise _invalid(f"can't be read (line {error.line})" if error.line else "can't be read") from None


def tls(credentials: Credentials) -> ssl.SSLContext:
    """Trusts the given CA only. The default context would trust the system's CAs besides."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if credentials.ca is not None else ssl.create_default_context()
    try:
        if credentials.ca is not None:
            check_pem(credentials.ca)
            context.load_verify_locations(cadata=credentials.ca)
    except RefusedPem as error:
        raise StepError(f"The CA of the Kubernetes API {error.what}.", cure=f"{error.cure}.") from None
    except (ssl.SSLError, ValueError, TypeError):  # not a certificate, empty, not ASCII
        raise StepError("The CA of the Kubernetes API can't be read.", cure="give it as PEM.") from None
    if not credentials.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credentials.client_certificate and credentials.client_key:
        try:
            load_chain(context, f"{credentials.client_certificate}\n{credentials.client_key}")
        except RefusedPem as error:
            what = f"client_certificate, client_key: the client certificate for Kubernetes or its key {error.what}."
            raise StepError(what, cure=f"{error.cure}.") from None
        except (ssl.SSLError, ValueError):
            cure = "give both as PEM, the key without a passphrase."
            raise StepError("The client certificate for Kubernetes does not go with its key.", cure=cure) from None
    return context


def _named(config: dict[str, Any], plural: str, singular: str, name: object) -> dict[str, Any]:
    entries = config.get(plural)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(found := entry.get(singular), dict):
            return found
    raise _invalid(f"has no {singular} for its current context")


def _refuse(part: dict[str, Any], reasons: dict[str, str]) -> None:
    for key, why in reasons.items():
        if part.get(key):
            raise _invalid(f"{why} ({key})")


def _data(part: dict[str, Any], key: str) -> str | None:
    if (text := _string_or_none(part, key)) is None:
        return None
    try:
        return base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise _invalid(f"has no base64 of PEM in {key}") from None


def _string_or_none(part: dict[str, Any], key: str) -> str | None:
    value = part.get(key)
    if value is not None and not isinstance(value, str):
        raise _invalid(f"has no string in {key}")
    return value or None


def _is_https(server: str) -> bool:
    """One that can be asked, too: httpx is stricter about hosts and characters."""
    import httpx  # a tenth of a second that no start of the server should pay

    try:
        parts = urlsplit(server)
        httpx.URL(server)
    except (ValueError, httpx.InvalidURL):
        return False
    alone = not (parts.query or parts.fragment)
    return parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc and alone


def _is_header(token: str) -> bool:
    return token.isascii() and token.isprintable() and " " not in token


def _invalid(what: str) -> StepError:
    return StepError(f"The kubeconfig {what}.", cure=FLATTEN)
