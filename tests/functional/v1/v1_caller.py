"""A client of version 1 of the lifecycle interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from tests.unit.api.world import BASE_URL, PACKAGES, World

V1 = "/vnflcm/v1"
INSTANCES = f"{V1}/vnf_instances"
OP_OCCS = f"{V1}/vnf_lcm_op_occs"
RULES = "/slipway/v1/vims/sim/rules"
BROKEN = [{"kind": "error", "call": "make_machine", "machine": "workerNode-1", "fault": "permanent", "message": "no"}]
SLOW = [{"kind": "latency", "call": "make_machine", "seconds": 5}]
SIMPLE = {"flavourId": "simple"}
FORCEFUL = {"terminationType": "FORCEFUL"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass
class Caller:
    """Someone who speaks v1 only, and sends no Version header. `world` looks at the same things through v2."""

    world: World
    client: httpx.AsyncClient

    async def call(self, method: str, path: str, status: int, **more: Any) -> httpx.Response:
        """As `World.call`, and no answer of v1 bears a version."""
        answer = await World(self.world.services, self.client, self.world.driver, self.world.directory).call(
            method, path, status, **more
        )
        assert "version" not in answer.headers
        return answer

    async def create(self, **more: Any) -> str:
        known = (await self.world.call("GET", PACKAGES, 200)).json()
        package = known[0] if known else await self.world.onboard()
        answer = await self.call("POST", INSTANCES, 201, json={"vnfdId": package["vnfdId"], **more})
        assert answer.headers["location"] == f"{BASE_URL}{INSTANCES}/{answer.json()['id']}"
        return str(answer.json()["id"])

    async def begin(self, instance_id: str, action: str, body: dict[str, Any]) -> str:
        return self.begun(await self.call("POST", f"{INSTANCES}/{instance_id}/{action}", 202, json=body))

    def begun(self, answer: httpx.Response) -> str:
        assert answer.content == b""
        where, _, operation_id = answer.headers["location"].rpartition("/")
        assert where == f"{BASE_URL}{OP_OCCS}"
        return operation_id

    async def ended(self, operation_id: str, *states: str) -> dict[str, Any]:
        await self.world.ended(operation_id, *states)
        shown: dict[str, Any] = (await self.call("GET", f"{OP_OCCS}/{operation_id}", 200)).json()
        return shown

    async def run(
        self, instance_id: str, action: str, body: dict[str, Any], state: str = "COMPLETED"
    ) -> dict[str, Any]:
        return await self.ended(await self.begin(instance_id, action, body), state)

    async def patch(self, instance_id: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self.call("PATCH", f"{INSTANCES}/{instance_id}", 202, json=body)
        return await self.ended(self.begun(answer))

    async def show(self, instance_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.call("GET", f"{INSTANCES}/{instance_id}", 200)).json()
        return shown

    async def instantiated(self, **more: Any) -> str:
        await self.world.add_vim()
        instance_id = await self.create()
        await self.run(instance_id, "instantiate", {**SIMPLE, **more})
        return instance_id

    async def failed(self) -> tuple[str, str]:
        """An instantiation in FAILED_TEMP."""
        await self.world.add_vim()
        instance_id = await self.create()
        await self.world.call("PUT", RULES, 200, json=BROKEN)
        return instance_id, (await self.run(instance_id, "instantiate", SIMPLE, "FAILED_TEMP"))["id"]


def resources(shown: dict[str, Any]) -> list[str]:
    return [vnfc["id"] for vnfc in shown["instantiatedVnfInfo"]["vnfcResourceInfo"]]
