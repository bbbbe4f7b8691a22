"""What a change of package wants of the VIM: nothing, as long as the new VNFD wants the same machines."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.lcm import change_package
from slipway.mgmt.drivers import ManagementDrivers, Noop
from slipway.model.descriptor import Aspect, ConnectionPoint, Flavour, Level
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import ChangePackageRequest, InstantiateRequest
from slipway.model.situation import Situation
from tests.unit.lcm.situations import DESCRIPTOR, FLAVOUR, PlanningDriver, instantiated, situation

OUTSIDE = ExtVirtualLink(id="out", resource_id="net-1", ext_cps=(VnfExtCpData(cpd_id="worker_ext"),))


def change(flavour: Flavour, **more: Any) -> Situation:
    instance, found = instantiated(InstantiateRequest(flavour_id="simple", ext_virtual_links=(OUTSIDE,)))
    now = situation(OperationType.CHANGE_VNFPKG, ChangePackageRequest(vnfd_id="e", **more), instance, found)
    new = replace(DESCRIPTOR, vnfd_id="e", vnfd_version="2", flavours={"simple": flavour})
    return dataclasses.replace(now, descriptor=new, flavour=flavour)


def plan(now: Situation) -> Plan:
    request: Any = now.request
    driver: Any = PlanningDriver()
    change_package.check(now, request)
    return change_package.RULES.plan(now, driver, ManagementDrivers([Noop()])).checked()


def test_the_same_machines_are_left_alone() -> None:
    assert plan(change(FLAVOUR)).steps == ()


def test_a_port_that_the_new_vnfd_adds_is_added_to_the_machines_that_are_there() -> None:
    point = ConnectionPoint(name="master_more", vdu="master", virtual_link="net", order=1)
    flavour = replace(FLAVOUR, connection_points={**FLAVOUR.connection_points, "master_more": point})
    assert [step.id for step in plan(change(flavour)).steps] == ["repair machine master-0"]


def test_the_record_has_the_new_levels_and_keeps_its_networks() -> None:
    aspects = {
        "workers": Aspect(name="workers", max_level=9, deltas={"worker": (1,)}),
        "more": Aspect(name="more", max_level=1),
    }
    now = change(replace(FLAVOUR, aspects=aspects))
    request: Any = now.request
    vnf = change_package.complete(now, request)
    info = vnf.instantiated_vnf_info
    assert info is not None
    assert (vnf.vnfd_id, vnf.vnfd_version) == ("e", "2")
    assert [(one.aspect_id, one.scale_level) for one in info.scale_status] == [("workers", 0), ("more", 0)]
    assert [(one.aspect_id, one.scale_level) for one in info.max_scale_levels] == [("workers", 9), ("more", 1)]
    assert [link.id for link in info.ext_virtual_link_info] == ["out"]


def test_a_network_for_a_new_port_is_taken_and_ports_that_are_there_stay_where_they_are() -> None:
    point = ConnectionPoint(name="worker_more", vdu="worker", order=2)
    flavour = replace(FLAVOUR, connection_points={**FLAVOUR.connection_points, "worker_more": point})
    more = ExtVirtualLink(id="more", resource_id="net-2", ext_cps=(VnfExtCpData(cpd_id="worker_more"),))
    now = change(flavour, ext_virtual_links=(OUTSIDE, more))
    request: Any = now.request
    machines = [step.args["machine"] for step in plan(now).steps]
    assert [[port.get("external_network") for port in machine["ports"]] for machine in machines] == [
        [None, "net-1", "net-2"],
        [None, "net-1", "net-2"],
    ]
    info = change_package.complete(now, request).instantiated_vnf_info
    assert info is not None
    assert [link.id for link in info.ext_virtual_link_info] == ["out", "more"]
    for link in (replace(OUTSIDE, resource_id="net-2"), replace(OUTSIDE, id="other", resource_id="net-2")):
        with pytest.raises(BadRequest, match="a change of the package moves no ports"):
            plan(change(FLAVOUR, ext_virtual_links=(link,)))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Unprocessable, match="has no instantiation level 'small'; it has: tiny"):
        plan(change(replace(FLAVOUR, levels={"tiny": Level(name="tiny")}, default_level="tiny")))
    with pytest.raises(Unprocessable, match="has no aspect 'workers'; it has: none"):
        plan(change(replace(FLAVOUR, aspects={}, levels={"small": Level(name="small")})))
    unknown = replace(OUTSIDE, ext_cps=(VnfExtCpData(cpd_id="nobody's"),))
    with pytest.raises(BadRequest, match='has no connection point "nobody\'s"'):
        plan(change(FLAVOUR, ext_virtual_links=(unknown,)))
