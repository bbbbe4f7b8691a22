"""What a request or a grant says and a package's template does not read is refused by name, before all is made."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from slipway.model.descriptor import ConnectionPoint, Flavour, Vdu
from slipway.model.errors import Unprocessable
from slipway.model.instance import ExtVirtualLink, IpAddresses
from slipway.model.machine import Found, FoundMachine
from slipway.model.target import Change, VnfTarget
from slipway.package.build import build_package
from slipway.vim.openstack.desired_stack import desired_stack
from slipway.vim.openstack.stack_steps import steps_of
from tests.unit.vim.openstack_targets import INSTANCE, change_to, fixed, image, link, target

TOP = "BaseHOT/simple/top.yaml"
SERVER = """
heat_template_version: 2021-04-16
resources:
  VDU1: {type: OS::Nova::Server}
"""
ZONE, SIZE, IMAGE = (f"[nfv, VDU, VDU1, {key}]" for key in ("locationConstraints", "computeFlavourId", "vcImageId"))
NETWORK, ADDRESS = "[nfv, CP, VDU1_CP1, network]", "[nfv, CP, VDU1_CP1, fixed_ips, 0, ip_address]"
SUBNET, ALL_ADDRESSES = "[nfv, CP, VDU1_CP1, fixed_ips, 0, subnet]", "[nfv, CP, VDU1_CP1, fixed_ips]"


def template(*reads: str) -> dict[str, str]:
    properties = "\n".join(f"      p{number}: {{get_param: {one}}}" for number, one in enumerate(reads))
    top = f"""
