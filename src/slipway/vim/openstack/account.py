"""What a connection to OpenStack has to say: where Keystone is, who logs in, and to which project and region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from slipway.model.action import Connection
from slipway.model.errors import BadRequest
from slipway.vim import trust
from slipway.vim.texts import texts as texts_of

TEXTS = (
    "username", "userId", "password", "userDomain", "userDomainId",
    "project", "projectId", "projectDomain", "projectDomainId", "region", "interface",
    "applicationCredentialId", "applicationCredentialName", "applicationCredentialSecret",
)  # fmt: skip
INTERFACES = ("public", "internal", "admin")
DEFAULT_DOMAIN = {"id": "default"}
NEEDED = (
    "an OpenStack VIM needs accessInfo with username, password and project (and userDomain, projectDomain, region), "
    "or with applicationCredentialId and applicationCredentialSecret."
)


@dataclass(frozen=True)
class Account:
    """In clear: made for one login, never stored. `identity` and `scope` are parts of Keystone's request."""

    url: str  # of version 3, without a slash at its end
    who: str  # for messages
    project: str | None  # for messages
    identity: dict[str, Any] = field(repr=False)
    scope: dict[str, Any] | None = field(repr=False)  # None: the application credential has one of its own
    region: str | None = None
    interface: str = "public"
    secrets: tuple[str, ...] = field(default=(), repr=False)


def account_of(connection: Connection) -> Account:
    """BadRequest names the field, and never says what is in it."""
    texts = texts_of(connection.access_info, TEXTS)
    trust.authorities(connection.interface_info)
    for name in (trust.SKIP_ALL, trust.SKIP_NAME):
        trust.flag(connection.interface_info, name)
    interface = texts.get("interface", "public").removesuffix("URL")
    if interface not in INTERFACES:
        raise BadRequest(f"accessInfo.interface: possible are: {', '.join(INTERFACES)}.")
    secrets = tuple(texts[name] for name in ("password", "applicationCredentialSecret") if name in texts)
    by_application = "applicationCredentialSecret" in texts
    return Account(
        url=keystone_url(connection.interface_info.get("endpoint")),
        who=_who(texts),
        project=None if by_application else texts.get("project") or texts.get("projectId"),
        identity=_by_application(texts) if by_application else _by_password(texts),
        scope=None if by_application else _scope(texts),
        region=texts.get("region"),
        interface=interface,
        secrets=secrets,
    )


def keystone_url(given: object) -> str:
    """The address of version 3: people leave it out, or write a slash after it."""
    wanted = "interfaceInfo.endpoint: an OpenStack VIM needs the URL of Keystone, such as https://host:5000/v3"
    if not isinstance(given, str) or not given:
        raise BadRequest(f"{wanted}.")
    try:
        parts = urlsplit(given)
        _ = parts.port
    except ValueError:
        raise BadRequest(f"{wanted}; this is no URL.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BadRequest(f"{wanted}.")
    if "@" in parts.netloc or any(not sign.isprintable() or sign == " " for sign in given):
        raise BadRequest(f"{wanted}, without a user, a password or blanks in it.")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path if path.endswith('/v3') else f'{path}/v3'}"


def _by_application(texts: Mapping[str, str]) -> dict[str, Any]:
    secret = {"secret": texts["applicationCredentialSecret"]}
    if "applicationCredentialId" in texts:
        credential: dict[str, Any] = {"id": texts["applicationCredentialId"], **secret}
    elif "applicationCredentialName" in texts:
        credential = {"name": texts["applicationCredentialName"], "user": _user(texts), **secret}
    else:
        raise BadRequest("accessInfo.applicationCredentialId: is missing; it goes with applicationCredentialSecret.")
    return {"methods": ["application_credential"], "application_credential": credential}


def _by_password(texts: Mapping[str, str]) -> dict[str, Any]:
    if "password" not in texts:
        raise BadRequest(f"accessInfo.password: is missing; {NEEDED}")
    return {"methods": ["password"], "password": {"user": {**_user(texts), "password": texts["password"]}}}


def _user(texts: Mapping[str, str]) -> dict[str, Any]:
    if "userId" in texts:
        return {"id": texts["userId"]}
    if "username" not in texts:
        raise BadRequest(f"accessInfo.username: is missing; {NEEDED}")
    return {"name": texts["username"], "domain": _domain(texts, "user")}


def _scope(texts: Mapping[str, str]) -> dict[str, Any]:
    if "projectId" in texts:
        return {"project": {"id": texts["projectId"]}}
    if "project" not in texts:
        raise BadRequest(f"accessInfo.project: is missing; {NEEDED}")
    return {"project": {"name": texts["project"], "domain": _domain(texts, "project")}}


def _domain(texts: Mapping[str, str], of: str) -> dict[str, str]:
    if name := texts.get(f"{of}Domain"):
        return {"name": name}
    if domain_id := texts.get(f"{of}DomainId"):
        return {"id": domain_id}
    return DEFAULT_DOMAIN


def _who(texts: Mapping[str, str]) -> str:
    if "applicationCredentialSecret" in texts:
        return "the application credential"
    domain = texts.get("userDomain") or texts.get("userDomainId") or "default"
    return f"user {texts.get('username') or texts.get('userId')} of domain {domain}"
