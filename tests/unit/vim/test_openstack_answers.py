"""Clouds that answer otherwise than their APIs say: nothing is done or recorded for that, and the error names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Found, Outcome
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.heat import FLOATING_IP, MOST_RESOURCES, SERVER
from slipway.vim.openstack.stack_change import CHANGE_STACK, ChangeStack, StackMember
from slipway.vim.openstack.stack_spec import StackSpec
from slipway.vim.openstack.user_data_stack import READ_STACK, ReadStack
from tests.contract.plans import Context
from tests.unit.vim.keystone_standin import ApplicationCredential, Keystone, a_keystone
from tests.unit.vim.loopback import Asked, Reply
from tests.unit.vim.openstack_standin import INSTANCE, NAME, OpenStack, an_openstack, listed_resource

ONE = StackSpec(template={"resources": {"work-0": {"type": SERVER}}})
MEMBER = StackMember(id="vnfc", name="work-0", vdu="work", top="work-0")
HTML = b"<html><body>Please log in as demo-password</body></html>"
DEEP = b'{"versions":' + b"[" * 100_000


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    with a_keystone() as keystone:
        yield keystone


@pytest.fixture
def cloud(keystone: Keystone) -> Iterator[OpenStack]:
    with an_openstack(keystone) as cloud:
        yield cloud


@pytest.fixture
def driver() -> Iterator[OpenStackDriver]:
    with closing(OpenStackDriver()) as driver:
        yield driver


async def run(driver: OpenStackDriver, cloud: OpenStack, action: str, args: Any) -> Outcome:
    (found,) = (one for one in driver.actions if one.name == action)
    return await found.run(args, Context(cloud.connection, INSTANCE))


async def look(driver: OpenStackDriver, cloud: OpenStack) -> Found:
    return await driver.find(cloud.connection, INSTANCE, Found())


async def test_answers_as_they_should_be_are_taken(driver: OpenStackDriver, cloud: OpenStack) -> None:
    cloud.server |= {
        "OS-EXT-SRV-ATTR:host": None, "hostId": "h", "os-extended-volumes:volumes_attached": [], "more": 1,
    }  # fmt: skip
    cloud.port |= {"mac_address": "fa:16:3e:00:00:01", "network_id": "n", "fixed_ips": [{"ip_address": "10.0.0.1"}]}
    (machine,) = (await look(driver, cloud)).machines
    assert (machine.ready, machine.host, machine.ports[0].address, machine.ports[0].network) == (
        True, "h", "10.0.0.1", "n",
    )  # fmt: skip


def stack(**changes: Any) -> dict[str, Any]:
    return {"stacks": [{"id": "1", "stack_name": NAME, "stack_status": "CREATE_COMPLETE", "tags": None, **changes}]}


WRONG: dict[str, list[tuple[Any, str]]] = {
    "/stacks": [
        (stack(id=5), "stacks[0].id"),
        (stack(id=""), "stacks[0].id"),
        (stack(id="x" * 256), "stacks[0].id"),
        (stack(stack_status=None), "stacks[0].stack_status"),
        (stack(tags="slipway"), "stacks[0].tags"),
        ({"stacks": 5}, "stacks"),
        ({"stacks": [None]}, "stacks[0]"),
        ({}, "`stacks`"),
        ([], "Expected `object`"),
    ],
    "/resources": [
        ({"resources": [listed_resource("work-0", SERVER, 5)]}, "physical_resource_id"),
        ({"resources": [listed_resource("work-0", SERVER, "x" * 256)]}, "physical_resource_id"),
        ({"resources": [listed_resource("a\nb", SERVER)]}, "resource_name"),
        ({"resources": [{**listed_resource("work-0", SERVER), "links": [5]}]}, "links[0]"),
        ({}, "`resources`"),
    ],
    "/servers/detail": [
        ({"servers": [{"id": "work-0", "status": 5}]}, "servers[0].status"),
        ({"servers": [{"id": "work-0", "hostId": {}}]}, "servers[0].hostId"),
        ({"servers": [{"id": "work-0", "os-extended-volumes:volumes_attached": [7]}]}, "volumes_attached"),
        ({}, "`servers`"),
    ],
    "/ports": [
        ({"ports": [{"id": "cp", "mac_address": 5}]}, "ports[0].mac_address"),
        ({"ports": [{"id": "cp", "fixed_ips": [{"ip_address": ["x"]}]}]}, "ports[0].fixed_ips[0].ip_address"),
        ({"ports": [{"id": "cp", "device_id": 1}]}, "ports[0].device_id"),
    ],
}


@pytest.mark.parametrize(
    ("end", "document", "place"), [(end, *wrong) for end, several in WRONG.items() for wrong in several]
)
async def test_a_value_of_a_wrong_type_is_an_error_that_names_the_call_and_the_field(
    driver: OpenStackDriver, cloud: OpenStack, end: str, document: Any, place: str
) -> None:
    cloud.instead["GET", end] = Reply(200, document)
    with pytest.raises(VimError) as caught:
        await look(driver, cloud)
    assert caught.value.fault is VimFault.TEMPORARY
    assert f"{end} (" in caught.value.detail
    assert f"{cloud.url.removeprefix('http://')} answered 200" in caught.value.detail
    assert place in caught.value.detail


@pytest.mark.parametrize("body", [HTML, b"", b'{"stacks": [', b"\xff\xfe", b"[" * 100_000])
async def test_an_answer_that_is_no_json_does_not_mean_that_there_is_nothing(
    driver: OpenStackDriver, cloud: OpenStack, body: bytes
) -> None:
    """A termination would be complete, and the stack be left."""
    cloud.instead["GET", "/stacks"] = Reply(200, body, {"Content-Type": "text/html"})
    with pytest.raises(VimError, match=r"GET /stacks \(orchestration\): 127\.0\.0\.1:\d+ answered 200") as caught:
        await run(driver, cloud, CHANGE_STACK, ChangeStack(known=("vnfc",)))
    assert caught.value.fault is VimFault.TEMPORARY
    assert len(caught.value.detail) < 500
    assert "demo-password" not in caught.value.detail
    assert cloud.stack


async def test_a_server_that_is_shown_as_no_json_is_not_gone(driver: OpenStackDriver, cloud: OpenStack) -> None:
    cloud.server["tags"] = []
    cloud.instead["GET", "/servers/work-0"] = Reply(200, HTML)
    with pytest.raises(VimError, match=r"no JSON: it begins with '<html>"):
        await look(driver, cloud)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
async def test_a_redirect_is_not_success(driver: OpenStackDriver, cloud: OpenStack, status: int) -> None:
    change = ChangeStack(before=ONE, after=ONE, members=(MEMBER,))
    cloud.instead["PUT", "/stacks/vnf-i/1"] = Reply(status, {}, {"Location": "https://elsewhere/"})
    with pytest.raises(VimError, match=rf"answered {status}, which is a redirect \(https://elsewhere/\)") as caught:
        await run(driver, cloud, CHANGE_STACK, change)
    assert caught.value.fault is VimFault.PERMANENT
    cloud.stack = None
    cloud.instead["POST", "/stacks"] = Reply(status, {}, {"Location": "https://elsewhere/"})
    with pytest.raises(VimError, match=f"answered {status}"):
        await run(driver, cloud, CHANGE_STACK, ChangeStack(after=ONE, members=(MEMBER,)))


async def test_an_update_counts_when_the_stack_is_what_it_was_told(driver: OpenStackDriver, cloud: OpenStack) -> None:
    change = ChangeStack(before=ONE, after=ONE, members=(MEMBER,))
    assert (await run(driver, cloud, CHANGE_STACK, change)).machines[0].id == "vnfc"
    cloud.stack = stack(tags=["slipway-other"])["stacks"][0]
    cloud.instead["PUT", "/stacks/vnf-i/1"] = Reply(202, b"202 Accepted")  # and somebody else is quicker
    with pytest.raises(VimError, match=r"Stack vnf-i is CREATE_COMPLETE, but .* somebody else changed it") as caught:
        await run(driver, cloud, CHANGE_STACK, change)
    assert caught.value.fault is VimFault.TEMPORARY


def endless(kind: str, start: int = 0, *, moves: bool) -> Any:
    """Pages with another one after each."""
    number = start

    def answer(asked: Asked) -> Reply:
        nonlocal number
        number += 1 if moves else 0
        entry = {"id": f"x-{number}", "floating_ip_address": "203.0.113.1", "status": "ACTIVE", "tags": []}
        return Reply(200, {kind: [entry], f"{kind}_links": [{"rel": "next", "href": "http://x/?marker=x"}]})

    return answer


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize(
    ("end", "kind", "most"),
    [("/servers/detail", "servers", 105), ("/ports", "ports", 101), ("/floatingips", "floatingips", 101)],
)
async def test_lists_without_an_end_are_given_up(
    driver: OpenStackDriver, cloud: OpenStack, end: str, kind: str, most: int, moves: bool
) -> None:
    cloud.resources.append(listed_resource("public", FLOATING_IP))
    cloud.instead["GET", "/floatingips"] = Reply(200, {"floatingips": []})
    cloud.instead["GET", end] = endless(kind, moves=moves)
    with pytest.raises(VimError, match=f"{end}.* the list has no end") as caught:
        await look(driver, cloud)
    assert caught.value.fault is VimFault.TEMPORARY
    assert len([path for path in cloud.did("GET") if path.endswith(end)]) <= most


async def test_pages_are_read_to_their_end(driver: OpenStackDriver, cloud: OpenStack) -> None:
    """However few servers or ports this cloud has on a page; others of that tag are not the stack's."""
    cloud.resources = [listed_resource(f"work-{number}", SERVER) for number in range(3)]
    pages = {"": ["work-0", "other"], "other": ["work-1"], "work-1": ["work-2"]}

    def page(asked: Asked) -> Reply:
        ids = pages[asked.query.get("marker", "")]
        links = [{"rel": "next", "href": "http://nova/"}] if ids[-1] in pages else []
        return Reply(200, {"servers": [{"id": id_, "status": "ACTIVE"} for id_ in ids], "servers_links": links})

    cloud.instead["GET", "/servers/detail"] = page
    assert [one.resource_id for one in (await look(driver, cloud)).machines] == ["work-0", "work-1", "work-2"]
    assert not [path for path in cloud.did("GET") if "/servers/work" in path]


