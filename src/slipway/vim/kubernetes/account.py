"""What a connection to a Kubernetes cluster has to say: where it is, whose certificate it has, and who logs in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.kube.credentials import Credentials, tls
from slipway.model.action import Connection
from slipway.model.errors import BadRequest, StepError
from slipway.vim import trust
from slipway.vim.kubernetes.oidc import OidcAccount, is_token_url
from slipway.vim.texts import texts as texts_of

TEXTS = (
    "bearer_token", "username", "password", "client_certificate", "client_key",
    "oidc_token_url", "client_id", "client_secret", "namespace",
)  # fmt: skip
NEEDED = (
    "a Kubernetes VIM needs accessInfo with bearer_token; or client_certificate and client_key; or username and "
    "password; or these with oidc_token_url and client_id."
)
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class Account:
    """`oidc` is who to ask for a token first, when the credentials have none."""

    credentials: Credentials
    namespace: str
    oidc: OidcAccount | None = None


def account_of(connection: Connection) -> Account:
    """BadRequest names the field, and never says what is in it."""
    interface, texts = connection.interface_info, texts_of(connection.access_info, TEXTS)
    endpoint, name = interface.get("endpoint"), interface.get("tls_server_name")
    if not isinstance(endpoint, str) or not endpoint:
        raise BadRequest("interfaceInfo.endpoint: is missing; give the URL of the API server, https://host:port.")
    if name is not None and (not isinstance(name, str) or not name.isascii() or not name.isprintable()):
        raise BadRequest("interfaceInfo.tls_server_name: it must be the name that the server's certificate has.")
    ca, verify = trust.authorities(interface), not trust.flag(interface, trust.SKIP_ALL)
    oidc = _oidc(texts)
    if ("client_certificate" in texts) != ("client_key" in texts):
        raise BadRequest("accessInfo.client_certificate, client_key: one goes with the other.")
    password = {} if oidc else {key: texts[key] for key in ("username", "password") if key in texts}
    if not (oidc or "bearer_token" in texts or "client_key" in texts or len(password) == 2):
        raise BadRequest(f"accessInfo: it does not say how to log in; {NEEDED}")
    if ":" in password.get("username", ""):
        raise BadRequest("accessInfo.username: a colon is not possible in it.")
    try:
        credentials = Credentials(
            server=endpoint.rstrip("/"),
            ca=ca,
            client_certificate=texts.get("client_certificate"),
            client_key=texts.get("client_key"),
            token=texts.get("bearer_token"),
            server_name=name,
            verify=verify,
            **(password if len(password) == 2 else {}),
        )
        tls(credentials)
    except StepError as error:
        raise BadRequest(f"interfaceInfo, accessInfo: {error.detail}") from None
    return Account(credentials, texts.get("namespace", DEFAULT_NAMESPACE), oidc)


def _oidc(texts: Mapping[str, str]) -> OidcAccount | None:
    if "oidc_token_url" not in texts:
        return None
    for name in ("client_id", "username", "password"):
        if name not in texts:
            raise BadRequest(f"accessInfo.{name}: is missing; a login by OIDC needs client_id, username and password.")
    if not is_token_url(texts["oidc_token_url"]):
        raise BadRequest("accessInfo.oidc_token_url: it must be the http(s) URL of a token endpoint.")
    return OidcAccount(
        token_url=texts["oidc_token_url"],
        client_id=texts["client_id"],
        client_secret=texts.get("client_secret"),
        username=texts["username"],
        password=texts["password"],
    )
