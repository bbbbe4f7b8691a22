"""A Keystone as far as validating tokens goes: logins by password, GET /v3/auth/tokens, on a real socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.unit.outgoing.loopback_server import Answer, Asked, LoopbackServer, document, serving

PASSWORD = "of the service"


@dataclass
class SmallKeystone:
    """`tokens`: what Keystone knows. `status`: what it answers with in place of its work."""

    now: float = 1_800_000_000.0
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    logins: int = 0
    lookups: int = 0
    status: int | None = None
    password: str = PASSWORD
    own_life: float = 3600.0
    server: LoopbackServer = field(default_factory=LoopbackServer)

    def issue(self, token: str, *roles: str, project: str | None = "p1", user: str = "ada", life: float = 3600) -> None:
        body: dict[str, Any] = {
            "user": {"id": "u1", "name": user, "domain": {"name": "Default"}},
            "roles": [{"id": role, "name": role} for role in roles],
            "expires_at": self._written(self.now + life),
        }
        self.tokens[token] = body | ({} if project is None else {"project": {"id": project, "name": "demo"}})

    def answer(self, asked: Asked) -> Answer:
        if self.status is not None:
            return document({"error": {"code": self.status, "message": "no"}}, self.status)
        if asked.path.partition("?")[0] != "/v3/auth/tokens":
            return document({"error": {"code": 404}}, 404)
        return self._login(asked) if asked.method == "POST" else self._validate(asked)

    def _login(self, asked: Asked) -> Answer:
        self.logins += 1
        auth = json.loads(asked.body)["auth"]
        user = auth["identity"]["password"]["user"]
        if (user["name"], user["domain"]["name"], user["password"]) != ("slipway", "Default", self.password):
            return document({"error": {"code": 401, "message": "who?"}}, 401)
        assert auth["scope"]["project"] == {"name": "service", "domain": {"name": "Default"}}
        token = f"own-{self.logins}"
        self.own.add(token)
        return document({"token": {"expires_at": self._written(self.now + self.own_life)}}, 201, X_Subject_Token=token)

    def _validate(self, asked: Asked) -> Answer:
        self.lookups += 1
        if asked.headers.get("x-auth-token") not in self.own:
            return document({"error": {"code": 401}}, 401)
        found = self.tokens.get(asked.headers["x-subject-token"])
        return document({"token": found}) if found else document({"error": {"code": 404}}, 404)

    def _written(self, moment: float) -> str:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@asynccontextmanager
async def small_keystone() -> AsyncIterator[SmallKeystone]:
    keystone = SmallKeystone()
    async with serving(keystone.answer) as server:
        keystone.server = server
        yield keystone
