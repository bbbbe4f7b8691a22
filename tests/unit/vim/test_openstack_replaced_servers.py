"""A server that is made anew: what has to happen to the one before it until Heat may begin."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import pytest
from msgspec.structs import replace

from slipway.model.errors import VimError, VimFault
from slipway.vim.openstack.answers import decoded
from slipway.vim.openstack.hot_template import ATTACHMENT, SERVER_GROUP, VOLUME
from tests.unit.vim.test_openstack_stack_step import REPLACE, OneStack, member, run

T = TypeVar("T")
STOP, START, REMOVE, UPDATE = "os-stop work-0", "os-start work-0", "DELETE /servers/work-0", "PUT /stacks/vnf-i/1"
PREVIEW = "PUT /stacks/vnf-i/1/preview"
MARK = "PATCH /stacks/vnf-i/1/resources/work-0"


class Nova(OneStack):
    """A stack of work-0, with further resources: name, type and, if it is another, id.

    It stops when it is told to, and is gone when it is removed.
    """

    def __init__(self, *resources: tuple[str, ...], policy: str = "", volumes: tuple[str, ...] = ()) -> None:
        super().__init__("UPDATE_COMPLETE")
        self.resources, self.policy, self.volumes = resources, policy, volumes
        self.state, self.gone = "ACTIVE", False

    async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
        await super().call(service, method, path, json=json, secrets=secrets)
        if path == "/servers/work-0/action":
            (verb,) = json
            self.calls[-1] = f"{verb} work-0"
            self.state = {"os-stop": "SHUTOFF", "os-start": "ACTIVE"}[verb]

    async def remove(self, service: str, path: str) -> None:
        self.calls.append(f"DELETE {path}")
        self.gone = True

    async def find(self, service: str, path: str, kind: type[T]) -> T | None:
        if path == "/os-server-groups/group":
            group = {"server_group": {"policies": [self.policy], "members": ["work-0", "of another stack"]}}
            return decoded(msgspec.json.encode(group), kind, path)
        there = path == f"/servers/{self.server}" and not (self.gone and self.server == "work-0")
        return decoded(msgspec.json.encode({"server": self._shown()}), kind, path) if there else None

    def _said(self, path: str) -> dict[str, Any]:
        said = super()._said(path)
        if path.endswith("/resources"):
            for name, type_, *id_ in self.resources:
                one = {"resource_name": name, "resource_type": type_, "physical_resource_id": (*id_, name)[0]}
                said["resources"].append({**self._server(), **one})
        return {"servers": [self._shown()]} if path == "/servers/detail" else said

    def _shown(self) -> dict[str, Any]:
        attached = [{"id": one} for one in self.volumes]
        state = self.state if self.server == "work-0" else "ACTIVE"
        return {
            "id": self.server, "status": state, "tags": ["vnf-i"], "os-extended-volumes:volumes_attached": attached,
        }  # fmt: skip

    @property
    def did(self) -> list[str]:
        return [call for call in self.calls if not call.startswith("GET") and "/tags/" not in call]


def apart(policy: str) -> Nova:
    return Nova(("group", SERVER_GROUP), policy=policy)


def with_a_data_volume() -> Nova:
    """Nova names an attachment after the volume."""
    return Nova(("data", VOLUME), ("attached", ATTACHMENT, "data"), volumes=("data",))


async def test_a_server_of_a_strict_anti_affinity_group_is_removed_before_another_takes_its_place() -> None:
    """Else there must be a host more than the group has servers."""
    cloud = apart("anti-affinity")
    made = await run(cloud, REPLACE)
    assert [one.resource_id for one in made.machines] == ["work-0 anew"]
    assert cloud.did == [PREVIEW, MARK, REMOVE, UPDATE]


@pytest.mark.parametrize("policy", ["soft-anti-affinity", "affinity", "soft-affinity"])
async def test_a_server_of_any_other_group_stays_until_heat_replaces_it(policy: str) -> None:
    cloud = apart(policy)
    await run(cloud, REPLACE)
    assert cloud.did == [PREVIEW, MARK, UPDATE]


async def test_no_group_is_looked_at_where_no_server_is_made_anew() -> None:
    cloud = apart("anti-affinity")
    await run(cloud, replace(REPLACE, members=(member(0, "work-0"),), renewed=()))
    assert cloud.did == [UPDATE]


async def test_what_heat_refuses_at_once_costs_no_server_of_a_group() -> None:
    cloud = apart("anti-affinity")
    cloud.refused = {"/stacks/vnf-i/1/preview"}
    with pytest.raises(VimError, match="preview: refused"):
        await run(cloud, REPLACE)
    assert cloud.did == [PREVIEW]


async def test_a_refusal_after_a_server_was_removed_says_so_and_how_it_comes_back() -> None:
    cloud = apart("anti-affinity")
    cloud.refused = {"/stacks/vnf-i/1"}
    with pytest.raises(VimError, match=r"refused\. Already removed.* work-0 of VNFC work-0\. A retry") as refusal:
        await run(cloud, REPLACE)
    assert refusal.value.fault is VimFault.PERMANENT
    assert cloud.did == [PREVIEW, MARK, REMOVE, UPDATE]  # the mark stays: it must be made anew
    cloud.refused = set()
    assert [one.resource_id for one in (await run(cloud, REPLACE)).machines] == ["work-0 anew"]


async def test_a_server_with_a_data_volume_is_shut_down_before_the_volume_moves() -> None:
    """Else its file system is what a power failure leaves."""
    cloud = with_a_data_volume()
    await run(cloud, REPLACE)
    assert cloud.did == [PREVIEW, STOP, MARK, UPDATE]


async def test_so_is_one_that_booted_from_its_volume() -> None:
    cloud = Nova(("root", VOLUME), volumes=("root",))
    await run(cloud, REPLACE)
    assert cloud.did == [PREVIEW, STOP, MARK, REMOVE, UPDATE]


async def test_a_volume_that_is_made_anew_with_its_server_needs_no_shut_down() -> None:
    cloud = with_a_data_volume()
    await run(cloud, replace(REPLACE, held=("data",)))
    assert STOP not in cloud.did


async def test_a_server_that_was_shut_down_for_an_update_that_heat_refuses_is_started_again() -> None:
    cloud = with_a_data_volume()
    cloud.refused = {"/stacks/vnf-i/1"}
    with pytest.raises(VimError, match=r"refused\.$"):
        await run(cloud, REPLACE)
    assert cloud.did == [PREVIEW, STOP, MARK, UPDATE, MARK, START]


async def test_a_server_that_stood_still_before_is_not_started() -> None:
    cloud = with_a_data_volume()
    cloud.refused, cloud.state = {"/stacks/vnf-i/1"}, "SHUTOFF"
    with pytest.raises(VimError, match="refused"):
        await run(cloud, REPLACE)
    assert cloud.did == [PREVIEW, MARK, UPDATE, MARK]


async def test_a_member_that_was_to_leave_is_started_again_when_heat_refuses() -> None:
    cloud = Nova()
    cloud.refused = {"/stacks/vnf-i/1"}
    leaving = replace(REPLACE, renewed=(), members=(), stopped=("work-0",), grace_seconds=5)
    with pytest.raises(VimError, match="refused"):
        await run(cloud, leaving)
    assert cloud.did == [PREVIEW, STOP, UPDATE, START]
