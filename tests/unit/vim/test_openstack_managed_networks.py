"""Networks, subnets and addresses that a request names, on OpenStack: what Heat is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.model.connectivity import asked_addresses
from slipway.model.descriptor import ConnectionPoint, VirtualLink
from slipway.model.errors import Unprocessable
from slipway.model.instance import CpConfig, ExtVirtualLink, IpAddresses, IpOverEthernet, VnfExtCpData
from slipway.model.machine import Address
from slipway.model.target import VnfTarget
from slipway.vim.openstack.base_hot import rendered
from slipway.vim.openstack.desired_stack import desired_stack
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.stack_spec import StackSpec
from tests.unit.vim.openstack_hots import INDEXED, TOP, indexed_flavour
from tests.unit.vim.openstack_targets import change_to, fixed, link, target

NETWORK, OTHER = "87512249-79b9-4e25-b173-18c327436c12", "0cefe3d4-6729-41c5-bd39-277fd9ece3d3"
SUBNET, SUBNET6 = "f2ca4370-8b4b-4c2a-8c0a-4994d3da556d", "5cd1f2f0-64a6-43c5-9f0e-4c0d3e3b0a11"


def spec_of(after: VnfTarget) -> StackSpec:
    return desired_stack(change_to(after), after).spec


def resources(after: VnfTarget) -> dict[str, Any]:
    template = spec_of(after).template
    assert template is not None
    found: dict[str, Any] = template["resources"]
    return found


def connected(*asked: IpAddresses, cp: str = "base_cp", **ethernet: Any) -> ExtVirtualLink:
    """One configuration with all these addresses, for the first member."""
    one = link(cp, asked[0]).ext_cps[0].cp_config["0"]
    data = one.cp_protocol_data[0]
    both = type(data)(
        layer_protocol=data.layer_protocol, ip_over_ethernet=IpOverEthernet(ip_addresses=asked, **ethernet)
    )
    config = CpConfig(cp_protocol_data=(both,))
    return ExtVirtualLink(id="l", resource_id=OTHER, ext_cps=(VnfExtCpData(cpd_id=cp, cp_config={"a": config}),))


def dynamic(subnet: str | None = None, number: int = 1, type_: str = "IPV4") -> IpAddresses:
    return IpAddresses(type=type_, num_dynamic_addresses=number, subnet_id=subnet)


class TestGenerated:
    def test_a_given_network_is_used_and_none_is_made(self) -> None:
        made = resources(target(managed_networks={"net": NETWORK}))
        assert made["work-0:work_cp"] == {"type": "OS::Neutron::Port", "properties": {"network": NETWORK}}
        assert not [name for name, one in made.items() if one["type"] in ("OS::Neutron::Net", "OS::Neutron::Subnet")]

    def test_a_port_gets_all_the_addresses_asked_for_from_their_subnets(self) -> None:
        asked = connected(fixed("192.0.2.5", SUBNET), fixed("192.0.2.6"), dynamic(SUBNET6, type_="IPV6"))
        assert resources(target(links=(asked,)))["base-0:base_cp"]["properties"]["fixed_ips"] == [
            {"ip_address": "192.0.2.5", "subnet": SUBNET},
            {"ip_address": "192.0.2.6"},
            {"subnet": SUBNET6},
        ]

    def test_several_of_the_vims_choice_are_so_many_of_the_subnet(self) -> None:
        asked = connected(dynamic(SUBNET, number=2))
        ports = resources(target(links=(asked,)))["base-0:base_cp"]["properties"]
        assert ports["fixed_ips"] == [{"subnet": SUBNET}, {"subnet": SUBNET}]

    def test_members_without_a_word_are_on_the_same_subnet_with_addresses_of_their_own(self) -> None:
        cp = connected(fixed("192.0.2.5", SUBNET)).ext_cps[0]
        assert asked_addresses(cp, 0) == (Address(ip="192.0.2.5", subnet=SUBNET),)
        assert asked_addresses(cp, 1) == (Address(subnet=SUBNET),)


class TestBaseHot:
    @staticmethod
    def given(**changes: Any) -> VnfTarget:
        made_of = indexed_flavour()
        points = {
            **made_of.connection_points,
            "VDU1_CP2": ConnectionPoint(name="VDU1_CP2", vdu="VDU1", virtual_link="internalVL"),
        }
        links = (
            link("VDU1_CP1", fixed("192.0.2.10"), fixed("192.0.2.11"), network="net0"),
            link("VDU2_CP1", network="net1"),
        )
        parts: dict[str, Any] = {"files": INDEXED, "links": links, "managed_networks": {"internalVL": NETWORK}}
        virtual = {"internalVL": VirtualLink(name="internalVL")}
        return target(
            type(made_of)(
                id="simple",
                vdus=made_of.vdus,
                connection_points=points,
                storages=made_of.storages,
                aspects=made_of.aspects,
                virtual_links=virtual,
            ),
            **{**parts, **changes},
        )

    def test_the_templates_own_network_and_its_subnet_give_way(self) -> None:
        after = self.given()
        spec = spec_of(after)
        template, _ = rendered(spec, {path: file.content for path, file in after.files.items()})
        assert spec.networks == {"internalVL": NETWORK}
        assert {"internalVL", "internalVL_subnet"} & template["resources"].keys() == set()
        assert [template["resources"][f"VDU1-{slot}"]["properties"]["net2"] for slot in (0, 1)] == [NETWORK] * 2

    def test_a_template_that_reads_the_network_of_a_connection_point_is_told_it(self) -> None:
        text = INDEXED[TOP].replace(
            "{get_resource: internalVL}\n      affinity", "{get_param: [nfv, CP, VDU1_CP2, network]}\n      affinity"
        )
        without = text.replace("  internalVL: {type: OS::Neutron::Net}\n", "").partition("  internalVL_subnet:")[0]
        after = self.given(files={**INDEXED, TOP: without})
        assert spec_of(after).parameters["nfv"]["CP"]["VDU1_CP2-1"] == {"network": NETWORK}

    def test_a_template_that_has_no_such_network_is_refused(self) -> None:
        renamed = INDEXED[TOP].replace("internalVL", "another")
        with pytest.raises(Unprocessable, match="has no OS::Neutron::Net named internalVL") as caught:
            spec_of(self.given(files={**INDEXED, TOP: renamed}))
        assert "leave the link out" in caught.value.detail

    def test_what_needs_the_templates_own_subnet_is_named(self) -> None:
        needs = INDEXED[TOP].replace("outputs: {}", "  door:\n    type: OS::Neutron::RouterInterface\n    "
                                     "properties: {router: r, subnet: {get_resource: internalVL_subnet}}")  # fmt: skip
        with pytest.raises(Unprocessable, match="still refers to internalVL_subnet"):
            spec_of(self.given(files={**INDEXED, TOP: needs}))

    @pytest.mark.parametrize(
        "hostile",
        [
            "  a: {type: OS::Neutron::Subnet, properties: {network: [internalVL]}}",
            "  a: {type: OS::Neutron::Port, properties: {network: {get_resource: {get_resource: 5}}}}",
            "  a: {type: OS::Neutron::Subnet, properties: [1], depends_on: internalVL}",
        ],
    )
    def test_a_template_that_is_oddly_written_is_left_for_heat_to_refuse(self, hostile: str) -> None:
        after = self.given(files={**INDEXED, TOP: INDEXED[TOP].replace("outputs: {}", hostile)})
        template, _ = rendered(spec_of(after), {path: file.content for path, file in after.files.items()})
        assert "a" in template["resources"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            (
                {"managed_networks": {"net": "mgmt"}},
                "extManagedVirtualLinks: resourceId of the virtual link net: 'mgmt'",
            ),
            ({"managed_networks": {"net": f"{{{NETWORK}}}"}}, "extManagedVirtualLinks: resourceId"),
            ({"links": (connected(dynamic("subnet-a")),)}, "extVirtualLinks: subnetId of the connection point base_cp"),
        ],
    )
    def test_names_in_the_place_of_ids(self, changes: dict[str, Any], named: str) -> None:
        with pytest.raises(Unprocessable) as caught:
            OpenStackDriver().refuse(change_to(target(**changes)))
        assert caught.value.detail.startswith(named)
        assert "-c id" in caught.value.detail
