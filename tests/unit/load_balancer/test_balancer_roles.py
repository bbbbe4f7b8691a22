"""Which machine balances, by what requests call it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slipway.cluster.parameters import ExternalLoadBalancerParameters
from slipway.cluster.schema import read
from slipway.load_balancer.balancer import PARAMETER, BalancerRole, balancer_of, balancer_role
from slipway.model.descriptor import Aspect, ConnectionPoint, Flavour, Vdu
from slipway.model.errors import BadRequest
from slipway.model.target import VnfcMember
from tests.unit.cluster.flavours import flavour

INSTANCE = "6d7b6b1e-8d52-4c43-9d5c-0d4a7b0a2f10"


def balanced() -> Flavour:
    cluster = flavour()
    points = {
        **cluster.connection_points,
        "externalLB_CP2": ConnectionPoint(name="externalLB_CP2", vdu="externalLB", virtual_link="net", order=0),
        "externalLB_CP1": ConnectionPoint(name="externalLB_CP1", vdu="externalLB", order=1),
    }
    vdus = {name: vdu for name, vdu in cluster.vdus.items() if name != "storage_server"}
    aspects = {**cluster.aspects, "balancing": Aspect(name="balancing", max_level=1, deltas={"externalLB": (1,)})}
    vdus["externalLB"] = Vdu(name="externalLB", initial=1)
    return replace(cluster, vdus=vdus, connection_points=points, aspects=aspects)


def parameters(name: str = "externalLB_CP1", **more: Any) -> ExternalLoadBalancerParameters:
    given = {"ssh_cp_name": name, "ssh_username": "ubuntu", "ssh_password": "hills", **more}
    return read(ExternalLoadBalancerParameters, given, PARAMETER)


def role(
    name: str, *, count: int = 1, template: bool = False, files: set[str] | None = None, **more: Any
) -> BalancerRole:
    return balancer_role(
        parameters(name, **more),
        balanced(),
        {"externalLB": count},
        others=("masterNode", "workerNode"),
        has_template=template,
        files=files or set(),
    )


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("externalLB_CP1", "externalLB_CP1"),
        ("externalLB_CP2", "externalLB_CP2"),
        ("externalLB", "externalLB_CP1"),
        ("externalLB_instance", "externalLB_CP1"),
        ("balancing", "externalLB_CP1"),
    ],
    ids=["connection point", "inner one", "VDU", "as the documents write it", "aspect"],
)
def test_a_balancer_is_known_by_what_requests_call_it(name: str, point: str) -> None:
    assert role(name) == BalancerRole(vdu="externalLB", ssh=point)


def test_a_floating_ip_of_the_template_is_one_of_the_balancers() -> None:
    assert role("externalLB_FIP", template=True) == BalancerRole(vdu="externalLB", ssh="externalLB_FIP")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "nowhere",
            r"no connection point, VDU or aspect .* 'nowhere'; write one of: externalLB_CP2, externalLB_CP1, ext",
        ),
        ("masterNode_CP1", r"'masterNode_CP1' belongs to 'masterNode', which is another part of the cluster"),
        ("masterNode", "no connection point, VDU or aspect"),
        ("worker_instance", "no connection point, VDU or aspect"),
        ("proxy", "no connection point, VDU or aspect"),
    ],
)
def test_what_is_no_balancer_is_refused_with_the_list(name: str, reason: str) -> None:
    with pytest.raises(BadRequest, match=rf"external_lb_param\.ssh_cp_name: .*{reason}"):
        role(name)


@pytest.mark.parametrize("count", [0, 2])
def test_one_machine_balances(count: int) -> None:
    with pytest.raises(BadRequest, match=f"there would be {count} machines of 'externalLB', and one balances"):
        role("externalLB", count=count)


def test_a_script_must_be_in_the_package() -> None:
    assert role("externalLB", files={"Scripts/lb.sh"}, script_path="./Scripts/lb.sh")
    with pytest.raises(
        BadRequest, match=r"script_path: the package has no file Scripts/lb.sh; .*leave script_path out"
    ):
        role("externalLB", script_path="./Scripts/lb.sh")


def test_secrets_stay_references_in_a_plan() -> None:
    given = parameters(ssh_password={"$secret": "4711"}, ssh_port=2222)
    members = (VnfcMember(id="m", vdu="masterNode", slot=0), VnfcMember(id="b", vdu="externalLB", slot=0))
    found = balancer_of(given, role("externalLB"), INSTANCE, members)
    assert found is not None
    assert (found.node.machine, found.node.slot, found.node.ssh) == ("b", "externalLB-0", "externalLB_CP1")
    assert (found.node.login.password, found.node.login.port) == ({"$secret": "4711"}, 2222)
    assert balancer_of(given, role("externalLB"), INSTANCE, members[:1]) is None
