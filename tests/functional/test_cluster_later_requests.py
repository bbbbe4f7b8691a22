"""What later requests say about a cluster by kubeadm: heard of to the end, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest, HealRequest
from slipway.store import vims
from tests.functional.cluster_rig import CLUSTER, VIP, ClusterRig, back, cluster_rig, out
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import settings_in

SCALE, HEAL, CHANGE_VNFPKG = OperationType.SCALE, OperationType.HEAL, OperationType.CHANGE_VNFPKG
PODS, SERVICES = "192.168.0.0/16", "10.96.0.0/12"  # those that are chosen without a word
SCRIPT = "Files/kubernetes/nfs-pv1.yaml"


def said(**more: Any) -> dict[str, Any]:
    return {"k8s_cluster_installation_param": more}


# How many masters the cluster has, what is asked for later, and what the error names.
LASTING: dict[str, tuple[int, dict[str, Any], str]] = {
    "pods": (1, {"master_node": {"pod_cidr": "10.99.0.0/16"}}, "master_node.pod_cidr"),
    "pods, by the nodes' network": (1, {"proxy": {"k8s_node_cidr": "192.168.7.0/24"}}, "master_node.pod_cidr"),
    "Services": (1, {"master_node": {"cluster_cidr": "10.99.0.0/16"}}, "master_node.cluster_cidr"),
    "the cluster's address": (3, {"master_node": {"cluster_ip": "10.11.0.21"}}, "master_node.cluster_ip"),
    "images": (1, {"image_repository": "registry.example.com/kubernetes"}, "image_repository"),
    "a script": (1, {"script_path": SCRIPT}, "script_path"),
}  # fmt: skip


async def refused(rig: ClusterRig, kind: OperationType, instance_id: str, request: Any, named: str) -> None:
    with pytest.raises(BadRequest, match=rf"installation_param\.{named}[:,]"):
        await rig.rig.slipway.lcm.start_operation(kind, instance_id, request)


@pytest.mark.parametrize("name", LASTING)
async def test_what_a_cluster_that_stands_would_not_hear_of_is_refused(tmp_path: Path, name: str) -> None:
    """Nodes that came later were told otherwise than those that stayed, and the operation after them forgot it."""
    masters, words, named = LASTING[name]
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster(masters)
        await onboard_next(rig.rig, CLUSTER, tmp_path / "next", NEXT_ID)
        node = await rig.heal(instance_id, "workerNode-0")
        for kind, request in (
            (SCALE, replace(out(), additional_params=said(**words))),
            (HEAL, replace(node, additional_params=said(**words))),
            (HEAL, HealRequest(additional_params=said(**words))),
            (CHANGE_VNFPKG, ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=said(**words))),
        ):
            await refused(rig, kind, instance_id, request, named)


@pytest.mark.parametrize(("name", "value"), [("cni", "none"), ("vim_name", "another")])
async def test_what_only_a_new_cluster_gets_is_refused_where_none_is_made(
    tmp_path: Path, name: str, value: str
) -> None:
    words = said(**{name: value})
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster()
        await refused(rig, SCALE, instance_id, replace(out(), additional_params=words), name)
        node = await rig.heal(instance_id, "workerNode-0")
        await refused(rig, HEAL, instance_id, replace(node, additional_params=words), name)
        if name == "vim_name":
            await rig.completed(HEAL, instance_id, HealRequest(additional_params=words))
            assert "another" in [vim.name for vim in await rig.rig.slipway.database.read(vims.list_all)]


async def test_what_is_said_again_is_no_change(tmp_path: Path) -> None:
    """Also where it was not said before, and is what was chosen."""
    again = {"master_node": {"pod_cidr": PODS, "cluster_cidr": SERVICES, "cluster_cp_name": "masterNode_CP1",
                             "nic_cp_name": "masterNode_CP1", "cluster_ip": VIP}, "cni": "flannel"}  # fmt: skip
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster(3)
        await onboard_next(rig.rig, CLUSTER, tmp_path / "next", NEXT_ID)
        await rig.completed(SCALE, instance_id, replace(out(), additional_params=said(**again)))
        await rig.completed(SCALE, instance_id, replace(back(), additional_params=said(**again)))
        node = await rig.heal(instance_id, "workerNode-0")
        await rig.completed(HEAL, instance_id, replace(node, additional_params=said(**again)))
        await rig.completed(HEAL, instance_id, HealRequest(additional_params=said(**again)))
        request = ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=said(**again))
        await rig.completed(CHANGE_VNFPKG, instance_id, request)
        await rig.check(instance_id)
