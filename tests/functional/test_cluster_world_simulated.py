"""Simulated hosts, and the cluster on them, keep the contract."""

from __future__ import annotations

from pathlib import Path

from slipway.cluster.spec import SshLogin
from slipway.model.action import VimConnection
from slipway.model.machine import Found
from slipway.model.vim import SIMULATED
from slipway.simulator.cluster.connector import SimulatedConnector
from slipway.simulator.vim.driver import SimulatedDriver
from tests.contract.bootstrap_checks import BOOTSTRAP_CHECKS
from tests.contract.cluster_world import INSTANCE, keep_contract, stage_on, wanted_machines
from tests.contract.host_checks import HOST_CHECKS
from tests.contract.kube_checks import KUBE_CHECKS
from tests.contract.plans import Context, run_plan
from tests.contract.registry_checks import REGISTRY_CHECKS
from tests.contract.storage_checks import STORAGE_HOST_CHECKS, STORAGE_KUBE_CHECKS


async def test_the_simulated_world_keeps_the_contract(tmp_path: Path) -> None:
    vim = VimConnection(SIMULATED, {"endpoint": "sim://contract"}, {}, {})
    driver, connector = SimulatedDriver(tmp_path), SimulatedConnector(tmp_path)
    try:
        await run_plan(driver, driver.steps_towards(wanted_machines(None), Found()), Context(vim, INSTANCE))
        found = await driver.find(vim, INSTANCE)
        login = SshLogin(username="root", password="over the hills")
        stage = stage_on(connector, vim, found.machines, login, None, patience=2.0)
        hosts = (*HOST_CHECKS, *STORAGE_HOST_CHECKS)
        clusters = (*BOOTSTRAP_CHECKS, *REGISTRY_CHECKS, *STORAGE_KUBE_CHECKS, *KUBE_CHECKS)
        await keep_contract(stage, (*hosts, *clusters))
    finally:
        driver.close()
        connector.close()
