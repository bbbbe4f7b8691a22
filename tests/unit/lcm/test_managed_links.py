"""Internal links whose networks exist (extManagedVirtualLinks), and connection points with several addresses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from slipway.lcm.grant_application import with_grant
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.record import inventory, with_outcomes
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.grant import Grant
from slipway.model.instance import Instance, InstantiatedVnfInfo
from slipway.model.machine import Address, Found, Outcome
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest, HealRequest, InstantiateRequest, ScaleRequest, ScaleType
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.vim.sandbox.driver import SandboxDriver
from tests.unit.lcm.situations import FLAVOUR, empty_instance, instantiated, plan, situation

KIND = OperationType.INSTANTIATE


def asked(*names: str, network: str = "standing", **more: Any) -> InstantiateRequest:
    links = [
        {"id": f"m{at}", "vnfVirtualLinkDescId": name, "resourceId": network, **more} for at, name in enumerate(names)
    ]
    return msgspec.convert({"flavourId": "simple", "extManagedVirtualLinks": links}, InstantiateRequest)


def running(**more: Any) -> tuple[Instance, Found]:
    return instantiated(asked("net", **more))


def shown(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def info_of(instance: Instance) -> InstantiatedVnfInfo:
    assert instance.vnf.instantiated_vnf_info is not None
    return instance.vnf.instantiated_vnf_info


def test_no_network_is_made_and_ports_are_on_the_given_one() -> None:
    made = plan(KIND, asked("net"), empty_instance())
    assert all("network" not in step.args for step in made.steps)
    ports = [port for step in made.steps for port in step.args["machine"]["ports"] if port["name"] != "worker_ext"]
    assert {(port.get("network"), port["external_network"]) for port in ports} == {(None, "standing")}


def test_the_record_has_it_as_a_link_that_others_manage() -> None:
    info = info_of(running(resourceProviderId="somebody", extManagedMultisiteVirtualLinkId="m")[0])
    assert shown(info.ext_managed_virtual_link_info) == [
        {
            "id": "m0",
            "vnfVirtualLinkDescId": "net",
            "networkResource": {
                "resourceId": "standing",
                "vimConnectionId": "vim",
                "resourceProviderId": "somebody",
            },
            "extManagedMultisiteVirtualLinkId": "m",
        }
    ]
    assert info.vnf_virtual_link_resource_info == ()
    inside = [cp for vnfc in info.vnfc_resource_info for cp in vnfc.vnfc_cp_info if cp.cpd_id != "worker_ext"]
    assert all(cp.vnf_ext_cp_id is None for cp in inside), "its connection points are internal ones all the same"


@pytest.mark.parametrize(
    "request_",
    [
        ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers"),
        HealRequest(additional_params={"all": True}),
    ],
)
def test_later_operations_go_on_with_it(request_: ScaleRequest | HealRequest) -> None:
    instance, found = running()
    kind = OperationType.SCALE if isinstance(request_, ScaleRequest) else OperationType.HEAL
    made = plan(kind, request_, instance, found)
    makes = [step.args["machine"] for step in made.steps if step.action.endswith("make_machine")]
    ports = [port for machine in makes for port in machine["ports"]]
    assert all("network" not in step.args for step in made.steps)
    assert {port["external_network"] for port in ports if port["name"] in ("worker_cp", "master_cp")} == {"standing"}


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (asked("nope"), r"extManagedVirtualLinks\[0\].vnfVirtualLinkDescId: flavour 'simple' has no .*it has: net"),
        (
            asked("net", "net"),
            r"extManagedVirtualLinks\[1\].vnfVirtualLinkDescId: the virtual link 'net' is there twice",
        ),
        (asked("net", network=" "), r"extManagedVirtualLinks\[0\].resourceId: it is empty"),
    ],
)
def test_one_that_can_not_be_is_refused_with_its_place(request_: InstantiateRequest, named: str) -> None:
    with pytest.raises(BadRequest, match=named):
        plan(KIND, request_, empty_instance())


@pytest.mark.parametrize("network", ["", "a\nb", "x" * 256])
def test_an_id_that_is_none_does_not_get_in(network: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="resourceId"):
        asked("net", network=network)


def change_package(instance: Instance, *links: dict[str, Any]) -> InstantiatedVnfInfo:
    request = msgspec.convert({"vnfdId": "d", "extManagedVirtualLinks": links}, ChangePackageRequest)
    rules, now = OPERATIONS[OperationType.CHANGE_VNFPKG], situation(OperationType.CHANGE_VNFPKG, request, instance)
    rules.check(now, request)
    assert rules.change
    after = rules.change(now, request).after
    vnf = rules.complete(now, request)
    assert after
    assert vnf.instantiated_vnf_info
    assert dict(after.managed_networks) == {
        link.vnf_virtual_link_desc_id: link.network_resource.resource_id
        for link in vnf.instantiated_vnf_info.ext_managed_virtual_link_info
    }
    return vnf.instantiated_vnf_info


def test_a_change_of_package_keeps_it_whether_it_is_said_again_or_not() -> None:
    instance, _ = running()
    for said in ((), ({"id": "m0", "vnfVirtualLinkDescId": "net", "resourceId": "standing"},)):
        assert (
            change_package(instance, *said).ext_managed_virtual_link_info
            == info_of(instance).ext_managed_virtual_link_info
        )


def test_a_change_of_package_moves_no_link_to_another_network() -> None:
    other = {"id": "m", "vnfVirtualLinkDescId": "net", "resourceId": "another"}
    for standing in (running()[0], instantiated()[0]):
        with pytest.raises(BadRequest, match=r"extManagedVirtualLinks\[0\].resourceId: .*moves no ports"):
            change_package(standing, other)


def test_what_a_grant_gives_goes_before_the_request() -> None:
    granted = [{"id": "g", "vnfVirtualLinkDescId": "net", "resourceId": "granted"}]
    grant = msgspec.convert(
        {"id": "g", "vnfInstanceId": "i", "vnfLcmOpOccId": "o", "extManagedVirtualLinks": granted}, Grant
    )
    request = with_grant(asked("net", "other"), grant, OPERATIONS[KIND])
    assert isinstance(request, InstantiateRequest)
    assert [(one.vnf_virtual_link_desc_id, one.resource_id) for one in request.ext_managed_virtual_links] == [
        ("other", "standing"),
        ("net", "granted"),
    ]


def with_addresses(*addresses: dict[str, Any]) -> InstantiateRequest:
    ethernet = {"ipAddresses": list(addresses)}
    config = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}]}
    link = {"id": "l", "resourceId": "n", "extCps": [{"cpdId": "worker_ext", "cpConfig": {"a": config}}]}
    return msgspec.convert({"flavourId": "simple", "extVirtualLinks": [link]}, InstantiateRequest)


FIXED = {"type": "IPV4", "fixedAddresses": ["10.0.0.5"]}


@pytest.mark.parametrize(
    ("addresses", "error", "named"),
    [
        ([FIXED, {"type": "IPV6", "numDynamicAddresses": 1}], Unprocessable, "numDynamicAddresses: .*need a subnetId"),
        ([{"type": "IPV4", "numDynamicAddresses": 2}], Unprocessable, "numDynamicAddresses: .*need a subnetId"),
        ([{"type": "IPV4", "numDynamicAddresses": 17, "subnetId": "s"}], Unprocessable, "ipAddresses: .*at most 16"),
        ([{"type": "IPV4", "fixedAddresses": [f"10.0.0.{n}" for n in range(2, 19)]}], Unprocessable, "at most 16"),
        ([{"type": "IPV4", "fixedAddresses": ["10.0.0.256"]}], BadRequest, "fixedAddresses: '10.0.0.256' is not"),
        ([{"type": "IPV6", "fixedAddresses": ["10.0.0.5"]}], BadRequest, "is not of the type IPV6"),
        (
            [FIXED | {"numDynamicAddresses": 1}],
            BadRequest,
            "ipAddresses: fixedAddresses and numDynamicAddresses are both",
        ),
    ],
)
def test_addresses_that_nobody_could_give_are_refused_at_instantiation(
    addresses: list[dict[str, Any]], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        plan(KIND, with_addresses(*addresses), empty_instance())


@pytest.mark.parametrize("number", [0, -5])
def test_less_than_one_address_does_not_get_in(number: int) -> None:
    with pytest.raises(msgspec.ValidationError, match="numDynamicAddresses"):
        with_addresses({"type": "IPV4", "numDynamicAddresses": number, "subnetId": "s"})


@pytest.mark.parametrize("driver", [SimulatedDriver, SandboxDriver])
@pytest.mark.parametrize(
    ("addresses", "named"),
    [
        ([FIXED | {"subnetId": "s"}], "subnetId of the connection point worker_ext: .*leave it out"),
        (
            [{"type": "IPV4", "fixedAddresses": ["10.0.0.5", "10.0.0.6"]}],
            "ipAddresses of the .*worker_ext: .*ask for one",
        ),
    ],
)
def test_a_driver_without_subnets_says_so(driver: Any, addresses: list[dict[str, Any]], named: str) -> None:
    request = with_addresses(*addresses)
    rules = OPERATIONS[KIND]
    assert rules.change
    change = rules.change(situation(KIND, request, empty_instance()), request)
    with pytest.raises(Unprocessable, match=named):
        driver.planner.refuse(change)


def test_the_record_shows_all_addresses_with_their_subnets() -> None:
    second = {"type": "IPV6", "numDynamicAddresses": 1, "subnetId": "b"}
    instance, found = instantiated(with_addresses({**FIXED, "subnetId": "a"}, second))
    given = (Address(ip="10.0.0.5", subnet="a"), Address(ip="fd00::5", subnet="b"))
    machines = tuple(
        replace(one, ports=tuple(replace(port, addresses=given) for port in one.ports)) for one in found.machines
    )
    info = with_outcomes(info_of(instance), [Outcome(machines=machines)], FLAVOUR, "vim", {}, 2)
    first = next(cp for cp in info.ext_cp_info if cp.cpd_id == "worker_ext")
    assert first.cp_config_id == "a"
    ethernet = first.cp_protocol_info[0].ip_over_ethernet
    assert shown(ethernet) == {
        "ipAddresses": [
            {"type": "IPV4", "addresses": ["10.0.0.5"], "isDynamic": False, "subnetId": "a"},
            {"type": "IPV6", "addresses": ["fd00::5"], "isDynamic": True, "subnetId": "b"},
        ]
    }
    assert inventory(info).machines[0].ports[0].addresses == given, "and it is read as it was written"
