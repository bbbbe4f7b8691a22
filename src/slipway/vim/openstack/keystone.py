"""A login to Keystone v3, and what went wrong with it in words that help: a 401 has at least three causes."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any

from slipway.model.errors import VimError, VimFault
from slipway.outside.guard import Guard
from slipway.vim.asking import Answer, ask, said
from slipway.vim.openstack.account import Account

TOKEN_HEADER = "X-Subject-Token"  # noqa: S105 - the name of a header


@dataclass(frozen=True)
class Token:
    """`body` is Keystone's `token`: who, where, until when, and the catalog."""

    value: str = field(repr=False)
    body: dict[str, Any] = field(repr=False)

    def services(self, interface: str) -> dict[str, tuple[str, ...]]:
        """Regions, each with the types of the services that have an endpoint there."""
        found: dict[str, set[str]] = {}
        for service in _dicts(self.body.get("catalog")):
            for endpoint in _dicts(service.get("endpoints")):
                region = endpoint.get("region_id") or endpoint.get("region")
                if endpoint.get("interface") == interface and isinstance(region, str):
                    found.setdefault(region, set()).add(said(service.get("type")))
        return {said(region): tuple(sorted(found[region])) for region in sorted(found)}


async def log_in(account: Account, tls: ssl.SSLContext, guard: Guard | None) -> Token:
    answer = await _authenticate(account, tls, guard, account.scope)
    if answer.status == 401:
        raise await _not_known(account, tls, guard, answer)
    return _token(account, answer)


async def _authenticate(account: Account, tls: ssl.SSLContext, guard: Guard | None, scope: Any) -> Answer:
    auth = {"identity": account.identity, **({} if scope is None else {"scope": scope})}
    return await ask("POST", f"{account.url}/auth/tokens", tls=tls, guard=guard, json={"auth": auth})


def _token(account: Account, answer: Answer) -> Token:
    if answer.status != 201:
        raise _refused(account, answer)
    value, body = answer.headers.get(TOKEN_HEADER), answer.document().get("token")
    if not value or not isinstance(body, dict):
        raise _no_keystone(account, "its answer holds no token")
    return Token(value, body)


async def _not_known(account: Account, tls: ssl.SSLContext, guard: Guard | None, first: Answer) -> VimError:
    """401 may mean a wrong password or a wrong project. A login without a project tells them apart."""
    message = said(_message(first), account.secrets)
    if account.scope is not None:
        unscoped = await _authenticate(account, tls, guard, "unscoped")
        if unscoped.status == 201:
            token = _token(account, unscoped)
            listed = await ask(
                "GET", f"{account.url}/auth/projects", tls=tls, guard=guard, headers={"X-Auth-Token": token.value}
            )
            names = [said(project.get("name")) for project in _dicts(listed.document().get("projects"))]
            return VimError(
                f"Keystone at {account.url} knows {account.who}, but gives no access to project {account.project!r}.",
                VimFault.AUTH,
                cure=f"correct accessInfo.project and projectDomain; possible are: {', '.join(names[:10]) or 'none'}.",
            )
    return VimError(
        f"Keystone at {account.url} does not let {account.who} in: 401 {message}.",
        VimFault.AUTH,
        cure="correct the name, its domain, and the password or secret.",
    )


def _refused(account: Account, answer: Answer) -> VimError:
    status, message = answer.status, said(_message(answer), account.secrets) or "no reason given"
    if status in (404, 405) or 200 <= status < 400:
        where = said(answer.headers.get("location"))
        return _no_keystone(account, f"the answer was {status}" + (f", with {where}" if where else ""))
    if status == 403:
        cure = "let Keystone's policy allow the login."
        return VimError(f"Keystone at {account.url} answered 403: {message}.", VimFault.AUTH, cure=cure)
    if status == 429 or status >= 500:
        return VimError(f"Keystone at {account.url} answered {status}: {message}.", VimFault.TEMPORARY)
    cure = "correct the attribute that is named."
    return VimError(f"Keystone at {account.url} answered {status}: {message}.", VimFault.PERMANENT, cure=cure)


def _no_keystone(account: Account, why: str) -> VimError:
    return VimError(
        f"There is no Keystone v3 at {account.url}: {why}.",
        VimFault.PERMANENT,
        cure="give Keystone's own URL as interfaceInfo.endpoint, such as https://host:5000/v3 or https://host/identity/v3.",
    )


def _message(answer: Answer) -> object:
    error = answer.document().get("error")
    return error.get("message") if isinstance(error, dict) else answer.body.decode(errors="replace")


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