async def test_a_stack_that_is_too_large_is_refused(driver: OpenStackDriver, cloud: OpenStack) -> None:
    cloud.resources = [listed_resource(f"x-{number}", "OS::Heat::Value") for number in range(MOST_RESOURCES + 1)]
    with pytest.raises(VimError, match="Stack vnf-i has 5001 resources; Slipway works with at most 5000") as caught:
        await look(driver, cloud)
    assert caught.value.fault is VimFault.PERMANENT


VERSIONS: list[Any] = [
    5, [], {"versions": 5}, {"versions": [5]}, {"versions": {"values": 5}}, {"version": 5}, DEEP, HTML,
    {"versions": [{"id": 5, "status": "CURRENT", "links": []}]},
    {"versions": [{"id": "v2.1", "status": 5, "links": 5}]},
    {"versions": [{"id": "v2.1", "status": "CURRENT", "links": [{"rel": "self", "href": 5}]}]},
    {"versions": [{"id": "v2.1", "status": "CURRENT", "links": [None]}]},
]  # fmt: skip


@pytest.mark.parametrize("versions", VERSIONS, ids=range(len(VERSIONS)))
@pytest.mark.parametrize("path", ["/heat/v1", "/nova/v2.1", "/neutron"])
async def test_lists_of_versions_that_make_no_sense_are_errors_of_the_vim(
    driver: OpenStackDriver, cloud: OpenStack, path: str, versions: Any
) -> None:
    """Or don't matter: the catalog may say enough. Anything else that is raised would be a fault of ours."""
    cloud.instead["GET", path] = cloud.instead["GET", f"{path}/"] = Reply(200, versions)
    with suppress(VimError):
        await look(driver, cloud)


