"""A stack that is deleted is listed as such, and has its name, until Heat has removed its trust."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.errors import VimError, VimFault
from slipway.vim.openstack.stack_change import ChangeStack
from tests.unit.vim.test_openstack_stack_step import REPLACE, OneStack, run

TERMINATE = ChangeStack(known=("vnfc-0",))


class SlowToForget(OneStack):
    """After so many looks the deleted stack is what it `ends` as; or, where Heat's engine ended meanwhile, gone once it
    is told again."""

    def __init__(self, *, looks: int = 2, ends: str | None = None) -> None:
        super().__init__("UPDATE_COMPLETE", becomes="CREATE_COMPLETE")
        self.looks, self.ends = looks, ends

    async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
        if method == "DELETE" and self.status == "DELETE_COMPLETE":
            self.status = None
            return
        if (method, path) == ("POST", "/stacks") and self.status:
            raise VimError("409: the stack already exists.", VimFault.TEMPORARY)
        await super().call(service, method, path, json=json, secrets=secrets)
        if method == "DELETE":
            self.status = "DELETE_COMPLETE"

    def _said(self, path: str) -> dict[str, Any]:
        said = super()._said(path)
        if path == "/stacks" and self.status == "DELETE_COMPLETE":
            self.looks -= 1
            if not self.looks:
                self.status = self.ends
        return said


async def test_a_stack_that_somebody_deletes_while_its_servers_stop_is_gone() -> None:
    class Impatient(OneStack):
        async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
            if method == "DELETE" and self.status is None:
                raise VimError("404: the stack could not be found.", VimFault.PERMANENT)
            await super().call(service, method, path, json=json, secrets=secrets)
            if path.endswith("/action"):
                self.status = None

    stopping = replace(TERMINATE, stopped=("work-0",), grace_seconds=5)
    assert (await run(Impatient("UPDATE_COMPLETE"), stopping)).removed == ("vnfc-0",)


async def test_a_stack_is_made_again_once_heat_has_given_its_name_free() -> None:
    cloud = SlowToForget()
    assert [one.id for one in (await run(cloud, replace(REPLACE, recreated="1"))).machines] == ["vnfc-9"]
    assert cloud.status == "CREATE_COMPLETE"


async def test_a_stack_whose_trust_could_not_be_removed_is_not_taken_for_gone() -> None:
    with pytest.raises(VimError, match="Stack vnf-i is DELETE_FAILED"):
        await run(SlowToForget(ends="DELETE_FAILED"), TERMINATE)


async def test_heat_that_ended_before_it_gave_a_name_free_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slipway.vim.openstack.actions.FORGET_SECONDS", 0.1)
    cloud = SlowToForget(looks=1000)
    assert (await run(cloud, TERMINATE)).removed == ("vnfc-0",)
    assert cloud.status is None


async def test_a_stack_that_heat_never_forgets_is_gone_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class NeverForgets(SlowToForget):
        async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
            if self.status != "DELETE_COMPLETE":
                await super().call(service, method, path, json=json, secrets=secrets)

    monkeypatch.setattr("slipway.vim.openstack.actions.FORGET_SECONDS", 0.1)
    assert (await run(NeverForgets(looks=1000), TERMINATE)).removed == ("vnfc-0",)
