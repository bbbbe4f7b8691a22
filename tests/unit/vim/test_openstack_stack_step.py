"""The step that changes a stack, where Heat, Nova or somebody else does what nobody asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec
import pytest
from msgspec.structs import replace

from slipway.model.action import VimConnection
from slipway.model.errors import StepError, VimError, VimFault
from slipway.model.machine import Found, FoundMachine, FoundObject, Outcome
from slipway.model.secrets import replace_references
from slipway.model.target import Change
from slipway.vim.openstack.actions import StackActions
from slipway.vim.openstack.answers import decoded
from slipway.vim.openstack.cloud import Cloud
from slipway.vim.openstack.hot_template import SERVER, STACK
from slipway.vim.openstack.stack_change import ChangeStack, StackMember, as_args, digest_of, following_change
from slipway.vim.openstack.stack_spec import FileRef, StackSpec
from slipway.vim.openstack.stack_steps import steps_of
from tests.contract.plans import Context
from tests.unit.vim.openstack_targets import INSTANCE, flavour, package_file, target

T = TypeVar("T")
ONE = StackSpec(template={"resources": {"work-0": {"type": SERVER}}})
TWO = StackSpec(template={"resources": {"work-0": {"type": SERVER}, "work-1": {"type": SERVER}}})


def member(number: int, server: str | None = None) -> StackMember:
    name = f"work-{number}"
    return StackMember(id=f"vnfc-{number}", name=name, vdu="work", top=name, server=server)


SCALE_OUT = ChangeStack(
    before=ONE, after=TWO, members=(member(0, "work-0"), member(1)), former=(member(0, "work-0"),), known=("vnfc-0",)
)
TERMINATE = ChangeStack(stopped=("work-0",), grace_seconds=5, known=("vnfc-0",))


class OneStack:
    """A cloud with one stack of the server work-0. `becomes`: its status after an update.

    A server that is marked is another one after an update.
    """

    def __init__(self, status: str | None, becomes: str = "UPDATE_COMPLETE") -> None:
        self.status, self.becomes, self.digest = status, becomes, digest_of(ONE)
        self.calls: list[str] = []
        self.told_secrets: tuple[str, ...] = ()
        self.secrets = ("vim password",)
        self.refused: set[str] = set()
        self.fault = VimFault.PERMANENT  # of what is refused
        self.server, self.marked, self.reason = "work-0", False, ""
        self.heard: Callable[[dict[str, Any]], None] = lambda body: None  # of creations and updates

    async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
        self.calls.append(f"{method} {path}")
        if path in self.refused:
            raise VimError(f"{path}: refused.", self.fault)
        if path.endswith("/preview"):
            return
        if method == "PATCH" and "mark_unhealthy" in json:
            self.marked, self.reason = json["mark_unhealthy"], json.get("resource_status_reason", "")
        elif method in ("PUT", "POST", "PATCH") and path.startswith("/stacks"):
            self.heard(json)
            self.server, self.marked = f"{self.server} anew" if self.marked else self.server, False
            self.status, self.digest, self.told_secrets = self.becomes, json["tags"].removeprefix("slipway-"), secrets
        elif method == "DELETE":
            self.status = None

    async def remove(self, service: str, path: str) -> None:
        """What is gone already is no error."""
        if self.status:
            await self.call(service, "DELETE", path)

    async def read(self, service: str, path: str, kind: type[T], *, query: Any = None) -> T:
        self.calls.append(f"GET {path}")
        return decoded(msgspec.json.encode(self._said(path)), kind, path)

    async def find(self, service: str, path: str, kind: type[T]) -> T | None:
        server = {"server": {"id": "work-0", "status": "ACTIVE"}}
        there = path == "/servers/work-0" and self.status
        return decoded(msgspec.json.encode(server), kind, path) if there else None

    def _said(self, path: str) -> dict[str, Any]:
        if path == "/stacks":
            return {"stacks": [self._stack()] if self.status else []}
        if path.endswith("/resources"):
            return {"resources": [self._server()]}
        return {"servers": [{"id": self.server, "status": "ACTIVE", "tags": []}]}

    def _stack(self) -> dict[str, Any]:
        return {"id": "1", "stack_name": "vnf-i", "stack_status": self.status, "tags": [f"slipway-{self.digest}"]}

    def _server(self) -> dict[str, Any]:
        return {
            "resource_name": "work-0", "resource_type": SERVER, "physical_resource_id": self.server,
            "resource_status": "CHECK_FAILED" if self.marked else "CREATE_COMPLETE", "links": [{"rel": "stack", "href": "http://heat/v1/p/stacks/vnf-i/1"}],
        }  # fmt: skip


class ManyServers(OneStack):
    """As many servers as its last template has; `tagged`, as generated templates have it."""

    def __init__(self, status: str | None, servers: int, *, tagged: bool = True) -> None:
        super().__init__(status, becomes="CREATE_COMPLETE" if status is None else "UPDATE_COMPLETE")
        self.names, self.tagged = [f"work-{number}" for number in range(servers)], tagged
        self.heard = self._told

    def _told(self, body: dict[str, Any]) -> None:
        self.names = list(body["template"]["resources"])

    def _said(self, path: str) -> dict[str, Any]:
        if path.endswith("/resources"):
            server = self._server()
            return {"resources": [{**server, "resource_name": one, "physical_resource_id": one} for one in self.names]}
        tags = ["vnf-i"] if self.tagged else []
        if path.startswith("/servers"):
            return {"servers": [{"id": one, "status": "ACTIVE", "tags": tags} for one in self.names]}
        return super()._said(path)


LARGER = StackSpec(template={"resources": {"work-0": {"type": SERVER, "properties": {"flavor": "large"}}}})
RENEWED = StackMember(id="vnfc-9", name="work-0", vdu="work", top="work-0")
REPLACE = ChangeStack(
    before=ONE, after=LARGER, members=(RENEWED,), former=(member(0, "work-0"),), renewed=("work-0",), known=("vnfc-0",)
)


class SecretContext(Context):
    async def decrypt_secrets(self, document: Any) -> Any:
        return replace_references(document, lambda secret_id: f"clear {secret_id}")


async def run(
    cloud: OneStack,
    args: Any,
    *,
    undo: bool = False,
    planned: dict[str, dict[str, Any]] | None = None,
    outcomes: dict[str, Outcome] | None = None,
) -> Outcome:
    actions = StackActions(lambda connection: cast("Cloud", cloud)).all
    action = next(one for one in actions if isinstance(args, one.args))
    work = action.undo if undo else action.run
    assert work is not None
    vim = VimConnection("openstack", {}, {}, {})
    return await work(args, SecretContext(vim, "i", planned=planned or {}, outcomes=outcomes or {}))


async def test_a_stack_that_somebody_began_to_delete_is_not_deleted_by_a_scale() -> None:
    cloud = OneStack("DELETE_FAILED")
    with pytest.raises(StepError, match=r"Stack vnf-i is DELETE_FAILED.*Cure: heal the whole VNF"):
        await run(cloud, SCALE_OUT)
    assert [call for call in cloud.calls if not call.startswith("GET")] == []


async def test_a_rollback_does_not_make_a_vnf_that_somebody_deleted() -> None:
    cloud = OneStack(None)
    with pytest.raises(StepError, match="There is no stack vnf-i"):
        await run(cloud, SCALE_OUT, undo=True)
    assert cloud.calls == ["GET /stacks"]


async def test_an_update_that_somebody_cancelled_is_no_success_and_is_made_again_by_a_retry() -> None:
    same_members = ChangeStack(before=ONE, after=TWO, members=(member(0, "work-0"),), former=(member(0, "work-0"),))
    cloud = OneStack("UPDATE_COMPLETE", becomes="ROLLBACK_COMPLETE")
    with pytest.raises(StepError, match="Stack vnf-i is ROLLBACK_COMPLETE"):
        await run(cloud, same_members)
    cloud.becomes = "UPDATE_COMPLETE"
    await run(cloud, same_members)
    assert [call for call in cloud.calls if call.startswith("PUT /stacks")] == ["PUT /stacks/vnf-i/1"] * 2


async def test_a_server_that_is_locked_does_not_keep_its_vnf_from_going() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    cloud.refused = {"/servers/work-0/action"}
    assert (await run(cloud, TERMINATE)).removed == ("vnfc-0",)


async def test_what_heat_still_makes_is_deleted_at_once() -> None:
    cloud = OneStack("CREATE_IN_PROGRESS")
    await run(cloud, ChangeStack(known=("vnfc-0",)))
    assert cloud.calls == ["GET /stacks", "DELETE /stacks/vnf-i/1", "GET /stacks"]


async def test_a_server_that_may_not_be_tagged_is_there_all_the_same() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    cloud.refused = {"/servers/work-0/tags/vnf-i"}
    same = ChangeStack(before=ONE, after=ONE, members=(member(0, "work-0"),))
    assert [one.resource_id for one in (await run(cloud, same)).machines] == ["work-0"]
    assert "PUT /servers/work-0/tags/vnf-i" in cloud.calls


def of(servers: int) -> StackSpec:
    return StackSpec(template={"resources": {f"work-{number}": {"type": SERVER} for number in range(servers)}})


async def calls_of_a_life(servers: int) -> list[list[str]]:
    """Of an instantiation, a scale-out by a half, and a termination."""
    more = servers + (servers + 1) // 2
    there = tuple(member(number, f"work-{number}") for number in range(servers))
    changes = (
        ChangeStack(after=of(servers), members=tuple(member(number) for number in range(servers))),
        ChangeStack(
            before=of(servers),
            after=of(more),
            members=(*there, *(member(number) for number in range(servers, more))),
            former=there,
        ),
        ChangeStack(known=tuple(one.id for one in there)),
    )
    cloud, counted = ManyServers(None, 0), list[list[str]]()
    for change in changes:
        cloud.calls = []
        await run(cloud, change)
        counted.append(sorted(cloud.calls))
    return counted


async def test_an_operation_costs_the_same_calls_however_many_members_there_are() -> None:
    few, many = await calls_of_a_life(2), await calls_of_a_life(90)
    assert few == many
    assert [len(calls) for calls in many] == [
        5,
        7,
        3,
    ]  # with ports one more for each look, and one for each further look while Heat works


async def test_servers_of_a_packages_template_are_tagged_by_one_call_each_and_once() -> None:
    cloud = ManyServers(None, 0, tagged=False)
    change = ChangeStack(after=of(3), members=tuple(member(number) for number in range(3)))
    await run(cloud, change)
    assert len([call for call in cloud.calls if call.startswith("PUT /servers/")]) == 3
    cloud.tagged, cloud.calls = True, []
    await run(cloud, change)
    assert [call for call in cloud.calls if not call.startswith("GET ")] == []


async def test_secrets_that_heat_is_told_are_kept_out_of_what_it_says() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    secret = StackSpec(template=ONE.template, parameters={"nfv": {"password": {"$secret": "7"}}})
    await run(cloud, ChangeStack(before=ONE, after=secret, members=(member(0, "work-0"),)))
    assert list(cloud.told_secrets) == ["clear 7", "vim password"]


async def test_a_step_of_a_later_batch_is_run_and_taken_back_from_what_the_journal_has() -> None:
    first = ChangeStack(
        before=ONE, after=ONE, members=(member(0, "work-0"),), former=(member(0, "work-0"),), known=("vnfc-0",)
    )
    second = replace(REPLACE, before=first.after, former=first.members)
    following = following_change("first", first, second)
    assert following is not None
    cloud, planned = OneStack("UPDATE_COMPLETE"), {"first": as_args(first)}
    made = await run(cloud, as_args(following), planned=planned)
    assert [(one.id, one.resource_id) for one in made.machines] == [("vnfc-9", "work-0 anew")]
    assert cloud.digest == digest_of(LARGER)
    back = await run(cloud, as_args(following), undo=True, planned=planned)
    assert [(one.id, one.resource_id) for one in back.machines] == [("vnfc-0", "work-0 anew anew")]
    assert cloud.digest == digest_of(ONE)


async def test_the_outcome_of_a_later_batch_is_about_its_own_members() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    both = (member(0, "work-0"), replace(member(1), top="work-0"))
    same = ChangeStack(before=ONE, after=ONE, members=both, former=both, reported=("work-1",))
    assert [one.id for one in (await run(cloud, same)).machines] == ["vnfc-1"]
    assert [one.id for one in (await run(cloud, same, undo=True)).machines] == ["vnfc-1"]


def standing_machine(name: str, **more: Any) -> FoundMachine:
    vdu = name.rpartition("-")[0]
    return FoundMachine(id=f"id of {name}", name=name, vdu=vdu, resource_id=f"server {name}", ready=True, **more)


def test_a_server_of_the_template_that_is_no_vnfc_is_left_alone() -> None:
    names = ["base-0", "work-0"]
    change = Change(
        instance_id=INSTANCE,
        version=1,
        inventory=Found(machines=tuple(map(standing_machine, names))),
        before=target(flavour(), members=names),
        after=target(flavour(), members=[*names, "work-1"]),
    )
    jump = FoundMachine(id="jump", name="jump", vdu="jump", resource_id="jump", ready=True)
    stack = FoundObject(id="1", kind=STACK, name="vnf-i", digest="before")
    (step,) = steps_of(change, Found(machines=(*change.inventory.machines, jump), objects=(stack,))).steps
    assert step.nodes == ("work-1",)
    assert not step.irreversible


async def test_a_stack_is_not_deleted_before_there_is_a_body_to_make_it_again_with() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    missing = StackSpec(vnfd_id="vnfd", top=FileRef("BaseHOT/simple/top.yaml", "0"))
    with pytest.raises(StepError, match="No file BaseHOT"):
        await run(cloud, replace(REPLACE, after=missing, recreated="1"))
    assert cloud.status == "UPDATE_COMPLETE"


async def test_a_stack_that_heat_would_not_make_again_is_not_deleted() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    cloud.refused = {"/stacks/preview"}
    with pytest.raises(VimError, match="preview: refused"):
        await run(cloud, replace(REPLACE, recreated="1", stopped=("work-0",), grace_seconds=5))
    assert [call for call in cloud.calls if not call.startswith("GET")] == ["POST /stacks/preview"]


@pytest.mark.parametrize("fault", [VimFault.AUTH, VimFault.TEMPORARY, VimFault.QUOTA])
async def test_what_says_nothing_of_the_stack_itself_does_not_keep_it_from_being_made_again(fault: VimFault) -> None:
    """No previews by policy or by a fault of Heat's; and one stack more than the project may have is one too many."""
    cloud = OneStack("UPDATE_COMPLETE", becomes="CREATE_COMPLETE")
    cloud.refused, cloud.fault = {"/stacks/preview"}, fault
    assert [one.id for one in (await run(cloud, replace(REPLACE, recreated="1"))).machines] == ["vnfc-9"]
    assert cloud.status == "CREATE_COMPLETE"


