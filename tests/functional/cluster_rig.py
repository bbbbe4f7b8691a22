"""Clusters on simulated hosts, in this process: what to ask for, and how to see whether all is as it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.cluster.naming import node_name
from slipway.cluster.steps.liveness import LivenessLimits
from slipway.engine.interfaces import FaultInjector
from slipway.kube.interface import Object
from slipway.kube.nodes import node_is_ready
from slipway.kube.pods import condition, is_terminating
from slipway.model.instance import InstantiatedVnfInfo, InstantiationState
from slipway.model.journal import StepRecord
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import (
    AnyRequest,
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.settings import Settings
from slipway.simulator.cluster.api.client import SimulatedApi
from slipway.simulator.cluster.api.kinds import NODE, POD
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.cluster import Cluster, find_cluster
from slipway.simulator.cluster.connector import SimulatedConnector
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.store import vims
from slipway.vim.fault_rules import FaultTarget, Rule
from slipway.vim_registry.names import vim_id_of
from tests.functional.agreement import assert_agreement
from tests.functional.rig import SIMULATED_VIM, Rig, rig_in

CLUSTER = Path(__file__).parents[2] / "samples" / "cluster-sandbox"
VIP = "10.11.0.20"  # low: simulated machines have addresses of the upper half
PASSWORD = "over the hills"
FORCEFUL = TerminateRequest(termination_type=TerminationType.FORCEFUL)


def parameters(*, masters: int = 1, **more: Any) -> dict[str, Any]:
    master = {"vdu_id": "masterNode", "ssh_cp_name": "masterNode_CP1", "username": "root", "password": PASSWORD}
    worker = {"vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1", "username": "root", "password": PASSWORD}
    shared = {"cluster_ip": VIP} if masters > 1 else {}
    return {"k8s_cluster_installation_param": {"master_node": {**master, **shared}, "worker_node": worker, **more}}


def instantiate(masters: int = 1, **more: Any) -> InstantiateRequest:
    flavour = "simple" if masters == 1 else "ha"
    return InstantiateRequest(flavour_id=flavour, additional_params=parameters(masters=masters, **more))


def storage_parameters(**more: Any) -> dict[str, Any]:
    """A storage server that serves two volumes, as the sample's flavour `storage` has it."""
    server = {
        "ssh_cp_name": "storageServer_CP1",
        "username": "root",
        "password": PASSWORD,
        "cinder_volume_setup_params": [{"volume_resource_id": "storageServer_volume", "mount_to": "/volume"}],
        "nfs_server_setup_params": [
            {"export_dir": f"/volume/nfs/pv{number}", "export_to": "10.12.0.0/24"} for number in (1, 2)
        ],
    }
    volumes = [
        {"pv_manifest_file_path": f"Files/kubernetes/nfs-pv{number}.yaml", "nfs_server_cp": "storageServer_CP1"}
        for number in (1, 2)
    ]
    return {"storage_server": server, "pv_registration_params": volumes, **more}


def instantiate_storage(**more: Any) -> InstantiateRequest:
    return InstantiateRequest(flavour_id="storage", additional_params=parameters(**storage_parameters(**more)))


def out(steps: int = 1) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", number_of_steps=steps)


def back(steps: int = 1) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="workers", number_of_steps=steps)


def began(record: StepRecord) -> float:
    assert record.started_at is not None
    return record.started_at


def ended(record: StepRecord) -> float:
    assert record.ended_at is not None
    return record.ended_at


@dataclass(frozen=True)
class Seen:
    """A cluster as it is, behind everybody's back."""

    cluster: Cluster | None
    nodes: dict[str, Object]
    pods: list[Object]


