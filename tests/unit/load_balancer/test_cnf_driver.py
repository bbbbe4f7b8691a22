"""What the hooks of a CNF behind a load balancer plan, what is refused before anything begins, what is documented."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.cluster.parameters import ExternalLoadBalancerParameters
from slipway.load_balancer.cnf_driver import CnfNodePortDriver
from slipway.load_balancer.cnf_parameters import NAME, BalancerAccess, CnfBalancerParameters
from slipway.load_balancer.cnf_steps import CnfSteps
from slipway.load_balancer.configure import RoutesChange, script_options
from slipway.load_balancer.routes import Routes
from slipway.load_balancer.steps import BalancerSteps
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.hooks import EDGES, HookPlan
from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest, InstantiateRequest, TerminateRequest, TerminationType
from slipway.model.situation import PlanningSituation
from slipway.model.target import PackageFile
from tests.unit.cluster.cluster_situations import UNUSED, situation, slots
from tests.unit.cluster.parameter_names import parameter_names

DRIVER = CnfNodePortDriver(CnfSteps(UNUSED, UNUSED, UNUSED, UNUSED, UNUSED), BalancerSteps(UNUSED, UNUSED))
BOTH = frozenset(EDGES)
PAGE = (Path(__file__).parents[3] / "docs" / "load-balancer.md").read_text()
EXAMPLE = Path(__file__).parents[3] / "samples" / "cluster-kubespray-sandbox" / "Scripts" / "ExternalLB_installation.sh"
ACCESS = {"ssh_ip": "10.0.0.4", "ssh_username": "ubuntu", "ssh_password": {"$secret": "4711"}}
MANIFEST = "Files/kubernetes/web.yaml"
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  ports: [{name: http, port: 80, nodePort: 30080}, {name: chosen, port: 81}]
"""


def new(asked: Any = None, manifest: str = SERVICE) -> PlanningSituation:
    params = {"lcm-kubernetes-def-files": [MANIFEST], **({} if asked is None else {NAME: asked})}
    request = InstantiateRequest(flavour_id="simple", additional_params=params)
    found = situation(OperationType.INSTANTIATE, request, {}, slots(1, 1), 1)
    content = manifest.encode()
    files = {MANIFEST: PackageFile(content=content, digest=hashlib.sha256(content).hexdigest())}
    assert found.change.after is not None
    after = replace(found.change.after, files=files, parameters=params)
    return replace(found, change=replace(found.change, after=after), files=frozenset({MANIFEST, "Scripts/lb.sh"}))


def later(kind: OperationType, request: Any, stored: dict[str, Any]) -> PlanningSituation:
    found = situation(kind, request, slots(1, 1), slots(1, 1), 1)
    return replace(found, instance=msgspec.structs.replace(found.instance, parameters=stored))


def planned(plan: HookPlan) -> tuple[list[str], list[str]]:
    return [step.id for step in plan.start.steps], [step.id for step in plan.end.steps]


def test_a_balancer_is_looked_at_before_anything_is_made() -> None:
    plan = DRIVER.plan("instantiate", BOTH, new({"external_lb_param": ACCESS}))
    assert planned(plan) == (["check the load balancer"], ["expose Services"])
    [check] = plan.start.steps
    assert check.args["front_ends"] == [{"port": 30080, "namespace": "shop", "service": "web"}]
    assert check.args["login"] == {"username": "ubuntu", "password": {"$secret": "4711"}}
    assert check.args["ssh_ip"] == "10.0.0.4"


def test_front_ends_follow_and_go_first() -> None:
    stored = {NAME: {"external_lb_param": ACCESS}}
    heal = later(OperationType.HEAL, HealRequest(), stored)
    assert planned(DRIVER.plan("heal", BOTH, heal)) == ([], ["expose Services"])
    assert planned(DRIVER.plan("heal", frozenset({"start"}), heal)) == ([], [])
    assert planned(DRIVER.plan("modify_information", BOTH, heal)) == ([], [])
    end = TerminateRequest(termination_type=TerminationType.FORCEFUL, additional_params={NAME: 4711})
    terminate = later(OperationType.TERMINATE, end, stored)
    DRIVER.check(terminate)
    assert planned(DRIVER.plan("terminate", frozenset({"end"}), terminate)) == (["withdraw Services"], [])


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (
            {"external_lb_param": {**ACCESS, "ssh_ip": "evil.example"}},
            r"external_lb_param\.ssh_ip: it is not an address",
        ),
        ({"external_lb_param": {**ACCESS, "ssh_ip": "127.0.0.1"}}, r"ssh_ip: it is an address that no other machine"),
        (
            {"external_lb_param": {"ssh_ip": "10.0.0.4", "ssh_username": "u"}},
            "neither ssh_password nor ssh_private_key",
        ),
        ({"external_lb_param": {**ACCESS, "ssh_username": "-oProxyCommand=x"}}, "it is not a user name"),
        ({"script_path": "../../etc/shadow"}, "it is not a path within the package"),
        ({"script_path": "Scripts/none.sh"}, r"script_path: the package has no file Scripts/none\.sh"),
        ({"ssh_ip": "10.0.0.4"}, "there is no such parameter"),
        (4711, "must be an object"),
    ],
)
def test_what_is_wrong_is_named(asked: Any, reason: str) -> None:
    with pytest.raises(BadRequest, match=rf"additionalParams\.{NAME}.*{reason}"):
        DRIVER.check(new(asked))


@pytest.mark.parametrize("ports", ["7", "true", "web", "{port: 80}", "null", "[7, web]"])
def test_ports_that_are_no_list_are_the_clusters_to_refuse(ports: str) -> None:
    """The planner broke on them."""
    manifest = re.sub(r"ports: .*", f"ports: {ports}", SERVICE)
    [check] = DRIVER.plan("instantiate", BOTH, new(manifest=manifest)).start.steps
    assert check.args.get("front_ends", []) == []


def test_a_protocol_that_is_left_open_is_tcp() -> None:
    manifest = SERVICE.replace("nodePort: 30080", "nodePort: 30080, protocol: null")
    [check] = DRIVER.plan("instantiate", BOTH, new(manifest=manifest)).start.steps
    assert [one["port"] for one in check.args["front_ends"]] == [30080]


def test_what_haproxy_can_not_take_is_refused_when_it_is_planned() -> None:
    udp = SERVICE.replace("port: 81", "port: 81, protocol: UDP")
    with pytest.raises(
        Unprocessable, match="Service shop/web has the NodePort 81/UDP, and the load balancer knows TCP"
    ):
        DRIVER.plan("instantiate", BOTH, new(manifest=udp))
    assert DRIVER.plan("instantiate", BOTH, new(manifest=udp.replace("NodePort", "ClusterIP")))


@pytest.mark.parametrize("kind", [ExternalLoadBalancerParameters, BalancerAccess, CnfBalancerParameters])
def test_every_parameter_is_documented(kind: Any) -> None:
    for name in parameter_names(kind):
        assert f"{name.rpartition('.')[2]}`" in PAGE, name


def test_the_options_of_a_script_are_documented_as_they_are() -> None:
    options = [word for word in script_options(RoutesChange(verb="add", routes=Routes())) if word.startswith("--")]
    called = re.search(r"SCRIPT install\|add\|remove\|reinstall(.*?)```", PAGE, re.DOTALL)
    assert called is not None
    assert re.findall("--[a-z-]+", called[1]) == options
    assert set(re.findall(r"^    (--[a-z-]+)\)", EXAMPLE.read_text(), re.MULTILINE)) < set(options)
