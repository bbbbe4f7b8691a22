"""Clusters by kubespray on simulated hosts: what to ask for, and what is on the Ansible server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from slipway.engine.interfaces import FaultInjector
from slipway.model.requests import InstantiateRequest
from slipway.settings import Settings
from slipway.simulator.cluster.host import SimulatedHost, find_host
from slipway.simulator.vim.driver import SimulatedDriver
from tests.functional.cluster_rig import PASSWORD, ClusterRig, cluster_rig, storage_parameters
from tests.functional.rig import SIMULATED_VIM

SAMPLES = Path(__file__).parents[2] / "samples"
KUBESPRAY = SAMPLES / "cluster-kubespray-sandbox"
ADDRESS = "192.0.2.10"
ROOT = "/opt/kubespray"
BALANCER = {"ssh_cp_name": "externalLB_CP1", "ssh_username": "root", "ssh_password": PASSWORD}


def ansible(**more: Any) -> dict[str, Any]:
    return {"ip_address": ADDRESS, "username": "ansible", "password": "under the bridge", "kubespray_root_path": ROOT,
            **more}  # fmt: skip


def parameters(**more: Any) -> dict[str, Any]:
    login = {"username": "root", "password": PASSWORD}
    master = {"vdu_id": "masterNode", "ssh_cp_name": "masterNode_CP1", **login}
    worker = {"vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1", **login}
    said = {"master_node": master, "worker_node": worker, "ansible": ansible(), **more}
    return {"k8s_cluster_installation_param": {name: value for name, value in said.items() if value is not None}}


def instantiate(masters: int = 1, **more: Any) -> InstantiateRequest:
    return InstantiateRequest(flavour_id="simple" if masters == 1 else "ha", additional_params=parameters(**more))


def instantiate_storage(**more: Any) -> InstantiateRequest:
    """With a storage server, as the sample's flavour `storage` has it."""
    return InstantiateRequest(flavour_id="storage", additional_params=parameters(**storage_parameters(**more)))


def server_of(rig: ClusterRig, address: str = ADDRESS) -> SimulatedHost:
    """The Ansible server as it is, behind everybody's back."""
    return rig.connector.simulation.look(SIMULATED_VIM, lambda db, _: find_host(db, f"server {address}"))


def inventory_of(instance_id: str) -> str:
    return f"{ROOT}/inventory/slipway-{instance_id}"


@asynccontextmanager
async def kubespray_rig(
    settings: Settings,
    *,
    fault_injector: FaultInjector | None = None,
    working: bool = True,
    simulated: type[SimulatedDriver] = SimulatedDriver,
) -> AsyncIterator[ClusterRig]:
    async with cluster_rig(
        settings, fault_injector=fault_injector, working=working, sample=KUBESPRAY, simulated=simulated
    ) as rig:
        yield rig
