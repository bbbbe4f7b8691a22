"""Who is who in a stack, and what a look at it costs."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, cast

import msgspec
import pytest

from slipway.model.machine import Found, FoundMachine, FoundPort
from slipway.vim.blocking import MOST_WAITING
from slipway.vim.openstack.answers import AttachedVolume, Port, Server, decoded
from slipway.vim.openstack.cloud import Cloud, Query
from slipway.vim.openstack.heat import FLOATING_IP, PORT, SERVER, VOLUME, Stack, StackResource
from slipway.vim.openstack.stack_change import StackMember
from slipway.vim.openstack.stack_state import StackState, found, look, servers_of, surplus, unattached_ports

T = TypeVar("T")
STACK = Stack("top", "vnf-1", "CREATE_COMPLETE", "", "digest")


def resource(*path: str, id_: str, type_: str = SERVER) -> StackResource:
    return StackResource(path[-1], type_, id_, "CREATE_COMPLETE", "", ("s", "s"), path)


def standing(*resources: StackResource, ports: dict[str, str] | None = None) -> StackState:
    """`ports`: the servers that they are on."""
    on = {port: Port(id=port, device_id=server) for port, server in (ports or {}).items()}
    return StackState(STACK, resources, {one.id: Server(id=one.id, status="ACTIVE") for one in resources}, on)


def member(id_: str, **more: Any) -> StackMember:
    return StackMember(id=id_, name=f"work-{id_}", vdu="work", **{"top": "workers", "group": True, **more})


def who(there: StackState, *members: StackMember) -> dict[str, str]:
    return {id_: server.id for id_, server in servers_of(there, members).items()}


def test_a_member_with_a_resource_of_its_own_is_found_by_it() -> None:
    there = standing(resource("work-0", id_="a"), resource("work-1", "work", id_="b"))
    members = (member("0", top="work-0", group=False), member("1", top="work-1", group=False))
    assert who(there, *members) == {"0": "a", "1": "b"}


def test_in_a_group_those_that_stand_are_known_by_their_servers_and_new_ones_take_the_rest() -> None:
    there = standing(*(resource("workers", name, "work", id_=name * 2) for name in "abc"))
    assert who(there, member("0", server="cc"), member("1"), member("2", server="aa")) == {
        "0": "cc",
        "1": "bb",
        "2": "aa",
    }


def test_a_server_made_anew_in_a_group_is_known_by_the_port_it_kept() -> None:
    there = standing(
        *(resource("workers", name, "work", id_=f"new-{name}") for name in "ab"),
        ports={"port-0": "new-b", "port-1": "new-a"},
    )
    assert who(there, member("0", ports=("port-0",)), member("1", ports=("port-1",))) == {"0": "new-b", "1": "new-a"}


def test_servers_that_user_data_named_after_their_members_are_known_by_that() -> None:
    there = standing(*(resource(f"work-{number}", "work", id_=f"server-{number}") for number in (9, 10, 11)))
    members = (member(str(number), top=None) for number in (9, 10, 11))
    assert who(there, *members) == {"9": "server-9", "10": "server-10", "11": "server-11"}


def test_ports_that_no_server_holds_are_told_apart() -> None:
    there = standing(
        resource("vip_CP", id_="p", type_=PORT),
        resource("work_CP1", id_="q", type_=PORT),
        resource("work-0", "vip_CP", id_="s", type_=PORT),
        resource("gone_CP", id_="r", type_=PORT),
        ports={"p": "", "q": "a", "s": ""},
    )
    assert [(port.id, port.name) for port in unattached_ports(there)] == [("p", "vip_CP")]


def test_another_vdu_in_the_same_group_is_not_mistaken() -> None:
    there = standing(resource("workers", "a", "other", id_="x"), resource("workers", "a", "work", id_="y"))
    assert who(there, member("0")) == {"0": "y"}


def test_a_member_without_a_server_is_left_out() -> None:
    assert who(standing(), member("0"), member("1", top="work-1", group=False)) == {}


def test_a_server_that_heat_has_and_nova_has_not_is_not_ready_and_keeps_its_name() -> None:
    known = FoundMachine(id="0", name="work-0", vdu="work", resource_id="a", ready=True, image="debian")
    there = StackState(STACK, (resource("work-0", id_="a"),), {}, {})
    (machine,) = found(there, Found(machines=(known,))).machines
    assert (machine.id, machine.name, machine.image, machine.ready) == ("0", "work-0", "debian", False)


def recorded(name: str, server: str, *ports: str) -> FoundMachine:
    held = tuple(FoundPort(id=port, name="cp", resource_id=port) for port in ports)
    return FoundMachine(id=f"vnfc {name}", name=name, vdu="work", resource_id=server, ready=True, ports=held)


def test_a_server_that_somebody_made_anew_is_known_by_its_place_or_its_port() -> None:
    """Else the next operation would make it anew once more, whatever it was asked for."""
    by_place = standing(resource("work-0", id_="new"))
    (machine,) = found(by_place, Found(machines=(recorded("work-0", "old"),))).machines
    assert (machine.id, machine.resource_id) == ("vnfc work-0", "new")
    port = resource("workers", "x", "work_CP1", id_="p", type_=PORT)
    by_port = standing(resource("workers", "x", "work", id_="new"), port, ports={"p": "new"})
    inventory = Found(machines=(recorded("work-0", "gone"), recorded("work-1", "old", "p")))
    (machine,) = found(by_port, inventory).machines
    assert (machine.id, machine.resource_id) == ("vnfc work-1", "new")


def test_who_is_too_many_in_a_group_is_known_when_all_members_stand() -> None:
    there = standing(*(resource("workers", name, "work", id_=name * 2) for name in "abc"))
    assert surplus(there, [member("0", server="aa"), member("1", server="cc")]) == {"bb"}
    assert surplus(there, [member("0", server="aa"), member("1")]) == set()  # one of them is new


class Answers:
    """Heat, Nova and Neutron with one stack of so many servers; it counts what it is asked."""

    def __init__(self, servers: int, floating: bool = False, tagged: bool = True) -> None:
        self.floating, self.tagged = floating, tagged
        self.at_once = self.most_at_once = 0
        self.ids = [f"s-{number}" for number in range(servers)]
        self.calls: list[str] = []

    async def read(self, service: str, path: str, kind: type[T], *, query: Query | None = None) -> T:
        self.calls.append(f"GET {path}")
        return decoded(msgspec.json.encode(self._said(path, query)), kind, path)

    async def find(self, service: str, path: str, kind: type[T]) -> T | None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return decoded(msgspec.json.encode({"server": {"id": path.rpartition("/")[2]}}), kind, path)

    def _said(self, path: str, query: Query | None) -> dict[str, Any]:
        if path == "/stacks":
            return {"stacks": [{"id": "1", "stack_name": "vnf-1", "stack_status": "CREATE_COMPLETE", "tags": None}]}
        if path.endswith("/resources"):
            kinds = ((SERVER, ""), (PORT, "p-"), *([(FLOATING_IP, "f-")] if self.floating else []))
            return {"resources": [_listed(type_, prefix + id_) for id_ in self.ids for type_, prefix in kinds]}
        if path == "/ports":
            assert query is not None
            return {
                "ports": [{"id": id_, "device_id": id_.removeprefix("p-")} for id_ in cast("list[str]", query["id"])]
            }
        if path == "/floatingips":
            assert query is not None
            return {"floatingips": [_floating(id_) for id_ in cast("list[str]", query["id"])]}
        return {"servers": [{"id": id_, "status": "ACTIVE"} for id_ in self.ids if self.tagged]}


def _floating(id_: str) -> dict[str, Any]:
    """All but the first lead to a port."""
    number = int(id_.removeprefix("f-s-"))
    port = f"p-s-{number}" if number else None
    return {"id": id_, "port_id": port, "floating_ip_address": f"203.0.113.{number}"}


def _listed(type_: str, id_: str) -> dict[str, Any]:
    links = [{"rel": "stack", "href": "http://heat/v1/p/stacks/vnf-1/1"}]
    return {
        "resource_name": id_, "resource_type": type_, "physical_resource_id": id_, "resource_status": "CREATE_COMPLETE",
        "links": links,
    }  # fmt: skip


@pytest.mark.parametrize("servers", [1, 100])
async def test_a_look_costs_four_calls_however_many_members_there_are(servers: int) -> None:
    answers = Answers(servers)
    there = await look(cast("Cloud", answers), "vnf-1")
    assert there is not None
    assert len(found(there, Found()).machines) == servers
    assert sorted(answers.calls) == [
        "GET /ports", "GET /servers/detail", "GET /stacks", "GET /stacks/vnf-1/1/resources",
    ]  # fmt: skip


async def test_floating_ips_are_those_of_their_ports_for_one_call_more() -> None:
    answers = Answers(3, floating=True)
    there = await look(cast("Cloud", answers), "vnf-1")
    assert there is not None
    machines = found(there, Found()).machines
    assert [machine.ports[0].floating for machine in machines] == [
        {},
        {"f-s-1": "203.0.113.1"},
        {"f-s-2": "203.0.113.2"},
    ]
    assert answers.calls.count("GET /floatingips") == 1


async def test_servers_that_bear_no_tag_yet_are_asked_for_a_few_at_a_time() -> None:
    """However large the VNF: no more calls of a project may wait than the queue holds."""
    answers = Answers(MOST_WAITING + 100, tagged=False)
    there = await look(cast("Cloud", answers), "vnf-1")
    assert there is not None
    assert len(there.servers) == MOST_WAITING + 100
    assert answers.most_at_once <= 16


async def test_a_look_at_nothing_costs_one() -> None:
    answers = Answers(0)
    assert await look(cast("Cloud", answers), "vnf-2") is None
    assert answers.calls == ["GET /stacks"]


class Counted(dict[str, Port]):
    """Ports that count how often they are looked up."""

    lookups = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.lookups += 1
        return super().get(key, default)


@pytest.mark.parametrize("servers", [10, 1000])
def test_what_is_made_of_a_look_grows_with_the_number_of_ports_and_not_its_square(servers: int) -> None:
    """It is done between all else that the server does."""
    names = [f"work-{number}" for number in range(servers)]
    ports = Counted({f"port {name}": Port(id=f"port {name}", device_id=f"server {name}") for name in names})
    resources = (
        *(resource(name, "work", id_=f"server {name}") for name in names),
        *(resource(name, "cp", id_=f"port {name}", type_=PORT) for name in names),
    )
    there = StackState(STACK, resources, {}, ports)
    before = Found(machines=tuple(recorded(name, f"former {name}") for name in names))
    machines = found(there, before).machines
    assert [machine.id for machine in machines] == [f"vnfc {name}" for name in names]
    assert [machine.ports[0].id for machine in machines] == list(ports)
    assert ports.lookups <= 4 * servers


def test_volumes_are_those_of_the_server_that_nova_attached_them_to() -> None:
    servers = {id_: Server(id=id_, volumes=(AttachedVolume(id=f"disk of {id_}"),)) for id_ in "ab"}
    volumes = [resource(f"disk-{id_}", id_=f"disk of {id_}", type_=VOLUME) for id_ in "ba"]
    there = StackState(STACK, tuple(volumes), servers, {})
    assert [[one.name for one in there.volumes_on(id_)] for id_ in "abc"] == [["disk-a"], ["disk-b"], []]
