"""What a connection to a Kubernetes cluster has to say: where it is, whose certificate it has, and who logs in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.kube.credentials import Credentials, tls
from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest, StepError
from slipway.vim import trust
from slipway.vim.access_info import string_fields
from slipway.vim.kubernetes.oidc import OidcAccount, is_token_url

STRING_FIELDS = (
    "bearer_token", "username", "password", "client_certificate", "client_key",
    "oidc_token_url", "client_id", "client_secret", "namespace",
)  # fmt: skip
NEEDED = (
    "a Kubernetes VIM needs accessInfo with bearer_token; or client_certificate and client_key; or username and "
    "password; or these with oidc_token_url and client_id."
)
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class KubernetesAccount:
    """`oidc` is who to ask for a token first, when the credentials have none."""

    credentials: Credentials
    namespace: str
    oidc: OidcAccount | None = None


def account_of(connection: VimConnection) -> KubernetesAccount:
    """BadRequest names the field, and never says what is in it."""
    interface, fields = connection.interface_info, string_fields(connection.access_info, STRING_FIELDS)
    endpoint, name = interface.get("endpoint"), interface.get("tls_server_name")
    if not isinstance(endpoint, str) or not endpoint:
        raise BadRequest("interfaceInfo.endpoint: is missing; give the URL of the API server, https://host:port.")
    if name is not None and (not isinstance(name, str) or not name.isascii() or not name.isprintable()):
        raise BadRequest("interfaceInfo.tls_server_name: must be the name that the server's certificate has.")
    ca, verify = trust.authorities(interface), not trust.flag(interface, trust.SKIP_ALL)
    oidc = _oidc(fields, connection.project, ca if verify else "all")
    if ("client_certificate" in fields) != ("client_key" in fields):
        raise BadRequest("accessInfo.client_certificate, client_key: one goes with the other.")
    password = {} if oidc else {key: fields[key] for key in ("username", "password") if key in fields}
    if not (oidc or "bearer_token" in fields or "client_key" in fields or len(password) == 2):
        raise BadRequest(f"accessInfo: it does not say how to log in; {NEEDED}")
    if ":" in password.get("username", ""):
        raise BadRequest(
            "accessInfo.username: must not contain a colon, which ends the user name in basic authentication."
        )
    try:
        credentials = Credentials(
            server=endpoint.rstrip("/"),
            ca=ca,
            client_certificate=fields.get("client_certificate"),
            client_key=fields.get("client_key"),
            token=fields.get("bearer_token"),
            server_name=name,
            verify=verify,
            **(password if len(password) == 2 else {}),
        )
        tls(credentials)
    except StepError as error:
        raise BadRequest(f"interfaceInfo, accessInfo: {error.detail}") from None
    return KubernetesAccount(credentials, fields.get("namespace", DEFAULT_NAMESPACE), oidc)


def _oidc(fields: Mapping[str, str], project: str, trusted: str | None) -> OidcAccount | None:
    if "oidc_token_url" not in fields:
        return None
    for name in ("client_id", "username", "password"):
        if name not in fields:
            raise BadRequest(f"accessInfo.{name}: is missing; a login by OIDC needs client_id, username and password.")
    if not is_token_url(fields["oidc_token_url"]):
        raise BadRequest("accessInfo.oidc_token_url: must be the http(s) URL of a token endpoint.")
    return OidcAccount(
        token_url=fields["oidc_token_url"],
        client_id=fields["client_id"],
        client_secret=fields.get("client_secret"),
        username=fields["username"],
        password=fields["password"],
        project=project,
        trusted=trusted or "",
    )
