"""A termination that retains data: Heat is told to leave the volumes before it deletes their stack."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, TypeVar, cast

import msgspec
import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import VimError
from slipway.model.machine import Found, FoundMachine, FoundVolume, Outcome
from slipway.model.target import Change
from slipway.vim.openstack.actions import StackActions
from slipway.vim.openstack.answers import decoded
from slipway.vim.openstack.cloud import Cloud
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.heat import StackResource
from slipway.vim.openstack.hot_template import GROUP, SERVER, VOLUME
from slipway.vim.openstack.retained_volumes import NOTE, TOP, as_before, files_with, retaining, retaining_digest
from slipway.vim.openstack.stack_change import ChangeStack
from slipway.vim.openstack.stack_steps import steps_of
from slipway.vim.openstack.user_data_stack import stack_body
from tests.contract.plans import Context
from tests.unit.vim.openstack_targets import INSTANCE, flavour, target

T = TypeVar("T")
NAME = "vnf-i"
ROOT, MEMBER = (NAME, "1"), (f"{NAME}-member", "3")
DATA, OWN, FURTHER = "volume-in-group", "volume-at-top", "volume-in-other"
RETAINING = ChangeStack(known=("vnfc-0",), volumes={DATA: "data", OWN: "store"}, retains_data=True)
PLAIN = msgspec.structs.replace(RETAINING, retains_data=False)
THREE = msgspec.structs.replace(RETAINING, volumes={**RETAINING.volumes, FURTHER: "data"})


def top_template() -> dict[str, Any]:
    return {
        "heat_template_version": "2021-04-16",
        "resources": {
            "workers": {"type": GROUP, "properties": {"resource": {"type": "worker.yaml"}}},
            "store": {"type": VOLUME, "properties": {"size": 1}, "deletion_policy": "Snapshot"},
            "root_disk": {"type": VOLUME, "properties": {"size": 1, "image": "debian"}},
        },
    }


def worker_template() -> dict[str, Any]:
    return {
        "heat_template_version": "2021-04-16",
        "resources": {"work": {"type": SERVER}, "data": {"type": VOLUME, "properties": {"size": 1}}},
    }


def resource(path: str, type_: str, id_: str, stack: tuple[str, str] = ROOT) -> StackResource:
    names = tuple(path.split("/"))
    return StackResource(names[-1], type_, id_, "CREATE_COMPLETE", "", stack, names)


RESOURCES = (
    resource("workers", GROUP, "2"),
    resource("workers/abc", "worker.yaml", "3", (f"{NAME}-workers", "2")),
    resource("workers/abc/data", VOLUME, DATA, MEMBER),
    resource("workers/abc/work", SERVER, "server", MEMBER),
    resource("store", VOLUME, OWN),
)


class Stacks:
    """A Heat with the stack and the one nested in its group, and a Cinder. `becomes`: the status after an update."""

    def __init__(self, status: str | None = "CREATE_COMPLETE", becomes: str = "UPDATE_COMPLETE") -> None:
        self.status, self.becomes, self.digest = status, becomes, "spec"
        self.top, self.files = top_template(), {"worker.yaml": "heat_template_version: 2021-04-16\n"}
        self.nested = worker_template()
        self.volumes, self.secrets = {DATA, OWN}, ("vim password",)
        self.on_termination, self.running = False, True
        self.calls: list[str] = []
        self.written = False  # what its server had in memory, when it was deleted
        self.told: list[dict[str, Any]] = []
        self.deaf = False  # whether nested stacks don't follow
        self.failed: dict[str, str] = {}  # statuses of resources that failed, by their ids

    @property
    def did(self) -> list[str]:
        return [call for call in self.calls if not call.startswith(("GET", "POST /servers"))]

    async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
        self.calls.append(f"{method} {path}")
        if path.endswith("/action"):
            self.running = False
        elif "/resources/" in path:
            self._mark(path.rpartition("/")[2], json["mark_unhealthy"])
        elif method == "PATCH":
            self._update(json)
        elif method == "DELETE":
            self._delete()

    async def remove(self, service: str, path: str) -> None:
        await self.call(service, "DELETE", path)

    def _mark(self, name: str, unhealthy: bool) -> None:
        id_ = next(one.id for one in RESOURCES if one.name == name)
        if unhealthy:
            self.failed[id_] = "CHECK_FAILED"
        elif self.failed.get(id_) == "CHECK_FAILED":
            del self.failed[id_]

    def _update(self, body: dict[str, Any]) -> None:
        self.told.append(body)
        anew = {one.path for one in RESOURCES if one.id in self.failed}
        self.volumes -= {one.id for one in RESOURCES if any(one.path[:end] in anew for end in (1, 2, 3))}
        self.top, self.digest, self.status = body["template"], body["tags"].removeprefix("slipway-"), self.becomes
        self.files |= body["files"]
        if not self.deaf and (text := body["files"].get("worker.yaml")):
            self.nested = json.loads(text)

    def _delete(self) -> None:
        self.status, self.written = None, not self.running
        kept = {DATA: self.nested["resources"]["data"], OWN: self.top["resources"]["store"]}
        self.volumes &= {id_ for id_, one in kept.items() if one.get("deletion_policy", "").lower() == "retain"}

    async def read(self, service: str, path: str, kind: type[T], *, query: Any = None) -> T:
        self.calls.append(f"GET {path}")
        return decoded(msgspec.json.encode(self._said(path)), kind, path)

    async def find(self, service: str, path: str, kind: type[T]) -> T | None:
        kind_of, id_ = path.strip("/").split("/")
        if kind_of == "servers":
            attached = {"id": DATA, "delete_on_termination": self.on_termination}
            status = "ACTIVE" if self.running else "SHUTOFF"
            server = {"id": id_, "status": status, "os-extended-volumes:volumes_attached": [attached]}
            return decoded(msgspec.json.encode({"server": server}), kind, path)
        there = {"volume": {"id": id_}} if id_ in self.volumes else None
        return decoded(msgspec.json.encode(there), kind, path) if there else None

    def _said(self, path: str) -> dict[str, Any]:
        if path == "/stacks":
            tags = [f"slipway-{self.digest}"]
            stack = {"id": "1", "stack_name": NAME, "stack_status": self.status, "tags": tags}
            return {"stacks": [stack] if self.status else []}
        if path.endswith("/resources"):
            return {"resources": [self._listed(one) for one in RESOURCES]}
        if path == f"/stacks/{NAME}/1/files":
            return self.files
        if path == f"/stacks/{NAME}/1/template":
            return self.top
        if path == "/stacks/vnf-i-member/3/template":
            return self.nested
        return {"stack": {"parameters": {}}} if path == f"/stacks/{NAME}/1" else {"servers": []}

    def _listed(self, one: StackResource) -> dict[str, Any]:
        failed = {"resource_status": "UPDATE_FAILED", "resource_status_reason": "No valid host"}
        return {
            "resource_name": one.name, "resource_type": one.type, "physical_resource_id": one.id,
            "resource_status": self.failed.get(one.id, one.status),
            "links": [{"rel": "stack", "href": "http://heat/v1/p/stacks/" + "/".join(one.stack)}],
            **(failed if self.status == "UPDATE_FAILED" and one.type == SERVER else {}),
        }  # fmt: skip


class Mixed(Stacks):
    """With one more nested stack of another file, or of the same one, whose volume has the same name."""

    def __init__(self, file: str, template: dict[str, Any], status: str = "CREATE_COMPLETE") -> None:
        super().__init__(status)
        self.file, self.other = file, template

    def _update(self, body: dict[str, Any]) -> None:
        super()._update(body)
        if text := body["files"].get(self.file):
            self.other = json.loads(text)

    def _said(self, path: str) -> dict[str, Any]:
        if path == "/stacks/vnf-i-other/4/template":
            return self.other
        said = super()._said(path)
        if path.endswith("/resources"):
            inside = (f"{NAME}-other", "4")
            further = resource("other", self.file, "4"), resource("other/data", VOLUME, FURTHER, inside)
            said["resources"] = [*map(self._listed, further), *said["resources"]]
        return said


async def run(cloud: Stacks, args: ChangeStack = RETAINING) -> Outcome:
    action = StackActions(lambda connection: cast("Cloud", cloud)).all[0]
    return await action.run(args, Context(VimConnection("openstack", {}, {}, {}), "i"))


PATCH, DELETE = f"PATCH /stacks/{NAME}/1", f"DELETE /stacks/{NAME}/1"
BOTH = {"metadata": {"retainedVolumes": {DATA: "data", OWN: "store"}}}


def test_volumes_are_found_in_the_template_that_makes_them() -> None:
    volumes = [one for one in RESOURCES if one.type == VOLUME]
    found = files_with(volumes, RESOURCES)
    assert {file: [one.id for one in made] for file, made in found.items()} == {"worker.yaml": [DATA], TOP: [OWN]}


def test_only_these_volumes_are_to_be_left_and_nothing_else_becomes_otherwise() -> None:
    templates = {TOP: top_template(), "worker.yaml": worker_template()}
    changed = retaining(templates, {"worker.yaml": {"data"}, TOP: {"store"}})
    assert templates == {TOP: top_template(), "worker.yaml": worker_template()}
    del changed[TOP]["resources"][NOTE]
    templates[TOP]["resources"]["store"]["deletion_policy"] = "Retain"
    templates["worker.yaml"]["resources"]["data"]["deletion_policy"] = "Retain"
    assert changed == templates


def test_what_the_policies_were_is_found_again_even_after_a_second_time() -> None:
    first = retaining({TOP: top_template(), "worker.yaml": worker_template()}, {TOP: {"store"}})
    second = retaining(first, {"worker.yaml": {"data"}, TOP: {"store"}})
    top, files = as_before(second[TOP], {"worker.yaml": json.dumps(second["worker.yaml"]), "boot": "#!/bin/sh"})
    assert top == top_template()
    assert {name: files[name] for name in ("boot",)} == {"boot": "#!/bin/sh"}
    assert json.loads(files["worker.yaml"]) == worker_template()


@pytest.mark.parametrize("note", [{"type": "OS::Heat::None"}, {"metadata": {"policies": "{"}}, {"metadata": []}])
def test_a_resource_of_the_packages_own_with_that_name_is_no_note(note: dict[str, Any]) -> None:
    template = {"resources": {NOTE: note}}
    assert as_before(template, {"a": "b"}) == (template, {"a": "b"})


def test_a_file_that_somebody_else_replaced_stays_theirs() -> None:
    changed = retaining({TOP: top_template(), "worker.yaml": worker_template()}, {"worker.yaml": {"data"}})
    _, files = as_before(changed[TOP], {"worker.yaml": "resources: {}"})
    assert files == {"worker.yaml": "resources: {}"}


def test_a_volume_that_is_itself_the_member_of_a_group_is_refused_by_name() -> None:
    member = resource("disks/0", VOLUME, "v", (f"{NAME}-disks", "9"))
    with pytest.raises(VimError, match=r"Volume v can't be retained: resource disks/0 .*Cure: .*nested template"):
        files_with([member], [resource("disks", "OS::Heat::ResourceGroup", "9"), member])


async def test_heat_is_told_before_it_deletes_and_the_volumes_are_said() -> None:
    cloud = Stacks()
    outcome = await run(cloud)
    assert cloud.did == [PATCH, DELETE]
    assert cloud.volumes == {DATA, OWN}
    assert outcome.removed == ("vnfc-0",)
    assert outcome.instance == BOTH


@pytest.mark.parametrize(("args", "written"), [(RETAINING, True), (PLAIN, False)])
async def test_a_server_writes_what_it_has_before_its_volume_is_left(args: ChangeStack, written: bool) -> None:
    """Though the termination is forceful: it is the data that somebody wants to keep."""
    cloud = Stacks()
    await run(cloud, args)
    assert cloud.written is written


async def test_parameters_stay_as_heat_has_them_hidden_ones_too() -> None:
    cloud = Stacks()
    await run(cloud)
    (body,) = cloud.told
    assert body["clear_parameters"] == []
    assert "parameters" not in body


async def test_a_step_that_was_killed_after_heat_was_told_goes_on_from_there() -> None:
    cloud = Stacks()
    await run(cloud)
    again = Stacks("UPDATE_COMPLETE")
    again.top, again.nested, again.digest = cloud.top, cloud.nested, cloud.digest
    assert (await run(again)).instance == BOTH
    assert again.did == [DELETE]


async def test_a_step_that_was_killed_after_the_deletion_says_what_was_left() -> None:
    cloud = Stacks(None)
    assert (await run(cloud)).instance == BOTH
    assert cloud.did == []


async def test_a_deletion_that_failed_is_tried_again_by_a_retry() -> None:
    cloud = Stacks("DELETE_FAILED")
    cloud.digest = retaining_digest(RETAINING.volumes)
    cloud.top["resources"]["store"]["deletion_policy"] = "Retain"
    await run(cloud)
    assert cloud.did == [DELETE]


async def test_a_stack_that_somebody_else_began_to_delete_is_refused() -> None:
    cloud = Stacks("DELETE_FAILED")
    with pytest.raises(VimError, match=r"volumes of stack vnf-i can't be retained.*Cure: .*without retain_data"):
        await run(cloud)
    assert cloud.did == []


async def test_a_stack_that_cant_be_updated_is_not_deleted() -> None:
    cloud = Stacks("UPDATE_FAILED", becomes="UPDATE_FAILED")
    with pytest.raises(VimError, match=r"not deleted: .*No valid host.*Cure: mend that and retry"):
        await run(cloud)
    assert cloud.did == [PATCH]
    assert cloud.volumes == {DATA, OWN}


async def test_a_stack_that_does_not_follow_is_not_deleted() -> None:
    cloud = Stacks()
    cloud.deaf = True
    with pytest.raises(VimError, match=r"told to leave resource workers/abc/data, and its template does not say so"):
        await run(cloud)
    assert cloud.did == [PATCH]


async def test_a_volume_that_nova_deletes_with_its_server_is_refused_by_name() -> None:
    cloud = Stacks()
    cloud.on_termination = True
    with pytest.raises(VimError, match=rf"Volume {DATA} can't be retained: Nova .*--preserve-on-termination server "):
        await run(cloud)
    assert cloud.did == []


async def test_files_whose_volumes_have_the_same_name_keep_each_its_own_template() -> None:
    master = {**worker_template(), "resources": {"master": {"type": SERVER}, "data": {"type": VOLUME}}}
    cloud = Mixed("master.yaml", master)
    cloud.volumes |= {FURTHER}
    await run(cloud, THREE)
    (body,) = cloud.told
    files = {name: json.loads(text)["resources"] for name, text in body["files"].items()}
    assert {name: sorted(one) for name, one in files.items()} == {
        "master.yaml": ["data", "master"],
        "worker.yaml": ["data", "work"],
    }
    assert all(one["data"]["deletion_policy"] == "Retain" for one in files.values())


async def test_a_stack_that_an_update_left_with_two_templates_of_one_file_is_not_updated_with_either() -> None:
    """A volume that is in one of them alone would go with the update."""
    older = worker_template()
    older["resources"]["log"] = {"type": VOLUME, "properties": {"size": 1}}
    cloud = Mixed("worker.yaml", older, "UPDATE_FAILED")
    with pytest.raises(VimError, match=r"not deleted: .*worker.yaml.*different templates.*Cure: mend that and retry"):
        await run(cloud, THREE)
    assert cloud.did == []


async def test_heat_that_was_told_only_in_part_is_told_again() -> None:
    told = worker_template()
    told["resources"]["data"]["deletion_policy"] = "Retain"
    cloud = Mixed("worker.yaml", told, "UPDATE_FAILED")
    await run(cloud, THREE)
    assert cloud.did == [PATCH, DELETE]


async def test_a_volume_that_its_template_no_longer_has_is_named() -> None:
    cloud = Stacks("UPDATE_FAILED")
    del cloud.nested["resources"]["data"]
    with pytest.raises(VimError, match=r"not deleted: .*worker.yaml has no resource data any more"):
        await run(cloud)
    assert cloud.did == []


async def test_a_broken_stack_without_volumes_is_not_updated_before_it_is_deleted() -> None:
    cloud = Stacks("CREATE_FAILED", becomes="UPDATE_FAILED")
    outcome = await run(cloud, msgspec.structs.replace(RETAINING, volumes={}))
    assert cloud.did == [DELETE]
    assert outcome.instance == {}


async def test_of_policies_that_a_package_has_itself_heat_keeps_that_they_are_wanted() -> None:
    """By that a retry knows, after a deletion that failed, that the volumes are left."""
    cloud = Stacks()
    cloud.top["resources"]["store"]["deletion_policy"] = "retain"
    cloud.nested["resources"]["data"]["deletion_policy"] = "Retain"
    before = deepcopy(cloud.top)
    await run(cloud)
    assert (cloud.did, cloud.top) == ([PATCH, DELETE], before)
    cloud.status = "DELETE_FAILED"
    assert (await run(cloud)).instance == BOTH


async def test_without_volumes_a_deletion_that_failed_is_tried_again_by_a_retry() -> None:
    cloud = Stacks("DELETE_FAILED")
    await run(cloud, msgspec.structs.replace(RETAINING, volumes={}))
    assert cloud.did == [DELETE]


@pytest.mark.parametrize("failed", [{OWN: "CHECK_FAILED"}, {OWN: "UPDATE_FAILED"}, {"3": "CHECK_FAILED"}])
async def test_what_an_update_would_make_anew_is_left_as_it_is(failed: dict[str, str]) -> None:
    """A heal that was given up may have marked it, or a check of the stack."""
    cloud = Stacks()
    cloud.failed = failed
    outcome = await run(cloud)
    assert (cloud.volumes, outcome.instance) == ({DATA, OWN}, BOTH)


async def test_a_termination_without_it_after_one_that_was_given_up_leaves_nothing() -> None:
    cloud = Stacks(becomes="UPDATE_FAILED")
    with pytest.raises(VimError):
        await run(cloud)
    cloud.becomes = "UPDATE_COMPLETE"
    outcome = await run(cloud, PLAIN)
    assert cloud.did == [PATCH, PATCH, DELETE]
    assert cloud.top == top_template()
    assert cloud.volumes == set()
    assert outcome.instance == {}


async def test_what_heat_can_no_longer_be_told_is_left_and_said() -> None:
    cloud = Stacks("DELETE_FAILED")
    cloud.digest = retaining_digest(RETAINING.volumes)
    cloud.top["resources"]["store"]["deletion_policy"] = "Retain"
    outcome = await run(cloud, PLAIN)
    assert outcome.instance == {"metadata": {"retainedVolumes": {OWN: "store"}}}


async def test_user_data_sees_the_stack_as_it_was_before_a_termination_that_was_given_up() -> None:
    cloud = Stacks(becomes="UPDATE_FAILED")
    with pytest.raises(VimError):
        await run(cloud)
    body = await stack_body(cast("Cloud", cloud), NAME)
    assert body is not None
    assert body.template == top_template()
    assert json.loads(body.files["worker.yaml"]) == worker_template()


def a_termination(**changes: Any) -> Change:
    volumes = (
        FoundVolume(id="d", name="data", resource_id="d"),
        FoundVolume(id="r", name="root", resource_id="r", image="i"),
    )
    machine = FoundMachine(id="m", name="work-0", vdu="work", resource_id="s", ready=True, volumes=volumes)
    before = target(flavour(), members=["work-0"])
    return Change(
        instance_id=INSTANCE,
        version=1,
        inventory=Found(machines=(machine,)),
        before=before,
        retains_data=True,
        **changes,
    )


def test_the_plan_names_the_volumes_with_data() -> None:
    change = a_termination()
    OpenStackDriver().refuse(change)
    args = msgspec.convert(steps_of(change, change.inventory).steps[0].args, ChangeStack)
    assert (args.volumes, args.retains_data) == ({"d": "data"}, True)


def test_a_stack_that_is_gone_has_left_volumes_that_are_still_to_be_said() -> None:
    assert [step.id for step in steps_of(a_termination(), Found()).steps] == ["remove stack", "release images"]