@dataclass(frozen=True)
class ClusterRig:
    rig: Rig
    connector: SimulatedConnector

    async def cluster(self, masters: int = 1, **more: Any) -> str:
        instance_id = await self.rig.create()
        await self.completed(OperationType.INSTANTIATE, instance_id, instantiate(masters, **more))
        return instance_id

    async def completed(self, kind: OperationType, instance_id: str, request: AnyRequest) -> Operation:
        operation = await self.rig.run(kind, instance_id, request)
        assert operation.operation_state is State.COMPLETED, operation.error
        return operation

    async def failed(self, kind: OperationType, instance_id: str, request: AnyRequest) -> tuple[Operation, str]:
        operation = await self.rig.run(kind, instance_id, request)
        assert operation.operation_state is State.FAILED_TEMP
        assert operation.error is not None
        return operation, operation.error.detail

    async def rules(self, *rules: Rule) -> None:
        await self.rig.slipway.simulated.set_rules(SIMULATED_VIM, rules)

    async def host_calls(self) -> Counter[str]:
        """How often each thing was asked of each host: "workerNode-1 join"."""
        calls = await self.rig.slipway.simulated.calls(SIMULATED_VIM)
        return Counter({name.removeprefix("host "): n for name, n in calls.items() if name.startswith("host ")})

    async def machines(self, instance_id: str) -> dict[str, str]:
        """Ids by slot, as the record has them."""
        info = (await self.rig.instance(instance_id)).vnf.instantiated_vnf_info
        return {vnfc.metadata["name"]: vnfc.id for vnfc in info.vnfc_resource_info} if info else {}

    async def heal(self, instance_id: str, *slots: str) -> HealRequest:
        machines = await self.machines(instance_id)
        return HealRequest(vnfc_instance_id=tuple(machines[slot] for slot in slots))

    async def api(self, instance_id: str, slot: str = "masterNode-0") -> SimulatedApi:
        machine = (await self.machines(instance_id))[slot]
        return SimulatedApi(
            self.connector.simulation, SIMULATED_VIM, machine, FaultTarget(slot, "masterNode"), "10.11.0.1"
        )

    def seen(self) -> list[Seen]:
        """Every cluster on the VIM."""

        def look(db: Any, _: Any) -> list[Seen]:
            ids = [row[0] for row in db.execute("SELECT id FROM cluster").fetchall()]
            stores = {id_: ObjectStore(db, id_) for id_ in ids}
            return [
                Seen(
                    find_cluster(db, id_),
                    {node["metadata"]["name"]: node for node in store.all_of(NODE)},
                    store.all_of(POD),
                )
                for id_, store in stores.items()
            ]

        return self.connector.simulation.look(SIMULATED_VIM, look)

    async def check(self, instance_id: str, beside: frozenset[str] = frozenset()) -> None:
        """Record, VIM, cluster and registry say the same, and the cluster is well. `beside`: other instances."""
        vnf = (await self.rig.instance(instance_id)).vnf
        inventory = await self.rig.inventory()
        assert set(inventory) <= {instance_id} | beside
        assert_agreement(vnf.instantiated_vnf_info, inventory.get(instance_id))
        registered = [vim.id for vim in await self.rig.slipway.database.read(vims.list_all)]
        if vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
            assert self.seen() == []
            assert registered == ["simulated"]
            assert vnf.vim_connection_info == {}
            return
        assert sorted(registered) == sorted(["simulated", vim_id_of(instance_id)])
        assert vnf.vim_connection_info["kubernetes"].vim_id == vim_id_of(instance_id)
        health = await self.rig.slipway.clusters.health(instance_id)
        assert health.problems == ()
        assert vnf.instantiated_vnf_info is not None
        (seen,) = self.seen()
        _check_cluster(seen, vnf.instantiated_vnf_info, instance_id)


def _check_cluster(seen: Seen, info: InstantiatedVnfInfo, instance_id: str) -> None:
    nodes = [vnfc for vnfc in info.vnfc_resource_info if vnfc.vdu_id in ("masterNode", "workerNode")]
    machines = {node_name(instance_id, vnfc.metadata["name"]): vnfc for vnfc in nodes}
    assert set(seen.nodes) == set(machines)
    assert all(node_is_ready(node) for node in seen.nodes.values())
    assert not any(node.get("spec", {}).get("unschedulable") for node in seen.nodes.values())
    assert seen.cluster is not None
    masters = {name: vnfc.id for name, vnfc in machines.items() if vnfc.vdu_id == "masterNode"}
    assert sorted((member.name, member.machine) for member in seen.cluster.members) == sorted(masters.items())
    assert all(condition(pod, "Ready").get("status") == "True" for pod in seen.pods)
    assert not any(is_terminating(pod) or pod["spec"]["nodeName"] not in seen.nodes for pod in seen.pods)


@asynccontextmanager
async def cluster_rig(
    settings: Settings,
    *,
    fault_injector: FaultInjector | None = None,
    working: bool = True,
    sample: Path = CLUSTER,
    liveness: LivenessLimits | None = None,
    simulated: type[SimulatedDriver] = SimulatedDriver,
) -> AsyncIterator[ClusterRig]:
    async with rig_in(
        settings,
        fault_injector=fault_injector,
        working=working,
        management=(),
        hooks=None,
        sample=sample,
        liveness=liveness,
        simulated=simulated,
    ) as rig:
        yield ClusterRig(rig, rig.slipway.simulated_connector)
