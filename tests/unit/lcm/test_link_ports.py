"""Ports that exist and that external connection points are to be (extLinkPorts, linkPortId): checks and record."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from slipway.lcm import change_ext_conn
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.record import inventory, with_outcomes
from slipway.lcm.targets import target_now
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.instance import Instance, InstantiatedVnfInfo, VimConnectionInfo
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.operation import OperationType
from slipway.model.requests import ChangeExtConnRequest, HealRequest, InstantiateRequest, ScaleRequest, ScaleType
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.vim.machine_by_machine.wanted import wanted_of
from slipway.vim.sandbox.driver import SandboxDriver
from tests.unit.lcm.situations import FLAVOUR, empty_instance, instantiated, situation

KIND = OperationType.INSTANTIATE


def link(*points: str | None, ports: dict[str, str], id_: str = "l") -> dict[str, Any]:
    """The first workers' connection points in turn are to be those ports, or are made."""
    configs = {str(at): {"linkPortId": port} if port else {} for at, port in enumerate(points)}
    there = [{"id": port, "resourceHandle": {"resourceId": one}} for port, one in ports.items()]
    cps = [{"cpdId": "worker_ext", "cpConfig": configs}] if points else []
    return {"id": id_, "resourceId": f"network of {id_}", "extCps": cps, "extLinkPorts": there}


def asked(*links: dict[str, Any]) -> InstantiateRequest:
    return msgspec.convert({"flavourId": "simple", "extVirtualLinks": links}, InstantiateRequest)


def info_of(instance: Instance) -> InstantiatedVnfInfo:
    assert instance.vnf.instantiated_vnf_info is not None
    return instance.vnf.instantiated_vnf_info


def on_openstack(machine: FoundMachine) -> FoundMachine:
    """worker-0 has the port "port-1", which was there before."""

    def as_found(port: FoundPort) -> FoundPort:
        if (machine.name, port.name) != ("worker-0", "worker_ext"):
            return port
        return replace(port, id="port-1", resource_id="port-1", existing=True)

    return replace(machine, ports=tuple(map(as_found, machine.ports)))


def running() -> Instance:
    request = asked(link("p", ports={"p": "port-1", "unused": "port-2"}))
    instance, found = instantiated(request)
    members = {one.id: one for one in target_now(situation(KIND, request, instance)).members}
    outcome = Outcome(machines=tuple(map(on_openstack, found.machines)))
    info = with_outcomes(info_of(instance), [outcome], FLAVOUR, "vim", members, 2)
    return replace(instance, vnf=replace(instance.vnf, instantiated_vnf_info=info))


def test_the_record_names_port_and_connection_point_by_each_other() -> None:
    info = info_of(running())
    (used,) = (cp for cp in info.ext_cp_info if cp.ext_link_port_id)
    assert (used.id, used.ext_link_port_id, used.cp_config_id) == ("ext-port-1", "p", "0")
    (shown,) = info.ext_virtual_link_info
    assert [(port.id, port.resource_handle.resource_id, port.cp_instance_id) for port in shown.ext_link_ports] == [
        ("p", "port-1", "ext-port-1"),
        ("unused", "port-2", None),
    ]
    (held,) = (port for machine in inventory(info).machines for port in machine.ports if port.existing)
    assert held.resource_id == "port-1"


@pytest.mark.parametrize(
    "request_",
    [ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers"), HealRequest(additional_params={"all": True})],
)
def test_later_operations_go_on_with_the_port(request_: ScaleRequest | HealRequest) -> None:
    kind = OperationType.SCALE if isinstance(request_, ScaleRequest) else OperationType.HEAL
    rules, instance = OPERATIONS[kind], running()
    assert rules.change
    wanted = wanted_of(rules.change(situation(kind, request_, instance), request_))
    existing = {machine.name: port.existing for machine in wanted.machines for port in machine.ports if port.existing}
    assert existing == {"worker-0": "port-1"}


def test_a_change_may_name_another_port_or_none() -> None:
    instance = running()
    for given, existing in ((link("q", ports={"q": "port-3"}), "port-3"), (link(None, ports={}), None)):
        request = msgspec.convert({"extVirtualLinks": [given]}, ChangeExtConnRequest)
        now = situation(OperationType.CHANGE_EXT_CONN, request, instance)
        change_ext_conn.check(now, request)
        (first, *_) = (one for one in wanted_of(change_ext_conn.change(now, request)).machines if one.vdu == "worker")
        assert next(port.existing for port in first.ports if port.name == "worker_ext") == existing


@pytest.mark.parametrize(
    ("links", "named"),
    [
        ([link("p", "p", ports={"p": "port-1"})], r"\[0\].extCps: the port 'port-1' of 'worker_ext' is there twice"),
        ([link("p", "q", ports={"p": "port-1", "q": "port-1"})], "the port 'port-1' of 'worker_ext' is there twice"),
        (
            [link("p", ports={}), link(ports={"p": "port-1"}, id_="other")],
            r"extVirtualLinks\[0\].extCps.worker_ext.cpConfig.0.linkPortId: the port 'p' is on the link 'other'",
        ),
        (
            [link("q", ports={"p": "port-1"})],
            r"extVirtualLinks\[0\].extCps.worker_ext.cpConfig.0.linkPortId: the link 'l' has no port 'q' .* it has: p",
        ),
    ],
)
def test_a_port_is_one_connection_point_of_its_own_link(links: list[dict[str, Any]], named: str) -> None:
    request = asked(*links)
    with pytest.raises(BadRequest, match=named):
        OPERATIONS[KIND].check(situation(KIND, request, empty_instance()), request)


def test_a_change_may_name_a_port_that_the_link_has_and_none_that_it_has_not() -> None:
    instance = running()
    for name in ("unused", "nobody's"):
        request = msgspec.convert({"extVirtualLinks": [link(name, ports={})]}, ChangeExtConnRequest)
        now = situation(OperationType.CHANGE_EXT_CONN, request, instance)
        if name == "unused":
            change_ext_conn.check(now, request)
            continue
        with pytest.raises(BadRequest, match=r"linkPortId: the link 'l' has no port"):
            change_ext_conn.check(now, request)


def test_a_port_is_on_the_vim_of_the_vnf() -> None:
    given = link("p", ports={"p": "port-1"})
    given["extLinkPorts"][0]["resourceHandle"]["vimConnectionId"] = "elsewhere"
    request = asked(given)
    with pytest.raises(Unprocessable, match=r"extLinkPorts\[0\].resourceHandle.vimConnectionId: 'elsewhere' is not"):
        OPERATIONS[KIND].check_vim(empty_instance().vnf, VimConnectionInfo(vim_type="T", vim_id="here"), request)


@pytest.mark.parametrize("driver", [SimulatedDriver, SandboxDriver])
def test_a_driver_that_makes_ports_says_so(driver: Any) -> None:
    request, rules = asked(link("p", ports={"p": "port-1"})), OPERATIONS[KIND]
    assert rules.change
    change = rules.change(situation(KIND, request, empty_instance()), request)
    with pytest.raises(
        Unprocessable, match=r"linkPortId p of the connection point worker_ext: .* uses none that exists"
    ):
        driver.planner.refuse(change)
