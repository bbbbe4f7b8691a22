"""Stand-ins for the two a Kubernetes VIM talks to: an API server that knows its users, and an OpenID token endpoint."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.unit.vim.authority import Authority
from tests.unit.vim.loopback import Asked, Reply, serving


@dataclass
class Cluster:
    url: str = ""
    authority: Authority = field(default_factory=Authority)
    tokens: dict[str, str] = field(default_factory=dict)  # and whose they are
    passwords: dict[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = ("one", "two")
    namespaces: tuple[str, ...] = ("default", "kube-system")
    items: list[Any] | None = None  # of all lists, in place of nodes and namespaces
    forbidden: frozenset[str] = frozenset()
    metadata: dict[str, str] = field(default_factory=dict)  # of all lists
    tells_version: bool = True
    asked: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        user = self._user(asked)
        if user is None:
            return _status(401, "Unauthorized", "Unauthorized")
        if asked.path == "/version" and self.tells_version:
            return Reply(200, {"major": "1", "minor": "31", "gitVersion": "v1.31.2"})
        known = {"/api/v1/nodes": self.nodes, "/api/v1/namespaces": self.namespaces}
        if asked.path not in known:
            return _status(404, "NotFound", "the server could not find the requested resource")
        what = asked.path.rpartition("/")[2]
        if user == "system:anonymous" or what in self.forbidden:
            message = f'{what} is forbidden: User "{user}" cannot list resource "{what}" at the cluster scope'
            return _status(403, "Forbidden", message)
        items = [{"metadata": {"name": name}} for name in known[asked.path]]
        items = items if self.items is None else self.items
        return Reply(200, {"kind": "List", "apiVersion": "v1", "metadata": self.metadata, "items": items})

    def _user(self, asked: Asked) -> str | None:
        """None is a 401. Who shows nothing that is looked at is anonymous, as in a cluster that kubeadm made."""
        kind, _, value = asked.headers.get("authorization", "").partition(" ")
        if kind == "Bearer":
            return self.tokens.get(value)
        if kind == "Basic" and self.passwords:
            name, _, password = base64.b64decode(value).decode().partition(":")
            return name if self.passwords.get(name) == password else None
        return asked.client or "system:anonymous"


@dataclass
class TokenEndpoint:
    """Gives id tokens for one user of one client."""

    url: str = ""
    username: str = "operator"
    password: str = "oidc-password"
    client_id: str = "slipway"
    client_secret: str | None = "oidc-secret"
    ends: float | int = 4e9
    refreshes: bool = True
    without_id_token: bool = False
    cluster: Cluster | None = None  # that is to believe the tokens
    asked: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        form = asked.form
        if form.get("client_id") != self.client_id or form.get("client_secret") != self.client_secret:
            return Reply(401, {"error": "invalid_client", "error_description": "Invalid client credentials"})
        if form.get("grant_type") == "password":
            if (form.get("username"), form.get("password")) != (self.username, self.password):
                return Reply(401, {"error": "invalid_grant", "error_description": "Invalid user credentials"})
        elif form.get("grant_type") != "refresh_token" or not self.refreshes:
            return Reply(400, {"error": "invalid_grant", "error_description": "Token is not active"})
        token = f"{_part({'alg': 'none'})}.{_part({'exp': self.ends, 'n': len(self.asked)})}.signature"
        if self.cluster:
            self.cluster.tokens[token] = self.username
        given = {"access_token": "a", "refresh_token": "r", "expires_in": 60, "token_type": "Bearer"}
        return Reply(200, given if self.without_id_token else {**given, "id_token": token})

    @property
    def grants(self) -> list[str]:
        return [asked.form["grant_type"] for asked in self.asked]


@contextmanager
def a_cluster() -> Iterator[Cluster]:
    cluster = Cluster(tokens={"good-token": "system:serviceaccount:default:slipway"})
    with serving(cluster.answer, cluster.authority.server_context("127.0.0.1", "kubernetes")) as url:
        cluster.url = url
        yield cluster


@contextmanager
def a_token_endpoint(cluster: Cluster | None = None) -> Iterator[TokenEndpoint]:
    endpoint = TokenEndpoint(cluster=cluster)
    with serving(endpoint.answer) as url:
        endpoint.url = f"{url}/realms/lab/protocol/openid-connect/token"
        yield endpoint


def _part(claims: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()


def _status(code: int, reason: str, message: str) -> Reply:
    return Reply(code, {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message})