@pytest.mark.parametrize("url", [5, None, [], {}, "", "x", "http://", "http://[", "http://h:99999/", "ht\x00tp://h"])
async def test_addresses_in_a_catalog_that_are_none_are_errors_of_the_vim(
    driver: OpenStackDriver, cloud: OpenStack, keystone: Keystone, url: Any
) -> None:
    keystone.endpoints["orchestration"] = url
    with pytest.raises(VimError):
        await look(driver, cloud)


async def test_a_token_that_no_header_can_hold_is_an_error_of_the_vim(
    driver: OpenStackDriver, cloud: OpenStack, keystone: Keystone
) -> None:
    token = keystone._tokens[keystone.issue("demo", "demo")]
    keystone.broken = Reply(201, {"token": token}, {"X-Subject-Token": "cl\xe9"})
    with pytest.raises(VimError, match=r"GET /stacks \(orchestration\).*127\.0\.0\.1"):
        await look(driver, cloud)


def noted(cloud: OpenStack, template: Any, files: Any = None, parameters: Any = None) -> None:
    shown = {"stack": {"parameters": {"OS::stack_id": "1", **(parameters or {})}}}
    cloud.instead["GET", "/stacks/vnf-i/1"] = Reply(200, shown)
    cloud.instead["GET", "/template"] = Reply(200, template)
    cloud.instead["GET", "/files"] = Reply(200, files or {})


