"""What a change of external connectivity wants of the VIM: other ports where they move, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from slipway.lcm import change_ext_conn
from slipway.model.errors import BadRequest, Conflict
from slipway.model.instance import (
    CpConfig,
    CpProtocolData,
    ExtVirtualLink,
    Instance,
    IpOverEthernet,
    VimConnectionInfo,
    VnfExtCpData,
)
from slipway.model.machine import Address, Found, FoundPort, Machine, Port, Wanted
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import ChangeExtConnRequest, InstantiateRequest
from slipway.vim.machine_by_machine.moved_ports import moved_ports
from tests.unit.lcm.situations import empty_instance, instantiated, plan, situation

KIND = OperationType.CHANGE_EXT_CONN


def link(id_: str, network: str, *fixed: str, point: str = "worker_ext") -> ExtVirtualLink:
    def config(address: str) -> dict[str, Any]:
        ips = [{"type": "IPV4", "fixedAddresses": [address]}]
        return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": ips}}]}

    configs = {str(at): config(address) for at, address in enumerate(fixed)}
    data = {"id": id_, "resourceId": network, "extCps": [{"cpdId": point, "cpConfig": configs}]}
    return msgspec.convert(data, ExtVirtualLink)


def standing(*links: ExtVirtualLink) -> tuple[Instance, Found]:
    """Each port has the address 10.0.0.9, and the VIM does not tell which network it is on."""
    return instantiated(InstantiateRequest(flavour_id="simple", ext_virtual_links=links or (link("l", "net-1"),)))


def asked(*links: ExtVirtualLink) -> ChangeExtConnRequest:
    return ChangeExtConnRequest(ext_virtual_links=links)


def changed(*links: ExtVirtualLink, before: tuple[ExtVirtualLink, ...] = ()) -> Plan:
    instance, found = standing(*before)
    return plan(KIND, asked(*links), instance, found)


def noted(instance: Instance, network: str) -> Instance:
    """As a VIM that tells networks leaves the record, with every outside port of the first worker on `network`."""
    info = instance.vnf.instantiated_vnf_info
    assert info is not None
    vnfcs = []
    for vnfc in info.vnfc_resource_info:
        on = network if vnfc.metadata["name"] == "worker-0" else "net-1"
        cps = [replace(cp, metadata=cp.metadata | {"network": on}) for cp in vnfc.vnfc_cp_info if "ext" in cp.cpd_id]
        others = [cp for cp in vnfc.vnfc_cp_info if "ext" not in cp.cpd_id]
        vnfcs.append(replace(vnfc, vnfc_cp_info=(*others, *cps)))
    return replace(
        instance, vnf=replace(instance.vnf, instantiated_vnf_info=replace(info, vnfc_resource_info=tuple(vnfcs)))
    )


def test_another_network_is_another_port_on_the_same_machine() -> None:
    made = changed(link("l", "net-2"))
    assert {step.id: step.after for step in made.steps} == {
        "unplug from machine worker-0": (),
        "unplug from machine worker-1": (),
        "repair machine worker-0": ("unplug from machine worker-0",),
        "repair machine worker-1": ("unplug from machine worker-1",),
    }
    instance, _ = standing()
    info = instance.vnf.instantiated_vnf_info
    assert info is not None
    old = {cp.id for vnfc in info.vnfc_resource_info for cp in vnfc.vnfc_cp_info}
    for step in made.steps[2:]:
        inside, outside = step.args["machine"]["ports"]
        assert inside["id"] in old
        assert outside["id"] not in old
        assert outside["external_network"] == "net-2"
    for step in made.steps[:2]:
        assert step.action == "simulated.take_ports"
        was = step.args["machine"]["ports"][1]
        assert (was["external_network"], was["addresses"]) == ("net-1", [{"ip": "10.0.0.9"}])
        assert step.args["ports"] == [was["id"]]


def test_nothing_changes_and_nothing_is_done() -> None:
    assert changed(link("l", "net-1")).steps == ()
    assert changed(link("other-name", "net-1")).steps == ()


def test_only_the_ports_whose_address_changes_are_made_anew() -> None:
    before = (link("l", "net-1", "10.0.0.9"),)
    assert changed(*before, before=before).steps == ()
    one = changed(link("l", "net-1", "10.0.0.9", "10.0.0.8"), before=before)
    assert [step.nodes for step in one.steps] == [("worker-1",), ("worker-1",)]
    none = changed(link("m", "net-1"), before=before)
    assert [step.nodes for step in none.steps] == [("worker-0",), ("worker-0",)]


def test_the_record_of_a_port_counts_more_than_that_of_its_link() -> None:
    """An operation that was given up half-way: the first worker is on net-2 already, the link's record is net-1's."""
    instance, found = standing()
    half = noted(instance, "net-2")
    back = plan(KIND, asked(link("l", "net-1")), half, found)
    on = plan(KIND, asked(link("l", "net-2")), half, found)
    assert {step.nodes for step in back.steps} == {("worker-0",)}
    assert back.steps[0].args["machine"]["ports"][1]["external_network"] == "net-2"
    assert {step.nodes for step in on.steps} == {("worker-1",)}


def test_the_record_has_the_links_of_the_request() -> None:
    instance, _ = standing()
    connection = VimConnectionInfo(vim_type="t", access_info={"a": 1})
    instance = replace(instance, vnf=replace(instance.vnf, vim_connection_info={"vim": connection}))
    request = replace(asked(link("m", "net-2")), vim_connection_info={"vim": VimConnectionInfo(access_info={"b": 2})})
    vnf = change_ext_conn.complete(situation(KIND, request, instance), request)
    info = vnf.instantiated_vnf_info
    assert info is not None
    assert [(one.id, one.resource_handle.resource_id) for one in info.ext_virtual_link_info] == [("m", "net-2")]
    assert vnf.vim_connection_info["vim"].access_info == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ([link("l", "net-1", point="nobody's")], r"extVirtualLinks\[0\].extCps: .* no connection point \"nobody's\""),
        ([link("l", "net-1"), link("m", "net-2")], r"extVirtualLinks\[1\].extCps: .*'worker_ext' is there twice"),
        ([link("l", "net-1"), link("l", "net-1", point="worker_cp")], r"extVirtualLinks\[1\].id: .*'l' is there twice"),
        ([link("", "net-1")], r"extVirtualLinks\[0\].id: it is empty"),
        ([link("l", " ")], r"extVirtualLinks\[0\].resourceId: it is empty"),
        ([ExtVirtualLink(id="m", resource_id="net-2")], r"extCps: the VNF has no link 'm'.* It has: l\."),
        ([link("l", "net-1", "10.0.0.256")], r"cpConfig.0.fixedAddresses: '10.0.0.256' is not an IP address"),
        ([link("l", "net-1", "fd00::5%';reboot")], r"fixedAddresses: .*%.* has a zone"),
        ([link("l", "net-1", "fe80::1")], r"'fe80::1' is not of the type IPV4"),
        ([link("l", "net-1", "10.0.0.7", "10.0.0.7")], r"the address 10.0.0.7 is there twice"),
    ],
)
def test_what_cant_be_meant_is_refused(links: list[ExtVirtualLink], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        changed(*links)


def test_wrong_macs_other_vims_and_vnfs_that_are_not_there_are_refused() -> None:
    ethernet = IpOverEthernet(mac_address="02-00")
    config = CpConfig(cp_protocol_data=(CpProtocolData(layer_protocol="IP_OVER_ETHERNET", ip_over_ethernet=ethernet),))
    with pytest.raises(BadRequest, match="macAddress: '02-00' is not a MAC address"):
        changed(replace(link("l", "n"), ext_cps=(VnfExtCpData(cpd_id="worker_ext", cp_config={"a": config}),)))
    instance, found = standing()
    elsewhere = replace(asked(link("l", "net-2")), vim_connection_info={"vim": VimConnectionInfo(vim_id="x")})
    with pytest.raises(BadRequest, match="does not bring the VNF to another VIM"):
        plan(KIND, elsewhere, instance, found)
    with pytest.raises(Conflict, match="not instantiated"):
        plan(KIND, asked(link("l", "net-2")), empty_instance())


@pytest.mark.parametrize(
    ("before", "asked_now", "there", "moves"),
    [
        ((), (), ("10.0.0.5 a",), False),
        (("10.0.0.5",), ("10.0.0.5",), ("10.0.0.5 a",), False),
        ((" a",), (" a",), ("10.0.0.5 a",), False),
        ((" a",), (" a",), ("10.0.0.5",), False),  # a VIM that does not tell subnets
        (
            ("10.0.0.5",),
            ("10.0.0.5", " b"),
            ("10.0.0.5 a", "fd00::5 b"),
            False,
        ),  # as a change that ended half-way left it
        (("10.0.0.5",), ("10.0.0.5",), ("10.0.0.5 a", "fd00::5 b"), False),  # one that the network adds by itself
        ((), (" b",), ("10.0.0.5 a",), True),
        (("10.0.0.5",), ("10.0.0.5", "10.0.0.6"), ("10.0.0.5 a",), True),
        (("10.0.0.5", " b"), ("10.0.0.5",), ("10.0.0.5 a", "fd00::5 b"), True),
        ((" a",), (), ("10.0.0.5 a",), True),
        ((" a", " a"), (" a", " a"), ("10.0.0.5 a",), True),
    ],
)
def test_a_port_stays_when_it_has_all_the_addresses_asked_for(
    before: tuple[str, ...], asked_now: tuple[str, ...], there: tuple[str, ...], moves: bool
) -> None:
    def addresses(texts: tuple[str, ...]) -> tuple[Address, ...]:
        parts = [text.partition(" ") for text in texts]
        return tuple(Address(ip=ip or None, subnet=subnet or None) for ip, _, subnet in parts)

    def wanted(asked: tuple[str, ...]) -> Wanted:
        port = Port(id="p", name="cp", external_network="n", addresses=addresses(asked))
        return Wanted(instance_id="i", machines=(Machine(id="m", name="m-0", vdu="m", ports=(port,)),))

    found = {"p": FoundPort(id="p", name="cp", resource_id="r", network="n", addresses=addresses(there))}
    assert moved_ports(found, wanted(before), wanted(asked_now)) == ({"p"} if moves else set())
