"""What later requests say about a cluster by kubespray: heard of to the end, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.load_balancer.records import BalancerRecords
from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest, HealRequest, TerminateRequest, TerminationType
from tests.functional.cluster_rig import ClusterRig, out
from tests.functional.kubespray_rig import (
    BALANCER,
    KUBESPRAY,
    ansible,
    instantiate,
    kubespray_rig,
    parameters,
    server_of,
)
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import settings_in

INSTANTIATE, SCALE, HEAL, CHANGE_VNFPKG, TERMINATE = (
    OperationType.INSTANTIATE, OperationType.SCALE, OperationType.HEAL, OperationType.CHANGE_VNFPKG,
    OperationType.TERMINATE,
)  # fmt: skip
GRACEFUL = TerminateRequest(termination_type=TerminationType.GRACEFUL)
OTHER = "192.0.2.11"


async def cluster(rig: ClusterRig, **more: Any) -> str:
    instance_id = await rig.rig.create()
    await rig.completed(INSTANTIATE, instance_id, instantiate(**more))
    return instance_id


def said(**more: Any) -> dict[str, Any]:
    return {"k8s_cluster_installation_param": more}


SCRIPT = {**BALANCER, "script_path": "Scripts/ExternalLB_installation.sh"}
# What the cluster was made with, what is asked for later, and what the error names.
CHANGED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no balancer any more": ({"external_lb_param": BALANCER}, {"external_lb_param": None}, "external_lb_param"),
    "a balancer": ({}, {"external_lb_param": BALANCER}, "external_lb_param"),
    "a balancer elsewhere": ({"external_lb_param": BALANCER}, {"external_lb_param": {"ssh_cp_name": "externalLB_CP2"}},
                             "external_lb_param"),
    "a script": ({"external_lb_param": BALANCER}, {"external_lb_param": SCRIPT}, "external_lb_param.script_path"),
    "no script": ({"external_lb_param": SCRIPT}, {"external_lb_param": {"script_path": None}},
                  "external_lb_param.script_path"),
    "pods": ({}, {"master_node": {"pod_cidr": "10.99.0.0/16"}}, "master_node.pod_cidr"),
    "Services": ({}, {"master_node": {"cluster_cidr": "10.99.0.0/16"}}, "master_node.cluster_cidr"),
    "network plugin": ({}, {"cni": "flannel"}, "cni"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
async def test_what_a_cluster_that_stands_would_not_hear_of_is_refused(tmp_path: Path, name: str) -> None:
    """It was taken, and the next operation worked on another cluster than there is."""
    made, asked, named = CHANGED[name]
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, **made)
        await onboard_next(rig.rig, KUBESPRAY, tmp_path / "next", NEXT_ID)
        for kind, request in (
            (SCALE, replace(out(), additional_params=said(**asked))),
            (HEAL, HealRequest(additional_params=said(**asked))),
            (CHANGE_VNFPKG, ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=said(**asked))),
        ):
            with pytest.raises(BadRequest, match=rf"installation_param\.{named}[:,]"):
                await rig.rig.slipway.lcm.start_operation(kind, instance_id, request)


async def test_a_new_login_and_what_is_said_again_are_no_change(tmp_path: Path) -> None:
    again = parameters(external_lb_param={**BALANCER, "ssh_cp_name": "externalLB_instance"})
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, external_lb_param=BALANCER)
        await rig.completed(SCALE, instance_id, replace(out(), additional_params=again))
        await rig.check(instance_id)


async def test_a_change_of_the_package_alone_takes_everything_to_the_other_server(tmp_path: Path) -> None:
    """The former one kept all secrets for ever: no operation knew of it any more."""
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        await onboard_next(rig.rig, KUBESPRAY, tmp_path / "next", NEXT_ID)
        moved = parameters(ansible=ansible(ip_address=OTHER))
        await rig.completed(CHANGE_VNFPKG, instance_id, ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=moved))
        assert (server_of(rig).files, server_of(rig).jobs) == ({}, {})
        await rig.completed(SCALE, instance_id, out())
        assert server_of(rig, OTHER).files != {}
        await rig.completed(TERMINATE, instance_id, GRACEFUL)
        assert (server_of(rig, OTHER).files, server_of(rig, OTHER).jobs) == ({}, {})


async def test_a_balancer_is_healed_where_the_server_knows_no_facts_of_the_nodes(tmp_path: Path) -> None:
    """As after a scale that was on another server: with a limit kubespray wants to know all others."""
    moved = parameters(ansible=ansible(ip_address=OTHER), external_lb_param=BALANCER)
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, external_lb_param=BALANCER)
        await rig.completed(SCALE, instance_id, replace(out(), additional_params=moved))
        await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "externalLB-0"))
        await rig.check(instance_id)


async def test_a_termination_forgets_the_balancer_whatever_it_says_of_it(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, external_lb_param=BALANCER)
        request = replace(GRACEFUL, additional_params=said(external_lb_param=None))
        await rig.completed(TERMINATE, instance_id, request)
        assert await BalancerRecords(rig.rig.slipway.database).get(instance_id) is None
