"""Ports that exist and that connection points are to be (`linkPortId`): used on OpenStack, not made, not removed."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from slipway.model.action import VimConnection
from slipway.model.errors import Unprocessable, VimError
from slipway.model.instance import CpConfig, ExtLinkPort, ExtVirtualLink, ResourceHandle, VnfExtCpData
from slipway.model.machine import Found, FoundMachine, FoundPort
from slipway.model.target import Change, VnfTarget
from slipway.vim.openstack.actions import StackActions
from slipway.vim.openstack.answers import Port, Server
from slipway.vim.openstack.base_hot import rendered
from slipway.vim.openstack.cloud import Cloud
from slipway.vim.openstack.desired_stack import desired_stack
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.heat import Stack, StackResource
from slipway.vim.openstack.hot_template import SERVER
from slipway.vim.openstack.stack_change import ChangeStack, StackMember
from slipway.vim.openstack.stack_state import StackState, found, machine_of
from slipway.vim.openstack.stack_steps import steps_of
from tests.contract.plans import Context
from tests.unit.vim.openstack_hots import GROUPS, INDEXED, TOP, groups_flavour, indexed_flavour
from tests.unit.vim.openstack_targets import INSTANCE, change_to, link, target
from tests.unit.vim.test_openstack_stack_step import ONE, OneStack

IDS = ("389ade82-7618-4b42-bc90-5ebbac0863cf", "0cefe3d4-6729-41c5-bd39-277fd9ece3d3")
READS_PORT = {
    **INDEXED,
    TOP: INDEXED[TOP]
    .replace(
        "      net1: {get_param: [nfv, CP, VDU1_CP1, network]}\n",
        "      net1: {get_param: [nfv, CP, VDU1_CP1, network]}\n      port1: {get_param: [nfv, CP, VDU1_CP1, port]}\n",
    )
    .replace("      addresses:\n      - {get_param: [nfv, CP, VDU1_CP1, fixed_ips, 0, ip_address]}\n", ""),
}
CONDITIONAL = {
    path: text.replace("resources:", "conditions: {made: true}\nresources:", 1) for path, text in READS_PORT.items()
}


def link_to(cp: str, *ports: str, network: str = "outside") -> ExtVirtualLink:
    """Members' connection points in turn are to be those ports."""
    configs = {str(at): CpConfig(link_port_id=f"p{at}") for at in range(len(ports))}
    there = (ExtLinkPort(id=f"p{at}", resource_handle=ResourceHandle(resource_id=one)) for at, one in enumerate(ports))
    data = VnfExtCpData(cpd_id=cp, cp_config=configs)
    return ExtVirtualLink(id=network, resource_id=network, ext_cps=(data,), ext_link_ports=tuple(there))


def resources(after: VnfTarget) -> dict[str, Any]:
    made = desired_stack(change_to(after), after)
    template, _ = rendered(made.spec, {path: file.content for path, file in after.files.items()})
    found: dict[str, Any] = template["resources"]
    return found


class TestGenerated:
    def test_a_server_uses_the_port_and_no_other_is_made(self) -> None:
        made = resources(target(links=(link_to("base_cp", IDS[0]),)))
        assert made["base-0"]["properties"]["networks"] == [{"port": IDS[0]}]
        assert "base-0:base_cp" not in made

    def test_members_without_a_port_of_their_own_get_one(self) -> None:
        links = (link("base_cp"), link_to("work_cp", IDS[0]))
        made = resources(target(links=links))
        assert made["work-0"]["properties"]["networks"] == [{"port": IDS[0]}]
        assert made["work-1"]["properties"]["networks"] == [{"port": {"get_resource": "work-1:work_cp"}}]
        assert made["work-1:work_cp"]["properties"] == {"network": "outside"}

    def test_who_is_who_names_the_port(self) -> None:
        after = target(links=(link_to("base_cp", IDS[0]),))
        members = {one.name: one.existing_ports for one in desired_stack(change_to(after), after).members}
        assert members == {"base-0": {"base_cp": IDS[0]}, "work-0": {}, "work-1": {}}


