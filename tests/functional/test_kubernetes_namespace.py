"""A plan for a Kubernetes VIM says where all of it goes: when it is undone, the VIM may say another namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slipway.model.instance import VimConnectionInfo
from slipway.model.operation import OperationType
from slipway.model.requests import InstantiateRequest
from slipway.model.vim import KUBERNETES
from tests.functional.rig import SAMPLE, rig_in, settings_in

pytestmark = pytest.mark.sqlite_suffices


def namespaces(args: dict[str, Any]) -> set[Any]:
    """Of all objects in them, or of the release."""
    objects = [*args.get("objects", ()), *(one for file in args.get("files", ()) for one in file["objects"])]
    return {one.get("home") for one in objects} or {args.get("namespace")}


@pytest.mark.parametrize("sample", ["cnf", "cnf-helm"])
@pytest.mark.parametrize(("said", "place"), [({"namespace": "then"}, "then"), ({}, "default")])
async def test_a_plan_has_the_namespace_that_the_vim_says_when_it_is_made(
    tmp_path: Path, sample: str, said: dict[str, str], place: str
) -> None:
    interface = {"endpoint": "https://192.0.2.1:6443", "skip_verify": True}
    vim = VimConnectionInfo(
        vim_type=KUBERNETES, interface_info=interface, access_info={"bearer_token": "unused", **said}
    )
    async with rig_in(
        settings_in(tmp_path, helm_program="/bin/true"), sample=SAMPLE.parent / sample, working=False
    ) as rig:
        request = InstantiateRequest(flavour_id="simple", vim_connection_info={"vim": vim})
        plan = await rig.slipway.lcm.preview_plan(OperationType.INSTANTIATE, await rig.create(), request)
        assert {name for step in plan.steps for name in namespaces(step.args)} == {place}
