"""Clusters go to another version of Kubernetes with another package, on simulated hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.cluster.naming import node_name
from slipway.kube import paths
from slipway.kube.nodes import kubelet_version
from slipway.model.errors import BadRequest, Conflict, Unprocessable, VimFault
from slipway.model.instance import VnfInstance
from slipway.model.operation import OperationType, State
from slipway.model.requests import ChangePackageRequest, HealRequest
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.cluster_rig import CLUSTER, ClusterRig, cluster_rig, out
from tests.functional.next_package import NEXT_ID, OTHER_ID, onboard_next
from tests.functional.rig import settings_in

KIND = OperationType.CHANGE_VNFPKG
OLD, NEW = "1.33.13", "1.34.4"
NEXT = NEXT_ID
HOOKLESS = "6b1a5d0e-3c52-4f0a-9d57-1f5c2c7d8e13"
CHANGE = ChangePackageRequest(vnfd_id=NEXT)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    async with cluster_rig(settings_in(tmp_path / "data")) as rig:
        await onboard_next(rig.rig, CLUSTER, tmp_path, NEXT, image=NEW)
        yield rig


def to(version: str) -> ChangePackageRequest:
    return ChangePackageRequest(vnfd_id=NEXT, additional_params=asked(version))


def asked(version: str) -> dict[str, Any]:
    return {"k8s_cluster_installation_param": {"kubernetes_version": version}}


def failing(script: str, slot: str, message: str = "so a rule says") -> Rule:
    return Rule(kind=RuleKind.ERROR, call="host", asked=script, machine=slot, fault=VimFault.PERMANENT, message=message)


async def vnf_of(rig: ClusterRig, instance_id: str) -> VnfInstance:
    return (await rig.rig.instance(instance_id)).vnf


def recorded(vnf: VnfInstance) -> str | None:
    assert vnf.instantiated_vnf_info is not None
    said: str | None = vnf.instantiated_vnf_info.metadata.get("kubernetesVersion")
    return said


def kubelets(rig: ClusterRig) -> set[str | None]:
    (seen,) = rig.seen()
    return {kubelet_version(node) for node in seen.nodes.values()}


@pytest.mark.parametrize("masters", [1, 3])
async def test_every_node_comes_to_the_new_packages_version(rig: ClusterRig, masters: int) -> None:
    instance_id = await rig.cluster(masters, kubernetes_version=OLD)
    assert recorded(await vnf_of(rig, instance_id)) == OLD
    await rig.completed(OperationType.SCALE, instance_id, out(2))
    assert kubelets(rig) == {f"v{OLD}"}
    before = await rig.machines(instance_id)
    await rig.completed(KIND, instance_id, CHANGE)
    vnf = await vnf_of(rig, instance_id)
    assert (vnf.vnfd_id, recorded(vnf)) == (NEXT, NEW)
    assert await rig.machines(instance_id) == before
    assert kubelets(rig) == {f"v{NEW}"}
    await rig.check(instance_id)
    # Whoever comes later comes at that version, whatever was asked for in the beginning.
    await rig.completed(OperationType.SCALE, instance_id, out())
    await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "workerNode-0"))
    assert kubelets(rig) == {f"v{NEW}"}
    await rig.completed(OperationType.HEAL, instance_id, HealRequest())
    assert kubelets(rig) == {f"v{NEW}"}
    await rig.check(instance_id)


async def test_an_api_server_that_knows_no_roles_yet_is_waited_for(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(kubernetes_version=OLD)
    message = 'daemonsets.apps "kube-proxy" is forbidden: User "kubernetes-admin" cannot get resource "daemonsets"'
    kube_proxy = "GET */daemonsets/kube-proxy"
    await rig.rules(Rule(kind=RuleKind.ERROR, call="api", asked=kube_proxy, status=403, message=message, times=3))
    await rig.completed(KIND, instance_id, CHANGE)
    assert kubelets(rig) == {f"v{NEW}"}


async def test_a_package_of_the_same_version_touches_no_node(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(kubernetes_version=NEW)
    assert (await rig.rig.slipway.lcm.preview_plan(KIND, instance_id, CHANGE)).steps == ()
    before = await rig.host_calls()
    await rig.completed(KIND, instance_id, CHANGE)
    assert await rig.host_calls() == before
    assert (await vnf_of(rig, instance_id)).vnfd_id == NEXT


async def test_versions_that_cant_follow_are_refused_before_anything_begins(rig: ClusterRig, tmp_path: Path) -> None:
    instance_id = await rig.cluster(kubernetes_version=OLD)
    lcm = rig.rig.slipway.lcm
    for version, said in (("1.32.1", "1.32.1 is older"), ("1.35.0", "minor versions would be left out")):
        for ask in (lcm.start_operation, lcm.preview_plan):
            with pytest.raises(BadRequest, match=f"kubernetes_version: .*{said}"):
                await ask(KIND, instance_id, to(version))
    await onboard_next(rig.rig, CLUSTER, tmp_path, OTHER_ID, image="1.29.0")
    with pytest.raises(Unprocessable, match=r"the image of masterNode has Kubernetes 1.29.0: .* is older; choose"):
        await lcm.start_operation(KIND, instance_id, ChangePackageRequest(vnfd_id=OTHER_ID))
    hookless = {"          change_current_package_end: { implementation: kubernetes }\n": ""}
    await onboard_next(rig.rig, CLUSTER, tmp_path, HOOKLESS, image=NEW, words=hookless)
    with pytest.raises(Unprocessable, match="has no hook change_current_package_end"):
        await lcm.start_operation(KIND, instance_id, ChangePackageRequest(vnfd_id=HOOKLESS))


async def test_a_machine_without_the_version_stops_it_while_it_can_be_rolled_back(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(kubernetes_version=OLD)
    operation, detail = await rig.failed(KIND, instance_id, to("1.34.9"))
    assert "'examine " in detail
    assert "has Kubernetes 1.33.13, 1.34.4, and 1.34.9 is wanted" in detail
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    vnf = await vnf_of(rig, instance_id)
    assert (vnf.vnfd_id, recorded(vnf)) == (rig.rig.vnfd_id, OLD)
    await rig.check(instance_id)


async def test_it_stops_at_the_node_that_fails_and_a_retry_goes_on_from_there(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3, kubernetes_version=OLD)
    await rig.rules(failing("upgrade", "masterNode-1", "[upgrade/etcd] the etcd cluster is not healthy"))
    operation, detail = await rig.failed(KIND, instance_id, CHANGE)
    assert "upgrade masterNode-1" in detail
    assert "[upgrade/etcd] the etcd cluster is not healthy" in detail
    assert "then retry" in detail
    (seen,) = rig.seen()
    versions = {name: kubelet_version(node) for name, node in seen.nodes.items()}
    assert versions.pop(node_name(instance_id, "masterNode-0")) == f"v{NEW}"
    assert set(versions.values()) == {f"v{OLD}"}
    with pytest.raises(Conflict, match="'upgrade masterNode-0' began and can't be undone"):
        await rig.rig.slipway.lcm.roll_back(operation.id)
    await rig.rules()
    before = await rig.host_calls()
    await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.COMPLETED
    assert (await rig.host_calls() - before)["masterNode-0 upgrade"] == 0
    assert recorded(await vnf_of(rig, instance_id)) == NEW
    await rig.check(instance_id)


async def test_given_up_it_can_be_finished_by_another_request(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(kubernetes_version=OLD)
    await rig.rules(failing("restart_kubelet", "workerNode-1"))
    operation, _ = await rig.failed(KIND, instance_id, CHANGE)
    await rig.rig.slipway.lcm.fail(operation.id)
    await rig.rules()
    vnf = await vnf_of(rig, instance_id)
    assert (vnf.vnfd_id, recorded(vnf)) == (rig.rig.vnfd_id, NEW)
    with pytest.raises(BadRequest, match="was given up before every node had it"):
        await rig.rig.slipway.lcm.start_operation(KIND, instance_id, to("1.35.0"))
    # A node that comes meanwhile has the control plane's version.
    await rig.completed(OperationType.SCALE, instance_id, out())
    (seen,) = rig.seen()
    assert kubelet_version(seen.nodes[node_name(instance_id, "workerNode-2")]) == f"v{NEW}"
    before = await rig.host_calls()
    await rig.completed(KIND, instance_id, CHANGE)
    restarted = {call for call in await rig.host_calls() - before if "restart_kubelet" in call}
    assert restarted == {"workerNode-1 restart_kubelet"}
    assert (await vnf_of(rig, instance_id)).vnfd_id == NEXT
    await rig.check(instance_id)


async def test_pods_leave_a_node_before_its_kubelet_changes(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(kubernetes_version=OLD)
    api = await rig.api(instance_id)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
    await api.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 4, "selector": {"matchLabels": labels}, "template": template},
        }
    )
    await rig.rules(failing("restart_kubelet", "workerNode-*"))
    operation, _ = await rig.failed(KIND, instance_id, CHANGE)
    pods = await api.list(paths.pods("default"))
    assert {pod["spec"]["nodeName"] for pod in pods} == {node_name(instance_id, "workerNode-1")}
    await rig.rules()
    await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.COMPLETED
    assert len(await api.list(paths.pods("default"))) == 4
    await rig.check(instance_id)