class TestTemplates:
    def links(self, *ports: str) -> tuple[ExtVirtualLink, ...]:
        return link_to("VDU1_CP1", *ports, network="net0"), link("VDU2_CP1", network="net1")

    def test_each_copy_reads_its_own_port(self) -> None:
        after = target(indexed_flavour(), files=READS_PORT, links=self.links(*IDS))
        made = desired_stack(change_to(after), after)
        points = made.spec.parameters["nfv"]["CP"]
        assert [points[f"VDU1_CP1-{slot}"] for slot in (0, 1)] == [{"network": "net0", "port": one} for one in IDS]
        assert resources(after)["VDU1-1"]["properties"]["port1"] == {"get_param": ["nfv", "CP", "VDU1_CP1-1", "port"]}
        assert [one.existing_ports for one in made.members] == [{"VDU1_CP1": IDS[0]}, {"VDU1_CP1": IDS[1]}, {}]

    def test_one_that_does_not_read_the_port_is_refused(self) -> None:
        without = {**INDEXED, TOP: INDEXED[TOP].replace(", fixed_ips, 0, ip_address]", ", network]")}
        after = target(indexed_flavour(), files=without, links=self.links(*IDS))
        with pytest.raises(Unprocessable, match=r"linkPortId p0 of .* VDU1_CP1: .*does not read nfv.CP.VDU1_CP1.port"):
            desired_stack(change_to(after), after)

    def test_a_member_without_a_port_is_refused_unless_the_template_can_do_without(self) -> None:
        after = target(indexed_flavour(), files=READS_PORT, links=self.links(IDS[0]))
        with pytest.raises(Unprocessable, match=r"it reads nfv.CP.VDU1_CP1-1.port, .*; name a port by linkPortId"):
            desired_stack(change_to(after), after)
        after = target(indexed_flavour(), files=CONDITIONAL, links=self.links(IDS[0]))
        assert "port" not in desired_stack(change_to(after), after).spec.parameters["nfv"]["CP"]["VDU1_CP1-1"]

    def test_members_of_a_group_cannot_have_one_each(self) -> None:
        links = (link("masterNode_CP1"), link_to("workerNode_CP2", *IDS), link("storage_CP"))
        after = target(groups_flavour(), files=GROUPS, links=links, parameters={"key": "mine"})
        with pytest.raises(Unprocessable, match="workerNode_CP2 is to be a port that exists, and the 2 members"):
            desired_stack(change_to(after), after)


def test_a_name_of_a_port_is_refused() -> None:
    after = target(links=(link_to("base_cp", "my-port"),))
    with pytest.raises(Unprocessable, match="'my-port' is no id of a port; take it from: openstack port show"):
        OpenStackDriver().refuse(change_to(after))


def server(name: str = "work-0") -> StackResource:
    return StackResource(name, SERVER, f"server {name}", "CREATE_COMPLETE", "", ("s", "s"), (name,))


def state(*ports: Port) -> StackState:
    stack = Stack("top", "vnf", "CREATE_COMPLETE", "", None)
    servers = {"server work-0": Server(id="server work-0", status="ACTIVE")}
    return StackState(stack, (server(),), servers, {one.id: one for one in ports})


MEMBER = StackMember(id="vnfc", name="work-0", vdu="work", top="work-0", existing_ports={"work_cp": IDS[0]})
ON_IT = Port(id=IDS[0], device_id="server work-0", mac_address="fa:16:3e:00:00:01", network_id="outside")


class TestState:
    def test_a_machine_has_the_port_as_neutron_shows_it(self) -> None:
        (port,) = machine_of(state(ON_IT), MEMBER, server()).ports
        assert (port.name, port.resource_id, port.mac, port.existing) == ("work_cp", IDS[0], "fa:16:3e:00:00:01", True)

    def test_a_port_that_the_account_does_not_see_is_there_all_the_same(self) -> None:
        assert [one.id for one in machine_of(state(), MEMBER, server()).ports] == [IDS[0]]

    def test_what_the_record_knows_is_found_where_it_is(self) -> None:
        held = FoundPort(id=IDS[0], name="work_cp", resource_id=IDS[0], existing=True)
        known = FoundMachine(
            id="vnfc", name="work-0", vdu="work", resource_id="server work-0", ready=True, ports=(held,)
        )
        inventory = Found(machines=(known,))
        assert [port.existing for one in found(state(ON_IT), inventory).machines for port in one.ports] == [True]
        elsewhere = replace(ON_IT, device_id="")
        assert [one.ports for one in found(state(elsewhere), inventory).machines] == [()]
        assert found(state(ON_IT), inventory).ports == (), "it is not the stack's"


def test_a_termination_does_not_count_the_port_among_what_goes() -> None:
    held = FoundPort(id=IDS[0], name="work_cp", resource_id=IDS[0], existing=True)
    known = FoundMachine(id="vnfc", name="work-0", vdu="work", resource_id="s", ready=True, ports=(held,))
    before = target(links=(link_to("base_cp", IDS[0]),))
    ending = Change(instance_id=INSTANCE, version=1, inventory=Found(machines=(known,)), before=before)
    step, _ = steps_of(ending, ending.inventory).steps
    assert step.args["known"] == ["vnfc"]


class WithPort(OneStack):
    """Neutron has the port, on that server."""

    holder = "work-0"

    def _said(self, path: str) -> dict[str, Any]:
        if path == "/ports":
            return {"ports": [{"id": IDS[0], "device_id": self.holder, "fixed_ips": [{"ip_address": "192.0.2.7"}]}]}
        return super()._said(path)


async def run(cloud: WithPort) -> Any:
    action = StackActions(lambda connection: cast("Cloud", cloud)).all[0]
    args = ChangeStack(before=ONE, after=ONE, members=(MEMBER,))
    return await action.run(args, Context(VimConnection("openstack", {}, {}, {}), "i"))


async def test_a_step_tells_the_port_and_what_it_has() -> None:
    (machine,) = (await run(WithPort("UPDATE_COMPLETE"))).machines
    assert [(one.id, one.address, one.existing) for one in machine.ports] == [(IDS[0], "192.0.2.7", True)]


async def test_a_template_that_leaves_the_port_alone_is_no_success() -> None:
    cloud = WithPort("UPDATE_COMPLETE")
    cloud.holder = ""
    with pytest.raises(
        VimError, match=f"port {IDS[0]} is not on the server of VNFC work-0, whose connection point work_cp"
    ):
        await run(cloud)
