"""Several processes and threads on one file make a machine once."""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from slipway.model.action import VimConnection
from slipway.model.machine import Found
from slipway.model.vim import SIMULATED
from slipway.simulator.vim import SimulatedDriver
from tests.contract.clusters import Cluster, differences
from tests.contract.plans import Context, run_plan

WANTED = Cluster().wanted("i", workers=20)
VIM = VimConnection(SIMULATED, {"endpoint": "sim://shared"}, {}, {})


def make_everything(driver: SimulatedDriver) -> None:
    asyncio.run(_make(driver))


def make_everything_in(directory: Path) -> None:
    driver = SimulatedDriver(directory)
    make_everything(driver)
    driver.close()


async def _make(driver: SimulatedDriver) -> None:
    await run_plan(driver, driver.steps_towards(WANTED, Found()), Context(VIM, "i"), twice=True)


@pytest.mark.parametrize("kind", [pytest.param("processes", marks=pytest.mark.slow), "threads"])
def test_many_at_once_make_each_machine_once(tmp_path: Path, kind: str) -> None:
    pool: Executor
    if kind == "processes":
        pool = ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn"))
    else:
        pool = ThreadPoolExecutor(4)
    with pool:
        for done in [pool.submit(make_everything_in, tmp_path) for _ in range(4)]:
            done.result()
    driver = SimulatedDriver(tmp_path)
    assert differences(asyncio.run(driver.find(VIM, "i")), WANTED) == []
    assert asyncio.run(driver.calls(VIM))["get_machine"] == 4 * 2 * 21
    driver.close()


def test_one_driver_serves_several_threads(tmp_path: Path) -> None:
    driver = SimulatedDriver(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(make_everything, driver) for _ in range(4)]:
            done.result()
    assert differences(asyncio.run(driver.find(VIM, "i")), WANTED) == []
    driver.close()
