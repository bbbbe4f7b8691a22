"""A stand-in for Keystone, as its API v3 is written: logins by password and application credential, scopes, catalogs,
and the validation of other people's tokens.

    with a_keystone() as keystone:
        keystone.url                                        # http://127.0.0.1:PORT/v3
        token = keystone.issue("admin", "demo")             # without a login
        keystone.revoke(token)
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from tests.unit.vim.loopback import Asked, Reply, serving

VALIDATORS = frozenset({"admin", "service"})  # roles that may ask about tokens that are not theirs
SERVICES = ("compute", "identity", "image", "network", "orchestration")


@dataclass
class User:
    """`roles` are those on each project, by its name."""

    password: str
    roles: dict[str, list[str]]
    domain: str = "Default"
    id: str = field(default_factory=lambda: uuid4().hex)


@dataclass
class Project:
    domain: str = "Default"
    id: str = field(default_factory=lambda: uuid4().hex)


@dataclass
class ApplicationCredential:
    name: str
    secret: str
    user: str
    project: str
    id: str = field(default_factory=lambda: uuid4().hex)


@dataclass
class Keystone:
    url: str = ""
    users: dict[str, User] = field(default_factory=dict)
    projects: dict[str, Project] = field(default_factory=dict)
    credentials: list[ApplicationCredential] = field(default_factory=list)
    regions: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"RegionOne": SERVICES})
    endpoints: dict[str, str] = field(default_factory=dict)  # of services that are elsewhere
    asked: list[Asked] = field(default_factory=list)
    broken: Reply | None = None  # answers all requests
    lifetime: timedelta = timedelta(hours=1)
    _tokens: dict[str, dict[str, Any]] = field(default_factory=dict)

    def issue(self, user: str, project: str | None = None, method: str = "password") -> str:
        """A token as a login would give it."""
        value = f"gAAAAA{uuid4().hex}"
        now = datetime.now(UTC)
        account = self.users[user]
        token: dict[str, Any] = {
            "methods": [method],
            "user": {
                "id": account.id,
                "name": user,
                "domain": _domain(account.domain),
                "password_expires_at": None,
            },
            "audit_ids": [uuid4().hex[:22]],
            "issued_at": _time(now),
            "expires_at": _time(now + self.lifetime),
        }
        if project is not None:
            home = self.projects[project]
            token["project"] = {"id": home.id, "name": project, "domain": _domain(home.domain)}
            token["is_domain"] = False
            token["roles"] = [{"id": f"role-{role}", "name": role} for role in account.roles[project]]
            token["catalog"] = self._catalog()
        self._tokens[value] = token
        return value

    def revoke(self, token: str) -> None:
        del self._tokens[token]

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if self.broken:
            return self.broken
        routes = {
            ("POST", "/v3/auth/tokens"): self._log_in,
            ("GET", "/v3/auth/tokens"): self._validate,
            ("HEAD", "/v3/auth/tokens"): self._validate,
            ("DELETE", "/v3/auth/tokens"): self._revoke,
            ("GET", "/v3/auth/projects"): self._own_projects,
            ("GET", "/v3/auth/catalog"): self._own_catalog,
            ("GET", "/v3"): self._version,
            ("GET", "/v3/"): self._version,
            ("GET", "/"): self._versions,
        }
        handler = routes.get((asked.method, asked.path))
        return handler(asked) if handler else _error(404, "The resource could not be found.")

    def _log_in(self, asked: Asked) -> Reply:
        try:
            auth = asked.document["auth"]
            method = auth["identity"]["methods"][0]
            part = auth["identity"][method]
        except (KeyError, IndexError, TypeError, ValueError):
            return _error(400, "Expecting to find auth in request body.")
        scope: Any = auth.get("scope")
        if method == "password":
            user = self._by_password(part["user"])
            known = user is not None
        elif method == "application_credential":
            credential = self._credential(part)
            known, user = credential is not None, credential.user if credential else None
            scope = {"project": {"name": credential.project, "domain": {"name": "Default"}}} if credential else None
        elif method == "token":
            token = self._live(part["id"])
            known, user = token is not None, token["user"]["name"] if token else None
        else:
            return _error(401, f"Attempted to authenticate with an unsupported method {method}.")
        if not known or user is None:
            return _unauthorized()
        project = None
        if isinstance(scope, dict) and "project" in scope:
            project = self._project(scope["project"])
            if project is None or project not in self.users[user].roles:
                return _unauthorized()
        value = self.issue(user, project, method)
        return Reply(201, {"token": self._tokens[value]}, {"X-Subject-Token": value, "Vary": "X-Auth-Token"})

    def _by_password(self, given: dict[str, Any]) -> str | None:
        for name, user in self.users.items():
            named = given.get("id") == user.id or (given.get("name") == name and _in(given.get("domain"), user.domain))
            if named and given.get("password") == user.password:
                return name
        return None

    def _credential(self, given: dict[str, Any]) -> ApplicationCredential | None:
        for one in self.credentials:
            of = given.get("user") or {}
            named = given.get("id") == one.id or (given.get("name") == one.name and of.get("name") == one.user)
            if named and given.get("secret") == one.secret:
                return one
        return None

    def _project(self, given: dict[str, Any]) -> str | None:
        for name, project in self.projects.items():
            if given.get("id") == project.id or (
                given.get("name") == name and _in(given.get("domain"), project.domain)
            ):
                return name
        return None

    def _validate(self, asked: Asked) -> Reply:
        """With two tokens: who asks, and about what. Everybody may ask about their own."""
        own, subject = asked.headers.get("x-auth-token", ""), asked.headers.get("x-subject-token", "")
        caller = self._live(own)
        if caller is None:
            return _unauthorized()
        roles = {role["name"] for role in caller.get("roles", ())}
        if own != subject and not roles & VALIDATORS:
            return _error(403, "You are not authorized to perform the requested action: identity:validate_token.")
        token = self._live(subject)
        if token is None:
            return _error(404, f"Could not find token: {subject[:8]}.")
        shown = {key: value for key, value in token.items() if key != "catalog" or "nocatalog" not in asked.query}
        return Reply(200, {"token": shown}, {"X-Subject-Token": subject})

    def _revoke(self, asked: Asked) -> Reply:
        if self._live(asked.headers.get("x-auth-token", "")) is None:
            return _unauthorized()
        if self._tokens.pop(asked.headers.get("x-subject-token", ""), None) is None:
            return _error(404, "Could not find token.")
        return Reply(204)

    def _own_projects(self, asked: Asked) -> Reply:
        token = self._live(asked.headers.get("x-auth-token", ""))
        if token is None:
            return _unauthorized()
        roles = self.users[token["user"]["name"]].roles
        own = [{"id": self.projects[name].id, "name": name, "enabled": True} for name in roles]
        return Reply(200, {"projects": own, "links": {"self": f"{self.url}/auth/projects", "next": None}})

    def _own_catalog(self, asked: Asked) -> Reply:
        token = self._live(asked.headers.get("x-auth-token", ""))
        return _unauthorized() if token is None else Reply(200, {"catalog": token.get("catalog", [])})

    def _version(self, asked: Asked) -> Reply:
        return Reply(200, {"version": self._described()})

    def _versions(self, asked: Asked) -> Reply:
        return Reply(300, {"versions": {"values": [self._described()]}}, {"Location": f"{self.url}/"})

    def _described(self) -> dict[str, Any]:
        return {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{self.url}/"}]}

    def _catalog(self) -> list[dict[str, Any]]:
        kinds = sorted({kind for services in self.regions.values() for kind in services})
        return [
            {
                "id": f"service-{kind}",
                "type": kind,
                "name": kind,
                "endpoints": [
                    {
                        "id": f"{kind}-{region}-{interface}",
                        "interface": interface,
                        "region": region,
                        "region_id": region,
                        "url": self.endpoints.get(kind, f"{self.url.removesuffix('/v3')}/{kind}"),
                    }
                    for region, services in self.regions.items()
                    if kind in services
                    for interface in ("public", "internal")
                ],
            }
            for kind in kinds
        ]

    def _live(self, value: str) -> dict[str, Any] | None:
        token = self._tokens.get(value)
        return token if token and datetime.fromisoformat(token["expires_at"]) > datetime.now(UTC) else None


@contextmanager
def a_keystone(tls: ssl.SSLContext | None = None) -> Iterator[Keystone]:
    """With an admin, a member of one project, and a service that may validate tokens; their passwords are their names
    with `-password` behind.
    """
    keystone = Keystone(
        users={
            "admin": User("admin-password", {"admin": ["admin", "member", "reader"], "demo": ["admin"]}),
            "demo": User("demo-password", {"demo": ["member", "reader"]}),
            "slipway": User("slipway-password", {"service": ["service"]}),
        },
        projects={"admin": Project(), "demo": Project(), "service": Project(), "other": Project()},
    )
    with serving(keystone.answer, tls) as url:
        keystone.url = f"{url}/v3"
        yield keystone


def _domain(name: str) -> dict[str, str]:
    return {"id": name.lower(), "name": name}


def _in(given: Any, domain: str) -> bool:
    return isinstance(given, dict) and (given.get("name") == domain or given.get("id") == domain.lower())


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _unauthorized() -> Reply:
    reply = _error(401, "The request you have made requires authentication.")
    return Reply(reply.status, reply.document, {"WWW-Authenticate": 'Keystone uri="http://127.0.0.1/v3"'})


def _error(code: int, message: str) -> Reply:
    titles = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}
    return Reply(code, {"error": {"code": code, "message": message, "title": titles[code]}})
