"""Things of the project blue, and callers of every kind: for tests of who sees and touches what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from slipway.access.authenticator import FIRST
from slipway.model.access import Role
from slipway.model.clock import utcnow
from slipway.model.subscription import Interface, Subscription
from slipway.store import subscriptions
from slipway.store.database import Database
from tests.unit.api.world import LCM, PACKAGES, TOKEN, World, a_world, sample_csar

# Those that are given tokens: name, role, project.
CALLERS = {
    "reader": (Role.READER, "blue"),
    "operator": (Role.OPERATOR, "blue"),
    "admin": (Role.ADMIN, "blue"),
    "stranger": (Role.OPERATOR, "red"),
    "strange admin": (Role.ADMIN, "red"),
}
ALL_PROJECTS = "admin of all projects"


@dataclass(frozen=True)
class Projects:
    """`things` are those of blue, by what they are."""

    world: World
    tokens: dict[str, str]
    things: dict[str, str]

    async def ask(self, who: str | None, method: str, path: str, **kwargs: Any) -> httpx.Response:
        headers = {"X-Auth-Token": self.tokens[who] if who else "", **kwargs.pop("headers", {})}
        return await self.world.client.request(method, path, headers=headers, **kwargs)

    async def did(self, who: str, method: str, path: str, status: int, **kwargs: Any) -> httpx.Response:
        answer = await self.ask(who, method, path, **kwargs)
        assert answer.status_code == status, f"{who}: {method} {path}: {answer.status_code} {answer.text}"
        return answer

    async def onboard(self, who: str, csar: Path | None = None) -> dict[str, Any]:
        path = f"{PACKAGES}/{(await self.did(who, 'POST', PACKAGES, 201, json={})).json()['id']}"
        content = await asyncio.to_thread((csar or sample_csar(self.world.directory)).read_bytes)
        zipped = {"Content-Type": "application/zip"}
        await self.did(who, "PUT", f"{path}/package_content", 202, content=content, headers=zipped)
        shown: dict[str, Any] = (await self.did(who, "GET", path, 200)).json()
        assert shown["onboardingState"] == "ONBOARDED", shown
        return shown

    async def add_vim(self, who: str, name: str, endpoint: str, **more: Any) -> str:
        body = {"name": name, "vimType": "SLIPWAY.SIMULATED.V_1", "interfaceInfo": {"endpoint": endpoint}, **more}
        return str((await self.did(who, "POST", "/slipway/v1/vims", 201, json=body)).json()["id"])

    async def create(self, who: str, vnfd_id: str) -> str:
        made = await self.did(who, "POST", f"{LCM}/vnf_instances", 201, json={"vnfdId": vnfd_id})
        return str(made.json()["id"])

    async def run(self, who: str, instance_id: str, action: str, body: dict[str, Any], state: str = "COMPLETED") -> str:
        """The id of the operation, once it has ended."""
        begun = await self.did(who, "POST", f"{LCM}/vnf_instances/{instance_id}/{action}", 202, json=body)
        operation_id = str(begun.headers["location"]).rpartition("/")[2]
        await self.world.ended(operation_id, state)
        return operation_id

    async def instantiated(self, who: str, vnfd_id: str) -> tuple[str, str]:
        instance_id = await self.create(who, vnfd_id)
        return instance_id, await self.run(who, instance_id, "instantiate", {"flavourId": "simple"})


@asynccontextmanager
async def two_projects(database: Database, directory: Path, **more: Any) -> AsyncIterator[Projects]:
    async with a_world(database, directory, **more) as world:
        authenticator = world.services.authenticator
        assert authenticator is not None
        tokens = {ALL_PROJECTS: TOKEN, "nobody": "a-token-that-nobody-was-given"}
        records = {}
        for name, (role, project) in CALLERS.items():
            records[name], tokens[name] = await authenticator.add(FIRST, name, role, project)
        projects = Projects(world, tokens, {})
        vim_id = await projects.add_vim("operator", "blue-sim", "sim://blue", isDefault=True)
        package = await projects.onboard("operator")
        instance_id, operation_id = await projects.instantiated("operator", package["vnfdId"])
        projects.things.update(
            {
                "VIM": vim_id,
                "VIM's name": "blue-sim",
                "package": package["id"],
                "VNFD": package["vnfdId"],
                "instance": instance_id,
                "operation": operation_id,
                "token": records["reader"].id,
                "token's name": "reader",
            }
        )
        for interface in Interface:
            projects.things[f"subscription of {interface}"] = await _subscribed(database, interface)
        yield projects


async def _subscribed(database: Database, interface: Interface) -> str:
    """Past the API, which would call the subscriber first."""
    made = Subscription(
        id=f"subscription-of-blue-{interface.name}"[:36].lower(),
        interface=interface,
        callback_uri="http://127.0.0.1:8088/blue",
        created_at=utcnow(),
    )
    await database.write(subscriptions.insert_one, made, "blue")
    return made.id
