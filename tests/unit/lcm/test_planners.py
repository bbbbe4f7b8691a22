"""From request to plan, without any I/O."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from slipway.lcm import instantiate, scale
from slipway.lcm.record import reconciled
from slipway.model.descriptor import Vdu
from slipway.model.errors import BadRequest, Conflict, Unprocessable
from slipway.model.instance import (
    CpConfig,
    CpProtocolData,
    ExtVirtualLink,
    IpAddresses,
    IpOverEthernet,
    ScaleInfo,
    VnfExtCpData,
)
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import (
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from tests.unit.lcm.situations import FLAVOUR, empty_instance, instantiated, plan, situation


def ids(made: Plan) -> set[str]:
    return {step.id for step in made.steps}


def out(steps: int = 1, aspect: str = "workers") -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id=aspect, number_of_steps=steps)


def back(steps: int = 1) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="workers", number_of_steps=steps)


def test_an_instantiation_makes_the_default_level() -> None:
    made = plan(OperationType.INSTANTIATE, InstantiateRequest(flavour_id="simple"), empty_instance())
    assert ids(made) == {
        "make network net",
        "make machine master-0",
        "make machine worker-0",
        "make machine worker-1",
    }


def test_an_instantiation_level_asked_for_gives_its_own_counts() -> None:
    request = InstantiateRequest(flavour_id="simple", instantiation_level_id="big")
    made = plan(OperationType.INSTANTIATE, request, empty_instance())
    assert {f"make machine worker-{slot}" for slot in range(4)} <= ids(made)


def test_a_vnf_of_more_machines_than_can_be_planned_is_refused() -> None:
    """Each VDU is within the bounds of its own; a package may have thousands of them."""
    many = {f"vdu{number}": Vdu(name=f"vdu{number}", initial=10_000, maximum=10_000) for number in range(5000)}
    request = InstantiateRequest(flavour_id="simple")
    asked = dataclasses.replace(
        situation(OperationType.INSTANTIATE, request, empty_instance()), flavour=replace(FLAVOUR, vdus=many)
    )
    with pytest.raises(Unprocessable, match=r"50000000 machines; at most 10000"):
        instantiate.change(asked, request)
    pods = {name: replace(vdu, container=True) for name, vdu in many.items()}  # of which the VIM is told the number
    target = instantiate.change(dataclasses.replace(asked, flavour=replace(FLAVOUR, vdus=pods)), request).after
    assert target is not None
    assert target.members == ()


def test_the_same_situation_gives_the_same_plan_and_another_version_other_ids() -> None:
    request = InstantiateRequest(flavour_id="simple")
    first = plan(OperationType.INSTANTIATE, request, empty_instance())
    assert plan(OperationType.INSTANTIATE, request, empty_instance()) == first
    later = plan(OperationType.INSTANTIATE, request, replace(empty_instance(), version=2))
    assert ids(later) == ids(first)
    assert later != first


def test_external_networks_and_fixed_addresses_reach_the_ports_slot_by_slot() -> None:
    def fixed(address: str) -> CpConfig:
        ips = IpAddresses(type="IPV4", fixed_addresses=(address,))
        ethernet = IpOverEthernet(mac_address="02:00:00:00:00:01", ip_addresses=(ips,))
        return CpConfig(
            cp_protocol_data=(CpProtocolData(layer_protocol="IP_OVER_ETHERNET", ip_over_ethernet=ethernet),)
        )

    configs = {"one": fixed("192.0.2.7"), "two": fixed("192.0.2.8")}
    link = ExtVirtualLink(
        id="l", resource_id="outside", ext_cps=(VnfExtCpData(cpd_id="worker_ext", cp_config=configs),)
    )
    made = plan(
        OperationType.INSTANTIATE, InstantiateRequest(flavour_id="simple", ext_virtual_links=(link,)), empty_instance()
    )
    machines = {step.nodes[0]: step.args["machine"] for step in made.steps if step.nodes}
    for slot, address in (("worker-0", "192.0.2.7"), ("worker-1", "192.0.2.8")):
        port = machines[slot]["ports"][1]
        assert (port["external_network"], port["addresses"]) == ("outside", [{"ip": address}])


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (InstantiateRequest(flavour_id="simple", instantiation_level_id="huge"), "instantiationLevelId"),
        (
            InstantiateRequest(
                flavour_id="simple",
                ext_virtual_links=(ExtVirtualLink(id="l", resource_id="r", ext_cps=(VnfExtCpData(cpd_id="nope"),)),),
            ),
            r"extVirtualLinks\[0\].extCps",
        ),
    ],
)
def test_an_instantiation_that_names_what_is_not_there_is_refused(request_: InstantiateRequest, named: str) -> None:
    with pytest.raises(BadRequest, match=named):
        plan(OperationType.INSTANTIATE, request_, empty_instance())


def test_a_scale_out_touches_only_new_machines() -> None:
    instance, found = instantiated()
    assert ids(plan(OperationType.SCALE, out(2), instance, found)) == {
        "make machine worker-2",
        "make machine worker-3",
    }


def test_a_scale_in_takes_the_newest() -> None:
    instance, found = instantiated(InstantiateRequest(flavour_id="simple", instantiation_level_id="big"))
    assert ids(plan(OperationType.SCALE, back(2), instance, found)) == {
        "remove machine worker-2",
        "remove machine worker-3",
    }


def test_a_scale_leaves_a_broken_machine_to_a_heal() -> None:
    instance, found = instantiated()
    broken = replace(found, machines=tuple(replace(machine, ready=False) for machine in found.machines))
    seen = reconciled(broken, instance.vnf.instantiated_vnf_info)
    assert ids(plan(OperationType.SCALE, out(), instance, seen)) == {"make machine worker-2"}


def test_a_list_that_leaves_machines_out_leaves_none_behind() -> None:
    instance, _ = instantiated()
    nothing_seen = reconciled(Found(), instance.vnf.instantiated_vnf_info)
    request = TerminateRequest(termination_type=TerminationType.FORCEFUL)
    assert ids(plan(OperationType.TERMINATE, request, instance, nothing_seen)) == {
        "remove machine master-0",
        "remove machine worker-0",
        "remove machine worker-1",
        "remove network net",
    }


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (out(5), "levels 0 to 4"),
        (out(4), "its profile allows 5"),
        (back(1), "level -1"),
        (out(1, "nope"), "aspectId"),
    ],
)
def test_a_scale_out_of_bounds_is_refused_with_the_bounds(request_: ScaleRequest, named: str) -> None:
    instance, found = instantiated()
    with pytest.raises(BadRequest, match=named):
        plan(OperationType.SCALE, request_, instance, found)


def test_a_heal_replaces_the_machine_in_its_slot_and_keeps_port_and_volume() -> None:
    instance, found = instantiated()
    info = instance.vnf.instantiated_vnf_info
    assert info is not None
    sick = next(vnfc for vnfc in info.vnfc_resource_info if vnfc.metadata["name"] == "worker-1")
    named = next(vnfc.id for vnfc in info.vnfc_info if vnfc.vnfc_resource_info_id == sick.id)
    made = plan(OperationType.HEAL, HealRequest(vnfc_instance_id=(named,)), instance, found)
    assert ids(made) == {"remove machine worker-1", "make machine worker-1"}
    machine = next(step.args["machine"] for step in made.steps if step.id == "make machine worker-1")
    assert machine["id"] != sick.id
    assert [port["id"] for port in machine["ports"]] == [cp.id for cp in sick.vnfc_cp_info]
    assert [volume["id"] for volume in machine["volumes"]] == list(sick.storage_resource_ids)


def test_a_whole_heal_with_all_renews_networks_ports_and_volumes_too() -> None:
    instance, found = instantiated()
    made = plan(OperationType.HEAL, HealRequest(additional_params={"all": True}), instance, found)
    assert {"make network net", "remove network net"} <= ids(made)
    old = {port.id for port in found.ports} | {volume.id for volume in found.volumes}
    new = {
        item["id"]
        for step in made.steps
        if "make machine" in step.id
        for item in [*step.args["machine"]["ports"], *step.args["machine"].get("volumes", [])]
    }
    assert not old & new


def test_a_heal_of_what_is_not_there_or_with_a_wrong_flag_is_refused() -> None:
    instance, found = instantiated()
    with pytest.raises(BadRequest, match=r"vnfcInstanceId\[0\]"):
        plan(OperationType.HEAL, HealRequest(vnfc_instance_id=("nobody",)), instance, found)
    with pytest.raises(BadRequest, match=r"additionalParams\.all"):
        plan(OperationType.HEAL, HealRequest(additional_params={"all": "yes"}), instance, found)


def test_a_graceful_termination_gives_machines_time() -> None:
    instance, found = instantiated()
    request = TerminateRequest(termination_type=TerminationType.GRACEFUL, graceful_termination_timeout=7)
    made = plan(OperationType.TERMINATE, request, instance, found)
    assert {step.args["grace_seconds"] for step in made.steps if step.nodes} == {7}


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        (OperationType.SCALE, out()),
        (OperationType.HEAL, HealRequest()),
        (OperationType.TERMINATE, TerminateRequest(termination_type=TerminationType.FORCEFUL)),
    ],
)
def test_what_needs_an_instantiated_vnf_says_so(
    kind: OperationType, request_: ScaleRequest | HealRequest | TerminateRequest
) -> None:
    with pytest.raises(Conflict, match="not instantiated"):
        plan(kind, request_, empty_instance())


def test_an_instantiated_vnf_is_not_instantiated_again() -> None:
    instance, found = instantiated()
    with pytest.raises(Conflict, match="instantiated already"):
        plan(OperationType.INSTANTIATE, InstantiateRequest(flavour_id="simple"), instance, found)


def test_the_newest_member_leaves_first_also_after_a_heal() -> None:
    instance, _ = instantiated()
    info = instance.vnf.instantiated_vnf_info
    assert info is not None
    healed = tuple(
        replace(vnfc, metadata={**vnfc.metadata, "madeAt": 2}) if vnfc.metadata["name"] == "worker-0" else vnfc
        for vnfc in info.vnfc_resource_info
    )
    grown = replace(info, vnfc_resource_info=healed, scale_status=(ScaleInfo(aspect_id="workers", scale_level=1),))
    smaller = replace(FLAVOUR, vdus={**FLAVOUR.vdus, "worker": replace(FLAVOUR.vdus["worker"], initial=1)})
    later = replace(instance, vnf=replace(instance.vnf, instantiated_vnf_info=grown))
    now = dataclasses.replace(situation(OperationType.SCALE, back(), later), flavour=smaller)
    change = scale.change(now, back())
    assert change.before is not None
    assert change.after is not None
    left = {one.name for one in change.before.members} - {one.name for one in change.after.members}
    assert left == {"worker-0"}


def test_a_heal_is_about_the_server_that_stands_when_somebody_had_it_made_anew() -> None:
    instance, found = instantiated()
    anew = replace(found, machines=tuple(replace(one, resource_id=f"{one.resource_id} anew") for one in found.machines))
    seen = reconciled(anew, instance.vnf.instantiated_vnf_info)
    assert [one.resource_id for one in seen.machines] == [one.resource_id for one in anew.machines]
    assert [one.name for one in seen.machines] == [one.name for one in found.machines]
