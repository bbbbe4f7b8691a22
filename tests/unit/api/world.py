"""A whole Slipway in one process: real database, worker, simulated VIM and package; only the socket is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from slipway.access.authenticator import Authenticator
from slipway.api.application import make_app
from slipway.api.services import Services
from slipway.cluster_access.clusters import RunningClusters
from slipway.engine.worker import Worker
from slipway.lcm.operation_handler import LcmOperationHandler
from slipway.lcm.service import Lcm
from slipway.lcm.vim_moves import missing_there
from slipway.mgmt.drivers import ManagementDrivers, Noop
from slipway.notify.client import NotificationClient
from slipway.notify.subscription_service import SubscriptionService
from slipway.onboarding.onboarding import Onboarding
from slipway.onboarding.package_files import PackageFiles
from slipway.outgoing.guard import Guard
from slipway.package.build import build_package
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim.contract import VimDriver
from slipway.vim.drivers import Drivers
from slipway.vim_registry.registry import VimRegistry

SAMPLE = Path(__file__).parents[3] / "samples" / "cluster-simulated"
TOKEN = "a-token-for-tests"
BASE_URL = "http://slipway.test"
LCM = "/vnflcm/v2"
PACKAGES = "/vnfpkgm/v1/vnf_packages"
ENDED = ("COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK")


@dataclass
class World:
    services: Services
    client: httpx.AsyncClient
    driver: SimulatedDriver
    directory: Path

    async def call(self, method: str, path: str, status: int, **kwargs: Any) -> httpx.Response:
        """A request whose answer must have this status; every error must be a ProblemDetails."""
        answer = await self.client.request(method, path, **kwargs)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == status
            assert answer.json()["detail"]
        return answer

    async def onboard(self, path: Path | None = None) -> dict[str, Any]:
        package = (await self.call("POST", PACKAGES, 201, json={})).json()
        content = await asyncio.to_thread((path or sample_csar(self.directory)).read_bytes)
        where = f"{PACKAGES}/{package['id']}"
        headers = {"Content-Type": "application/zip"}
        await self.call("PUT", f"{where}/package_content", 202, content=content, headers=headers)
        shown: dict[str, Any] = (await self.call("GET", where, 200)).json()
        return shown

    async def add_vim(self, **more: Any) -> dict[str, Any]:
        body = {
            "name": "sim",
            "vimType": "SLIPWAY.SIMULATED.V_1",
            "isDefault": True,
            "interfaceInfo": {"endpoint": "sim://one"},
            **more,
        }
        vim: dict[str, Any] = (await self.call("POST", "/slipway/v1/vims", 201, json=body)).json()
        return vim

    async def create(self, vnfd_id: str, **more: Any) -> str:
        answer = await self.call("POST", f"{LCM}/vnf_instances", 201, json={"vnfdId": vnfd_id, **more})
        assert answer.headers["location"] == f"{BASE_URL}{LCM}/vnf_instances/{answer.json()['id']}"
        return str(answer.json()["id"])

    async def show(self, instance_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.call("GET", f"{LCM}/vnf_instances/{instance_id}", 200)).json()
        return shown

    async def begin(self, instance_id: str, action: str, body: dict[str, Any]) -> str:
        answer = await self.call("POST", f"{LCM}/vnf_instances/{instance_id}/{action}", 202, json=body)
        assert answer.content == b""
        return answer.headers["location"].rsplit("/", 1)[1]

    async def ended(self, operation_id: str, *states: str) -> dict[str, Any]:
        """Wait until the operation rests, which must be in one of these states; COMPLETED when none is given."""
        async with asyncio.timeout(30):
            while True:
                shown: dict[str, Any] = (await self.call("GET", f"{LCM}/vnf_lcm_op_occs/{operation_id}", 200)).json()
                if shown["operationState"] in ENDED:
                    assert shown["operationState"] in (states or ("COMPLETED",)), shown
                    return shown
                await asyncio.sleep(0.02)

    async def run(
        self, instance_id: str, action: str, body: dict[str, Any], state: str = "COMPLETED"
    ) -> dict[str, Any]:
        return await self.ended(await self.begin(instance_id, action, body), state)

    async def instantiated(self, **more: Any) -> str:
        """A cluster that runs."""
        await self.add_vim()
        package = await self.onboard()
        instance_id = await self.create(package["vnfdId"])
        await self.run(instance_id, "instantiate", {"flavourId": "simple", **more})
        return instance_id


def sample_csar(directory: Path) -> Path:
    target = directory / "sample.csar"
    if not target.exists():
        build_package(SAMPLE, target)
    return target


def make_services(
    database: Database, directory: Path, driver: SimulatedDriver, others: Sequence[VimDriver] = (), **more: Any
) -> tuple[Services, Worker]:
    vault = Vault(directory / "secrets.key")
    drivers = Drivers([driver, *others])
    management = ManagementDrivers([Noop()])
    handler = LcmOperationHandler(
        database, vault, drivers, management, files=PackageFiles(database, directory / "packages")
    )
    actions = drivers.actions() | management.actions()
    worker = Worker(database, handler, actions)
    guard = Guard(loopback=True)
    client = NotificationClient(guard)
    nowhere: Any = None  # no VNF here is a cluster
    values: dict[str, Any] = {
        "database": database,
        "vault": vault,
        "lcm": Lcm(database, vault, handler, drivers, management, notifier=worker),
        "onboarding": Onboarding(database, directory / "packages", vault),
        "vims": VimRegistry(database, vault, drivers, partial(missing_there, drivers)),
        "clusters": RunningClusters(database, vault, nowhere, {}),
        "drivers": drivers,
        "subscription_service": SubscriptionService(database, vault, guard, client, test=False),
        "authenticator": Authenticator(TOKEN, database),
        "base_url": BASE_URL,
    }
    return Services(**(values | more)), worker


@asynccontextmanager
async def a_world(database: Database, directory: Path, **more: Any) -> AsyncIterator[World]:
    """`others`: drivers of VIMs beside the simulated one."""
    driver = SimulatedDriver(directory / "simulated")
    services, worker = make_services(database, directory, driver, **more)
    app: Any = make_app(services)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"X-Auth-Token": TOKEN, "Version": "2.0.0"}
    await worker.take_lease(alone=True)
    serving = asyncio.create_task(worker.serve())
    try:
        async with httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=headers) as client:
            yield World(services, client, driver, directory)
    finally:
        await worker.shut_down(5)
        await serving
        driver.close()
