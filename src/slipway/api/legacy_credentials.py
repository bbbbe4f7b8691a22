"""How the peer's VIM API writes credentials, and how we do: `auth_cred` and `vim_project` against `interfaceInfo` and
`accessInfo`. What has no name in the tables keeps its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slipway.model.errors import BadRequest
from slipway.model.secrets import is_reference
from slipway.model.vim import KUBERNETES, OPENSTACK, Vim

MASK = "***"
CERT_VERIFY = "cert_verify"
CA = "ssl_ca_cert"
NO_CA = "None"  # how the peer's documentation writes it; YAML makes a text of it
SKIP = "skipCertificateVerification"

_CREDENTIALS = {
    OPENSTACK: {
        "user_id": "userId",
        "user_domain_name": "userDomain",
        "user_domain_id": "userDomainId",
        "application_credential_id": "applicationCredentialId",
        "application_credential_name": "applicationCredentialName",
        "application_credential_secret": "applicationCredentialSecret",
    },
}
_PROJECT = {
    OPENSTACK: {
        "name": "project",
        "id": "projectId",
        "project_domain_name": "projectDomain",
        "project_domain_id": "projectDomainId",
    },
    KUBERNETES: {"name": "namespace"},
}
# Ways to log in: what names one, and what belongs to it alone. Whoever gives one anew takes leave of the others.
_WAYS = {
    OPENSTACK: (
        (("password",), ("password",)),
        (
            ("applicationCredentialSecret",),
            ("applicationCredentialId", "applicationCredentialName", "applicationCredentialSecret"),
        ),
    ),
    KUBERNETES: (
        (("bearer_token",), ("bearer_token",)),
        (("client_key",), ("client_certificate", "client_key")),
        (("oidc_token_url",), ("oidc_token_url", "client_id", "client_secret", "username", "password")),
        (("username", "password"), ("username", "password")),
    ),
}


def interface_of(auth_cred: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in _given(auth_cred):
        if key == CERT_VERIFY:
            found[SKIP] = not _truth(value)
        elif key == CA and value != NO_CA:
            found[CA] = value
    return found


def access_of(vim_type: str, auth_cred: Mapping[str, Any], vim_project: Mapping[str, Any]) -> dict[str, Any]:
    names, projects = _CREDENTIALS.get(vim_type, {}), _PROJECT.get(vim_type, {})
    found = {names.get(key, key): value for key, value in _given(auth_cred) if key not in (CERT_VERIFY, CA)}
    return found | {projects.get(key, f"project_{key}"): value for key, value in _given(vim_project)}


def access_patch(vim_type: str, access: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch: what is given over what was, without the ways to log in that it puts an end to."""
    ways = _WAYS.get(vim_type, ())
    taken = next((own for named, own in ways if all(name in access for name in named)), None)
    gone = {key for _, own in ways for key in own if key not in access} if taken else set()
    return dict.fromkeys(sorted(gone - set(taken or ()))) | dict(access)


def auth_cred_of(vim: Vim) -> dict[str, Any]:
    """With a mask where secrets are."""
    names = {ours: theirs for theirs, ours in _CREDENTIALS.get(vim.vim_type, {}).items()}
    projects = _PROJECT.get(vim.vim_type, {}).values()
    shown = {names.get(key, key): _masked(value) for key, value in vim.access_info.items() if key not in projects}
    if vim.vim_type == OPENSTACK or SKIP in vim.interface_info:
        shown[CERT_VERIFY] = str(str(vim.interface_info.get(SKIP, False)).lower() != "true")
    if CA in vim.interface_info:
        shown[CA] = _masked(vim.interface_info[CA])
    return shown


def vim_project_of(vim: Vim) -> dict[str, Any]:
    projects = _PROJECT.get(vim.vim_type, {})
    return {theirs: _masked(vim.access_info[ours]) for theirs, ours in projects.items() if ours in vim.access_info}


def _given(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Clients send empty strings for what was not given, and masks for secrets that they were shown masked."""
    return ((key, value) for key, value in part.items() if value not in (None, "", MASK))


def _masked(value: Any) -> Any:
    return MASK if is_reference(value) else value


def _truth(value: Any) -> bool:
    known = {"true": True, "false": False}
    if str(value).lower() not in known:
        raise BadRequest(f"auth_cred.{CERT_VERIFY}: it is True or False.")
    return known[str(value).lower()]