TEMPLATE = {"heat_template_version": "2021-04-16", "parameters": {"nfv": {"type": "json"}}}


async def test_what_is_noted_of_a_stack_has_the_types_of_its_template(
    driver: OpenStackDriver, cloud: OpenStack
) -> None:
    noted(cloud, TEMPLATE, {"a.yaml": "x"}, {"nfv": '{"VDU": 1}', "colour": "5"})
    left = (await run(driver, cloud, READ_STACK, ReadStack())).data["stack"]
    assert left == {"template": TEMPLATE, "files": {"a.yaml": "x"}, "parameters": {"nfv": {"VDU": 1}, "colour": "5"}}


@pytest.mark.parametrize(
    ("template", "files", "parameters", "words"),
    [
        ({}, None, None, "no template of stack vnf-i to show, only an empty one"),
        ([], None, None, "Expected `object`"),
        (TEMPLATE, {"a.yaml": 5}, None, "Expected `str`, got `int`"),
        (TEMPLATE, {"a.yaml": "x" * (1 << 20)}, None, r"have \d+ bytes; at most 1048576 are kept"),
    ],
)
async def test_what_user_data_could_not_work_with_is_refused(
    driver: OpenStackDriver, cloud: OpenStack, template: Any, files: Any, parameters: Any, words: str
) -> None:
    noted(cloud, template, files, parameters)
    with pytest.raises(VimError, match=words):
        await run(driver, cloud, READ_STACK, ReadStack())


@pytest.mark.parametrize("declared", [5, [], {"nfv": 5}, {"nfv": None}, {"nfv": {"type": []}}])
async def test_odd_declarations_of_parameters_leave_them_as_heat_shows_them(
    driver: OpenStackDriver, cloud: OpenStack, declared: Any
) -> None:
    noted(cloud, {**TEMPLATE, "parameters": declared}, None, {"nfv": "{}"})
    left = (await run(driver, cloud, READ_STACK, ReadStack())).data["stack"]
    assert left["parameters"] == {"nfv": "{}"}


# What Heat says when Keystone forbids it a trust: nothing about it.
ERRED = {"error": {"type": "RemoteError"}, "explanation": "The server has either erred or is incapable of performing."}


@pytest.mark.parametrize(
    ("status", "by_application", "told"),
    [(500, True, True), (500, False, False), (503, True, False), (403, True, False)],
)
async def test_a_stack_that_heat_can_not_make_for_an_application_credential_has_a_cure(
    driver: OpenStackDriver, cloud: OpenStack, status: int, by_application: bool, told: bool
) -> None:
    cloud.stack = None
    cloud.instead["POST", "/stacks"] = Reply(status, ERRED)
    if by_application:
        cloud.keystone.credentials.append(one := ApplicationCredential("slipway", "app-secret", "demo", "demo"))
        cloud.access = {"applicationCredentialId": one.id, "applicationCredentialSecret": "app-secret"}
    with pytest.raises(VimError) as caught:
        await run(driver, cloud, CHANGE_STACK, ChangeStack(after=ONE, members=(MEMBER,)))
    assert ("give the VIM a user and password" in caught.value.detail) is told
    assert ("allow_insecure_application_credential_trust_escalation" in caught.value.detail) is told