async def test_the_error_of_a_deletion_has_no_secret_of_the_vnf() -> None:
    class Stuck(OneStack):
        async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
            self.status = "DELETE_FAILED"

        def _server(self) -> dict[str, Any]:
            failed = {"resource_status": "DELETE_FAILED", "resource_status_reason": "NotFound: user clear 7 is in use"}
            return {**super()._server(), **failed}

    with pytest.raises(VimError, match=r"DELETE_FAILED: resource work-0 .*NotFound") as caught:
        await run(Stuck("UPDATE_COMPLETE"), ChangeStack(known=("vnfc-0",), secrets=({"$secret": "7"},)))
    assert "clear 7" not in caught.value.detail


def test_a_termination_knows_the_secrets_of_its_vnf() -> None:
    machines = (standing_machine("base-0"),)
    before = target(flavour(), members=["base-0"], parameters={"db": {"password": {"$secret": "7"}}})
    change = Change(instance_id=INSTANCE, version=1, inventory=Found(machines=machines), before=before)
    step = steps_of(change, Found(machines=machines)).steps[0]
    assert msgspec.convert(step.args, ChangeStack).secrets == ({"$secret": "7"},)


@pytest.mark.slow
async def test_other_operations_go_on_while_a_large_template_is_read() -> None:
    lines = [f"  s{number}: {{type: OS::Heat::Value, properties: {{value: x}}}}" for number in range(4000)]
    text = "\n".join(["heat_template_version: 2021-04-16", "resources:", *lines])
    file = package_file(text)
    spec = StackSpec(vnfd_id="vnfd", top=FileRef("BaseHOT/simple/top.yaml", file.digest))
    ctx = SecretContext(VimConnection("openstack", {}, {}, {}), "i", files={"vnfd": {"BaseHOT/simple/top.yaml": file}})
    action = StackActions(lambda connection: cast("Cloud", OneStack("UPDATE_COMPLETE"))).all[0]
    work = asyncio.ensure_future(action.run(replace(SCALE_OUT, after=spec), ctx))
    turns = 0
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 100
    with pytest.raises(VimError, match="no server for VNFC"):
        await work
