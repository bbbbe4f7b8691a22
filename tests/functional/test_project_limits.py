"""What one project may keep: packages, their bytes, subscriptions, VIMs. Also when two ask at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from slipway.lcm.vim_moves import missing_there
from slipway.notify.client import NotificationClient
from slipway.notify.subscription_service import SubscriptionService
from slipway.onboarding.onboarding import Onboarding
from slipway.outgoing.guard import Guard
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.store.database import Database
from slipway.store.project_limits import ProjectLimits
from slipway.store.secrets import Vault
from slipway.vim.drivers import Drivers
from slipway.vim_registry.choice import LARGEST_VIM
from slipway.vim_registry.registry import VimRegistry
from tests.unit.api.world import PACKAGES, World, a_world, sample_csar

SUBSCRIPTIONS = "/vnfpkgm/v1/subscriptions"
VIMS = "/slipway/v1/vims"


@asynccontextmanager
async def limited(database: Database, directory: Path, limits: ProjectLimits) -> AsyncIterator[World]:
    vault, guard = Vault(directory / "secrets.key"), Guard(loopback=True)
    onboarding = Onboarding(database, directory / "packages", vault, project_limits=limits)
    subscription_service = SubscriptionService(
        database, vault, guard, NotificationClient(guard), test=False, project_limits=limits
    )
    driver = SimulatedDriver(directory / "simulated")
    drivers = Drivers([driver])
    vims = VimRegistry(database, vault, drivers, partial(missing_there, drivers), limits=limits)
    async with a_world(
        database, directory, onboarding=onboarding, subscription_service=subscription_service, vims=vims
    ) as world:
        yield world
    driver.close()


async def test_a_project_has_a_largest_number_of_packages(database: Database, tmp_path: Path) -> None:
    async with limited(database, tmp_path, ProjectLimits(packages=3)) as world:
        answers = await asyncio.gather(*(world.client.post(PACKAGES, json={}) for _ in range(10)))
        assert sorted(answer.status_code for answer in answers) == [201] * 3 + [403] * 7
        detail = (await world.call("POST", PACKAGES, 403, json={})).json()["detail"]
        assert "3 VNF packages" in detail
        assert "max_project_packages" in detail
        await world.services.onboarding.create({}, "another project")
        (one, *_) = (await world.call("GET", PACKAGES, 200)).json()
        await world.call("DELETE", f"{PACKAGES}/{one['id']}", 204)
        await world.call("POST", PACKAGES, 201, json={})


async def test_a_project_has_a_largest_number_of_subscriptions(database: Database, tmp_path: Path) -> None:
    async with limited(database, tmp_path, ProjectLimits(subscriptions=3)) as world:
        bodies = [{"callbackUri": f"http://127.0.0.1:9999/{number}"} for number in range(10)]
        answers = await asyncio.gather(*(world.client.post(SUBSCRIPTIONS, json=body) for body in bodies))
        assert sorted(answer.status_code for answer in answers) == [201] * 3 + [403] * 7
        refused = await world.call("POST", "/vnflcm/v2/subscriptions", 403, json=bodies[0])
        assert "3 subscriptions" in refused.json()["detail"]
        assert "max_project_subscriptions" in refused.json()["detail"]
        known = next(body for body, answer in zip(bodies, answers, strict=True) if answer.status_code == 201)
        await world.call("POST", SUBSCRIPTIONS, 303, json=known)


def a_vim(name: str, **more: Any) -> dict[str, Any]:
    interface = {"endpoint": f"sim://{name}"} | more.pop("interface", {})
    return {"name": name, "vimType": "SLIPWAY.SIMULATED.V_1", "interfaceInfo": interface, **more}


async def test_a_project_has_a_largest_number_of_vims(database: Database, tmp_path: Path) -> None:
    async with limited(database, tmp_path, ProjectLimits(vims=3)) as world:
        answers = await asyncio.gather(*(world.client.post(VIMS, json=a_vim(f"v{number}")) for number in range(10)))
        assert sorted(answer.status_code for answer in answers) == [201] * 3 + [403] * 7
        detail = (await world.call("POST", VIMS, 403, json=a_vim("more"))).json()["detail"]
        assert "3 VIMs" in detail
        assert "max_project_vims" in detail
        await world.call("POST", VIMS, 201, json=a_vim("theirs", project="another"))
        (one, *_) = [answer.json()["name"] for answer in answers if answer.status_code == 201]
        await world.call("DELETE", f"{VIMS}/{one}", 204)
        await world.call("POST", VIMS, 201, json=a_vim("more"))


async def test_a_vim_has_a_largest_size(database: Database, tmp_path: Path) -> None:
    """However it is reached: made large at once, or by one change after another."""
    async with limited(database, tmp_path, ProjectLimits()) as world:
        large = {"note": "x" * LARGEST_VIM}
        for where in ("extra", "interface", "accessInfo"):
            refused = await world.call("POST", VIMS, 400, json=a_vim("large", **{where: large}))
            assert f"larger than {LARGEST_VIM >> 10} KiB" in refused.json()["detail"]
        half = "x" * (LARGEST_VIM // 2)
        await world.call("POST", VIMS, 201, json=a_vim("grown", extra={"one": half}))
        patch = {"headers": {"Content-Type": "application/merge-patch+json"}}
        grown = f"{VIMS}/grown"
        refused = await world.call("PATCH", grown, 400, json={"extra": {"two": half}}, **patch)
        assert "KiB" in refused.json()["detail"]
        assert set((await world.call("GET", grown, 200)).json()["extra"]) == {"one"}


async def test_equal_subscriptions_at_once_are_one(database: Database, tmp_path: Path) -> None:
    async with limited(database, tmp_path, ProjectLimits()) as world:
        body = {"callbackUri": "http://127.0.0.1:9999/told"}
        answers = await asyncio.gather(*(world.client.post(SUBSCRIPTIONS, json=body) for _ in range(8)))
        assert sorted(answer.status_code for answer in answers) == [201] + [303] * 7


async def test_a_project_has_a_largest_number_of_stored_bytes(database: Database, tmp_path: Path) -> None:
    content = await asyncio.to_thread(sample_csar(tmp_path).read_bytes)
    most = len(content) + 100
    async with limited(database, tmp_path, ProjectLimits(package_bytes=most)) as world:
        await world.onboard()
        made = [(await world.call("POST", PACKAGES, 201, json={})).json()["id"] for _ in range(2)]
        headers = {"Content-Type": "application/zip"}
        for one in made:
            where = f"{PACKAGES}/{one}"
            refused = await world.call("PUT", f"{where}/package_content", 413, content=content, headers=headers)
            assert "max_project_package_bytes" in refused.json()["detail"]
            assert str(most) in refused.json()["detail"]
            shown = (await world.call("GET", where, 200)).json()
            assert shown["onboardingState"] == "CREATED"
            assert shown["onboardingFailureDetails"]["status"] == 413
        assert [path.name for path in (tmp_path / "packages").glob(".incoming-*")] == []


async def test_two_uploads_at_once_do_not_pass_the_limit_together(database: Database, tmp_path: Path) -> None:
    content = await asyncio.to_thread(sample_csar(tmp_path).read_bytes)
    async with limited(database, tmp_path, ProjectLimits(package_bytes=len(content) + 100)) as world:
        made = [(await world.call("POST", PACKAGES, 201, json={})).json()["id"] for _ in range(3)]
        headers = {"Content-Type": "application/zip"}
        puts = (world.client.put(f"{PACKAGES}/{one}/package_content", content=content, headers=headers) for one in made)
        await asyncio.gather(*puts)
        states = [(await world.call("GET", f"{PACKAGES}/{one}", 200)).json()["onboardingState"] for one in made]
        assert states.count("ONBOARDED") <= 1
        stored = sum(path.stat().st_size for path in (tmp_path / "packages").iterdir())
        assert stored <= len(content) + 100


async def test_an_endless_upload_is_cut_off_at_the_limit(database: Database, tmp_path: Path) -> None:
    """Long before its end, and whatever its length was said to be."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 1 << 30:
            sent += 1 << 20
            yield b"x" * (1 << 20)

    async with limited(database, tmp_path, ProjectLimits(package_bytes=10 << 20)) as world:
        one = (await world.call("POST", PACKAGES, 201, json={})).json()["id"]
        headers = {"Content-Type": "application/zip"}
        await world.call("PUT", f"{PACKAGES}/{one}/package_content", 413, content=endless(), headers=headers)
    assert sent <= 80 << 20


@pytest.mark.parametrize(
    "name", ["max_project_packages", "max_project_package_bytes", "max_project_subscriptions", "max_project_vims"]
)
def test_the_limits_are_settings(name: str) -> None:
    from slipway.settings import load_settings

    assert getattr(load_settings(overrides={name: 7}, environment={}), name) == 7
