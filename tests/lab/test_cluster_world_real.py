"""Real machines, and the cluster that kubeadm makes of them, keep the contract that simulated ones are held to."""

from __future__ import annotations

import pytest

from slipway.cluster.connectors import SshConnector
from slipway.cluster.spec import SshLogin
from slipway.model.action import VimConnection
from slipway.model.machine import Found
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.engines import Engines
from tests.contract.bootstrap_checks import BOOTSTRAP_CHECKS
from tests.contract.cluster_world import INSTANCE, keep_contract, stage_on, wanted_machines
from tests.contract.host_checks import HOST_CHECKS
from tests.contract.kube_checks import KUBE_CHECKS
from tests.contract.plans import Context, run_plan
from tests.contract.registry_checks import REGISTRY_CHECKS
from tests.contract.storage_checks import STORAGE_HOST_CHECKS, STORAGE_KUBE_CHECKS

pytestmark = pytest.mark.group(name="world")

REPOSITORY = "registry.slipway.test"


@pytest.mark.usefixtures("kubernetes_engines")
async def test_the_real_world_keeps_the_contract(
    driver: SandboxDriver, connection: VimConnection, engines: Engines
) -> None:
    connector = SshConnector()
    try:
        plan = driver.steps_towards(wanted_machines("kubernetes"), Found())
        context = Context(connection, INSTANCE)
        await run_plan(driver, plan, context)
        found = tuple(machine for outcome in context.outcomes.values() for machine in outcome.machines)
        login = SshLogin(username="slipway", password=str(connection.access_info["password"]))
        stage = stage_on(connector, connection, found, login, REPOSITORY, patience=120.0)
        hosts = (*HOST_CHECKS, *STORAGE_HOST_CHECKS)
        clusters = (*BOOTSTRAP_CHECKS, *REGISTRY_CHECKS, *STORAGE_KUBE_CHECKS, *KUBE_CHECKS)
        await keep_contract(stage, (*hosts, *clusters))
    finally:
        await connector.close()
