"""Two requests at the same moment: one wins, the other is refused, and neither leaves half of something."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from slipway.lcm.vim_registry import VimRequest
from slipway.model.errors import RequestError
from slipway.model.instance import VimConnectionInfo
from slipway.model.operation import OperationType
from slipway.model.requests import InstantiateRequest
from slipway.model.vim import SIMULATED
from tests.databases import setting
from tests.functional.rig import rig_in, settings_in

ROUNDS = 15


@pytest.fixture
def url(database_url: URL) -> str | None:
    return setting(database_url)


async def test_an_instance_is_deleted_or_instantiated_never_both(url: str | None, tmp_path: Path) -> None:
    async with rig_in(settings_in(tmp_path, url)) as rig:
        lcm = rig.slipway.lcm
        for _ in range(ROUNDS):
            instance_id = await rig.create()
            deleted, begun = await asyncio.gather(
                lcm.delete(instance_id),
                lcm.begin(OperationType.INSTANTIATE, instance_id, InstantiateRequest(flavour_id="simple")),
                return_exceptions=True,
            )
            assert isinstance(deleted, RequestError) != isinstance(begun, RequestError), (deleted, begun)


async def test_a_vim_is_removed_or_used_never_both(url: str | None, tmp_path: Path) -> None:
    async with rig_in(settings_in(tmp_path, url)) as rig:
        for number in range(ROUNDS):
            name = f"vim{number}"
            endpoint = {"endpoint": f"sim://{name}"}
            vim = await rig.slipway.vims.add(VimRequest(name=name, vim_type=SIMULATED, interface_info=endpoint))
            instance_id = await rig.create()
            request = InstantiateRequest(
                flavour_id="simple", vim_connection_info={"vim": VimConnectionInfo(vim_id=vim.id)}
            )
            removed, begun = await asyncio.gather(
                rig.slipway.vims.remove(name),
                rig.slipway.lcm.begin(OperationType.INSTANTIATE, instance_id, request),
                return_exceptions=True,
            )
            assert isinstance(removed, RequestError) != isinstance(begun, RequestError), (removed, begun)
