"""What a connection to OpenStack has to say: where Keystone is, who logs in, and to which project and region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest
from slipway.vim import trust
from slipway.vim.access_info import string_fields

if TYPE_CHECKING:
    from keystoneauth1.identity import v3

STRING_FIELDS = (
    "username", "userId", "password", "userDomain", "userDomainId",
    "project", "projectId", "projectDomain", "projectDomainId", "region", "interface",
    "applicationCredentialId", "applicationCredentialName", "applicationCredentialSecret",
)  # fmt: skip
INTERFACES = ("public", "internal", "admin")
DEFAULT_DOMAIN = "default"  # its id
NEEDED = (
    "an OpenStack VIM needs accessInfo with username, password and project (and userDomain, projectDomain, region), "
    "or with applicationCredentialId and applicationCredentialSecret."
)


@dataclass(frozen=True)
class OpenStackAccount:
    """In clear: made for one login, never stored. `credential` and `scope` are arguments of keystoneauth's plugins."""

    url: str  # of version 3, without a slash at its end
    who: str  # for messages
    project: str | None  # for messages
    named_project: tuple[str, str] | None  # field and value: of an application credential, which has one of its own
    credential: dict[str, Any] = field(repr=False)
    scope: dict[str, Any] | None = field(repr=False)  # None: the application credential has one of its own
    region: str | None = None
    interface: str = "public"
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def plugin(self, *, scoped: bool = True) -> v3.Auth:
        from keystoneauth1.identity import v3

        if self.scope is None:
            return v3.ApplicationCredential(self.url, **self.credential)
        return v3.Password(self.url, **self.credential, **(self.scope if scoped else {"unscoped": True}))


def account_of(connection: VimConnection) -> OpenStackAccount:
    """BadRequest names the field, and never says what is in it."""
    fields = string_fields(connection.access_info, STRING_FIELDS)
    trust.authorities(connection.interface_info)
    for name in (trust.SKIP_ALL, trust.SKIP_NAME):
        trust.flag(connection.interface_info, name)
    interface = fields.get("interface", "public").removesuffix("URL")
    if interface not in INTERFACES:
        raise BadRequest(f"accessInfo.interface: must be one of: {', '.join(INTERFACES)}.")
    secrets = tuple(fields[name] for name in ("password", "applicationCredentialSecret") if name in fields)
    by_application = "applicationCredentialSecret" in fields
    return OpenStackAccount(
        url=keystone_url(connection.interface_info.get("endpoint")),
        who=_who(fields),
        project=fields.get("project") or fields.get("projectId"),
        named_project=_named_project(fields) if by_application else None,
        credential=_by_application(fields) if by_application else _by_password(fields),
        scope=None if by_application else _scope(fields),
        region=fields.get("region"),
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
        raise BadRequest(f"{wanted}; this is not a URL.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BadRequest(f"{wanted}.")
    if "@" in parts.netloc or any(not sign.isprintable() or sign == " " for sign in given):
        raise BadRequest(f"{wanted}, without a user, a password or blanks in it.")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path if path.endswith('/v3') else f'{path}/v3'}"


def _by_application(fields: Mapping[str, str]) -> dict[str, str]:
    secret = {"application_credential_secret": fields["applicationCredentialSecret"]}
    if "applicationCredentialId" in fields:
        return {"application_credential_id": fields["applicationCredentialId"], **secret}
    if "applicationCredentialName" in fields:
        return {"application_credential_name": fields["applicationCredentialName"], **_user(fields), **secret}
    raise BadRequest("accessInfo.applicationCredentialId: is missing; it goes with applicationCredentialSecret.")


def _by_password(fields: Mapping[str, str]) -> dict[str, str]:
    if "password" not in fields:
        raise BadRequest(f"accessInfo.password: is missing; {NEEDED}")
    return {**_user(fields), "password": fields["password"]}


def _user(fields: Mapping[str, str]) -> dict[str, str]:
    if "userId" in fields:
        return {"user_id": fields["userId"]}
    if "username" not in fields:
        raise BadRequest(f"accessInfo.username: is missing; {NEEDED}")
    return {"username": fields["username"], **_domain(fields, "user")}


def _scope(fields: Mapping[str, str]) -> dict[str, str]:
    if "projectId" in fields:
        return {"project_id": fields["projectId"]}
    if "project" not in fields:
        raise BadRequest(f"accessInfo.project: is missing; {NEEDED}")
    return {"project_name": fields["project"], **_domain(fields, "project")}


def _named_project(fields: Mapping[str, str]) -> tuple[str, str] | None:
    return next(((name, fields[name]) for name in ("projectId", "project") if name in fields), None)


def _domain(fields: Mapping[str, str], of: str) -> dict[str, str]:
    if name := fields.get(f"{of}Domain"):
        return {f"{of}_domain_name": name}
    return {f"{of}_domain_id": fields.get(f"{of}DomainId", DEFAULT_DOMAIN)}


def _who(fields: Mapping[str, str]) -> str:
    if "applicationCredentialSecret" in fields:
        return "the application credential"
    domain = fields.get("userDomain") or fields.get("userDomainId") or "default"
    return f"user {fields.get('username') or fields.get('userId')} of domain {domain}"
