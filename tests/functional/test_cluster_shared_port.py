"""Three masters that share the address of a port which only the VIM's template has: known when the stack is there."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.lcm.record import inventory
from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType, State
from slipway.model.requests import HealRequest, InstantiateRequest
from tests.drivers.shared_port_stack import FLOATING, FLOATING_ADDRESS, NAME, SharedPortStack
from tests.functional.cluster_rig import CLUSTER, FORCEFUL, ClusterRig, cluster_rig, out, parameters
from tests.functional.rig import settings_in


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    sample = tmp_path / "sample"
    shutil.copytree(CLUSTER, sample)
    template = sample / "BaseHOT" / "ha" / "cluster.yaml"
    template.parent.mkdir(parents=True)
    template.write_text("heat_template_version: 2021-04-16\n")
    async with cluster_rig(settings_in(tmp_path / "data"), sample=sample, simulated=SharedPortStack) as rig:
        yield rig


def instantiate(port: str = NAME, **master: Any) -> InstantiateRequest:
    given = parameters(masters=3)
    node = given["k8s_cluster_installation_param"]["master_node"]
    del node["cluster_ip"]
    node |= {"cluster_cp_name": port, **master}
    return InstantiateRequest(flavour_id="ha", additional_params=given)


async def shared_address(rig: ClusterRig, instance_id: str) -> str:
    """As the record has it, and as the cluster uses it."""
    vnf = (await rig.rig.instance(instance_id)).vnf
    (port,) = inventory(vnf.instantiated_vnf_info).ports
    assert port.name == NAME
    assert port.address
    health = await rig.rig.slipway.clusters.health(instance_id)
    assert (health.virtual_address, health.virtual_address_answers) == (port.address, True)
    assert vnf.vim_connection_info["kubernetes"].interface_info["endpoint"] == f"https://{port.address}:16443"
    return port.address


async def test_a_cluster_lives_behind_the_address_of_the_templates_port(rig: ClusterRig) -> None:
    instance_id = await rig.rig.create()
    await rig.completed(OperationType.INSTANTIATE, instance_id, instantiate())
    await rig.check(instance_id)
    address = await shared_address(rig, instance_id)
    await rig.completed(OperationType.SCALE, instance_id, out(1))
    await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "masterNode-0", "masterNode-2"))
    await rig.check(instance_id)
    assert await shared_address(rig, instance_id) == address
    await rig.completed(OperationType.HEAL, instance_id, HealRequest())
    await rig.check(instance_id)
    await shared_address(rig, instance_id)
    await rig.completed(OperationType.TERMINATE, instance_id, FORCEFUL)
    await rig.check(instance_id)


async def test_nodes_and_cluster_are_reached_by_floating_ips_where_the_request_names_them(rig: ClusterRig) -> None:
    by_floating_ip = instantiate(cluster_fip_name=FLOATING)
    given = by_floating_ip.additional_params["k8s_cluster_installation_param"]
    for role, vdu in (("master_node", "masterNode"), ("worker_node", "workerNode")):
        given[role] |= {"ssh_cp_name": f"{vdu}_FloatingIP", "nic_cp_name": f"{vdu}_CP1"}
    instance_id = await rig.rig.create()
    await rig.completed(OperationType.INSTANTIATE, instance_id, by_floating_ip)
    await rig.check(instance_id)
    vnf = (await rig.rig.instance(instance_id)).vnf
    endpoint = f"https://{FLOATING_ADDRESS}:16443"
    assert vnf.vim_connection_info["kubernetes"].interface_info["endpoint"] == endpoint
    assert endpoint in (await rig.rig.slipway.clusters.kubeconfig(instance_id)).kubeconfig
    machines = inventory(vnf.instantiated_vnf_info).machines
    assert all(f"{one.vdu}_FloatingIP" in one.ports[0].floating for one in machines), "the record knows them"
    health = await rig.rig.slipway.clusters.health(instance_id)
    assert (health.problems, health.virtual_address_answers) == ((), True)
    await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "masterNode-1"))
    await rig.completed(OperationType.SCALE, instance_id, out(1))
    await rig.check(instance_id)
    await rig.completed(OperationType.TERMINATE, instance_id, FORCEFUL)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (instantiate("other_CP"), "has no port 'other_CP' beside those of machines. Cure: name a port"),
        (instantiate(cluster_ip="10.11.0.250"), "and cluster_ip is 10.11.0.250. Cure: leave cluster_ip out"),
    ],
    ids=["unknown", "another address"],
)
async def test_what_only_the_stack_can_tell_stops_the_first_step_and_can_be_rolled_back(
    rig: ClusterRig, request_: InstantiateRequest, reason: str
) -> None:
    instance_id = await rig.rig.create()
    operation, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, request_)
    assert "prepare masterNode-0" in detail
    assert "additionalParams.k8s_cluster_installation_param.master_node.cluster_cp_name: " in detail
    assert reason in detail
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    await rig.check(instance_id)


async def test_a_package_without_a_template_has_no_such_port(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), simulated=SharedPortStack) as rig:
        instance_id = await rig.rig.create()
        with pytest.raises(BadRequest, match=f"cluster_cp_name: the flavour has no connection point '{NAME}'"):
            await rig.rig.run(OperationType.INSTANTIATE, instance_id, instantiate())
