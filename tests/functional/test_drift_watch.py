"""What others change on a VIM is told once, and again when it has changed; VNFs in an operation are left alone."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.lcm.drift_watch import DriftWatch
from slipway.model.errors import VimError, VimFault
from slipway.model.instance import VimConnectionInfo
from slipway.model.operation import OperationType
from slipway.model.requests import InstantiateRequest
from slipway.model.vim import KUBERNETES
from slipway.store import instances
from tests.functional.rig import Rig, rig_in, settings_in

pytestmark = pytest.mark.sqlite_suffices


async def on_kubernetes(world: Rig) -> str:
    instance_id = await world.create()

    def place(connection: Any) -> None:
        instance = instances.get(connection, instance_id)
        vims = {"vim": VimConnectionInfo(vim_id="one", vim_type=KUBERNETES)}
        instances.update(connection, replace(instance, vnf=replace(instance.vnf, vim_connection_info=vims)))

    await world.slipway.database.write(place)
    return instance_id


class Vim:
    """What it tells, or does not."""

    def __init__(self) -> None:
        self.problems: tuple[str, ...] | Exception = ()
        self.asked = list[str]()

    async def look(self, instance_id: str) -> tuple[str, ...]:
        self.asked.append(instance_id)
        if isinstance(self.problems, Exception):
            raise self.problems
        return self.problems


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [one.getMessage() for one in caplog.records if one.name == "slipway.lcm.drift_watch"]
    caplog.clear()
    return messages


async def test_what_is_found_is_told_once_and_its_end_as_well(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with rig_in(settings_in(tmp_path)) as world:
        vnf, elsewhere, vim = await on_kubernetes(world), await world.create(), Vim()
        watch = DriftWatch(world.slipway.database, vim.look, [KUBERNETES], 300)
        vim.problems = ("ConfigMap web is gone.",)
        await watch.look_once()
        await watch.look_once()
        assert told(caplog) == [f"VNF instance {vnf}: ConfigMap web is gone."]
        assert [sample.value for metric in await watch.metrics() for sample in metric.samples] == [1]
        vim.problems = VimError("it does not answer.", VimFault.TEMPORARY)
        await watch.look_once()
        assert told(caplog) == [f"VNF instance {vnf}: it can't be looked at: it does not answer."]
        vim.problems = ()
        await watch.look_once()
        assert told(caplog) == [f"VNF instance {vnf} is as it was made again"]
        assert elsewhere not in vim.asked


async def test_one_vim_that_answers_with_nonsense_ends_nobody_elses_look(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig_in(settings_in(tmp_path)) as world:
        first, second, vim = await on_kubernetes(world), await on_kubernetes(world), Vim()
        vim.problems = KeyError("metadata")
        await DriftWatch(world.slipway.database, vim.look, [KUBERNETES], 300).look_once()
        assert set(vim.asked) == {first, second}
        assert sorted(told(caplog)) == sorted(f"VNF instance {one} can't be looked at" for one in (first, second))


async def test_a_vnf_that_an_operation_works_on_is_not_looked_at(tmp_path: Path) -> None:
    async with rig_in(settings_in(tmp_path)) as world:
        vnf, vim = await on_kubernetes(world), Vim()
        await world.slipway.worker.shut_down(grace=5)  # type: ignore[union-attr]
        request = InstantiateRequest(flavour_id="simple")
        await world.slipway.lcm.start_operation(OperationType.INSTANTIATE, vnf, request)
        await DriftWatch(world.slipway.database, vim.look, [KUBERNETES], 300).look_once()
        assert vim.asked == []