heat_template_version: 2021-04-16
parameters: {{nfv: {{type: json}}}}
resources:
  VDU1:
    type: VDU1.yaml
    properties:
{properties}
"""
    return {TOP: top, "BaseHOT/simple/nested/VDU1.yaml": SERVER}


def vnf(*reads: str, links: tuple[ExtVirtualLink, ...] = (), **granted: Any) -> VnfTarget:
    vdu = Vdu(name="VDU1", initial=1, image=image("debian"), flavour="m1.small")
    points = {"VDU1_CP1": ConnectionPoint(name="VDU1_CP1", vdu="VDU1")}
    flavour = Flavour(id="simple", vdus={"VDU1": vdu}, connection_points=points)
    return target(flavour, template(NETWORK, *reads), links=links or (link("VDU1_CP1"),), **granted)


@pytest.mark.parametrize(
    ("given", "named", "reads"),
    [
        ({"zones": {"id of VDU1-0": "az1"}}, "the zone az1 that was granted for VDU VDU1: .*locationConstraints", ZONE),
        ({"images": {"VDU1": "other"}}, "the image other that was granted for VDU1: .*nfv.VDU.VDU1.vcImageId", IMAGE),
        ({"flavours": {"VDU1": "huge"}}, "the flavor huge that was granted for VDU VDU1: .*computeFlavourId", SIZE),
        (
            {"links": (link("VDU1_CP1", fixed("192.0.2.9")),)},
            "extVirtualLinks: the address 192.0.2.9 of the connection point VDU1_CP1: .*fixed_ips.0.ip_address",
            ADDRESS,
        ),
        (
            {"links": (link("VDU1_CP1", IpAddresses(type="IPV4", subnet_id="5b1a")),)},
            "extVirtualLinks: the subnet 5b1a of the connection point VDU1_CP1: .*fixed_ips.0.subnet",
            SUBNET,
        ),
        ({"links": (link("VDU1_CP1", fixed("192.0.2.9", "5b1a")),)}, "the address 192.0.2.9", ADDRESS),
        ({"links": (link("VDU1_CP1", fixed("192.0.2.9", "5b1a")),)}, "the address 192.0.2.9", ALL_ADDRESSES),
    ],
)
def test_what_the_template_does_not_read_is_refused_and_what_it_reads_is_not(
    given: dict[str, Any], named: str, reads: str
) -> None:
    with pytest.raises(Unprocessable, match=named):
        steps_of(change_to(vnf(**given)), Found())
    assert [step.id for step in steps_of(change_to(vnf(reads, **given)), Found()).steps] == ["make stack"]


def test_an_address_more_than_the_template_reads_is_refused() -> None:
    two = IpAddresses(type="IPV4", fixed_addresses=("192.0.2.8", "192.0.2.9"))
    with pytest.raises(Unprocessable, match=r"the address 192.0.2.9 .*fixed_ips.1.ip_address"):
        steps_of(change_to(vnf(ADDRESS, links=(link("VDU1_CP1", two),))), Found())
    assert steps_of(change_to(vnf(ALL_ADDRESSES, links=(link("VDU1_CP1", two),))), Found()).steps


def test_a_mac_is_refused_for_no_template_is_given_one() -> None:
    asked = link("VDU1_CP1", fixed("192.0.2.9"), mac="02:00:00:00:00:01")
    with pytest.raises(Unprocessable, match="the MAC 02:00:00:00:00:01 of the connection point VDU1_CP1"):
        steps_of(change_to(vnf(ADDRESS, links=(asked,))), Found())


def test_a_network_that_the_template_does_not_read_is_refused() -> None:
    after = vnf(links=(link("VDU1_CP1", network="net0"),))
    without = target(after.flavour, template(ZONE), links=after.links)
    with pytest.raises(Unprocessable, match=r"the network net0 of the connection point VDU1_CP1: .*VDU1_CP1.network"):
        steps_of(change_to(without), Found())


def test_a_heal_of_a_vnf_that_was_made_before_goes_on() -> None:
    """What was once accepted must not keep a VNF from being healed."""
    there = vnf(links=(link("VDU1_CP1", fixed("192.0.2.9")),))
    machine = FoundMachine(id="id of VDU1-0", name="VDU1-0", vdu="VDU1", resource_id="s", ready=True)
    change = Change(instance_id=INSTANCE, version=1, inventory=Found(machines=(machine,)), before=there, after=there)
    assert steps_of(change, Found(machines=(machine,))).steps


def test_where_nothing_is_asked_for_a_template_that_hands_on_all_addresses_gets_an_empty_list() -> None:
    """Heat would make a text of it, and a port wants a list."""
    after = vnf(ALL_ADDRESSES)
    assert desired_stack(change_to(after), after).spec.parameters["nfv"]["CP"]["VDU1_CP1"] == {
        "network": "outside",
        "fixed_ips": [],
    }


@pytest.mark.parametrize(
    ("package", "flavour"),
    [
        ("cluster-openstack", "simple"),
        ("cluster-openstack", "ha"),
        ("cluster-openstack", "storage"),
        ("cluster-kubespray-openstack", "simple"),
        ("cluster-kubespray-openstack", "ha"),
    ],
)
def test_samples_of_clusters_read_zones_and_addresses(package: str, flavour: str, tmp_path: Path) -> None:
    sample = Path(__file__).parents[3] / "samples" / package
    files = {
        path.relative_to(sample).as_posix(): path.read_text() for path in sample.rglob(f"BaseHOT/{flavour}/**/*.yaml")
    }
    made_of = build_package(sample, tmp_path / "sample.csar").descriptor.flavours[flavour]
    links = tuple(link(name, fixed("192.0.2.8")) for name in made_of.connection_points)
    names = [f"{vdu}-{slot}" for vdu in made_of.vdus for slot in range(2 if vdu == "workerNode" else 1)]
    after = target(made_of, files, links=links, members=names)
    after = dataclasses.replace(after, zones={one.id: f"az{one.slot}" for one in after.members})
    assert [step.id for step in steps_of(change_to(after), Found()).steps] == ["make stack"]
    nfv = desired_stack(change_to(after), after).spec.parameters["nfv"]
    assert nfv["VDU"]["workerNode-1"]["locationConstraints"] == "az1"
    assert nfv["CP"]["workerNode_CP1-0"]["fixed_ips"] == [{"ip_address": "192.0.2.8"}]
    assert nfv["CP"]["workerNode_CP1-1"]["fixed_ips"] == []
