"""Two requests at the same moment: one wins, the other is refused, and neither leaves half of something."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL

from slipway.model.errors import RequestError, Unprocessable
from slipway.model.instance import VimConnectionInfo
from slipway.model.operation import OperationType
from slipway.model.requests import InstantiateRequest
from slipway.model.vim import SIMULATED
from slipway.store import vims
from slipway.store.database import Database
from slipway.vim_registry.registry import VimRequest
from tests.databases import setting
from tests.functional.cluster_rig import cluster_rig, instantiate
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
                lcm.delete_instance(instance_id),
                lcm.start_operation(OperationType.INSTANTIATE, instance_id, InstantiateRequest(flavour_id="simple")),
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
                rig.slipway.lcm.start_operation(OperationType.INSTANTIATE, instance_id, request),
                return_exceptions=True,
            )
            assert isinstance(removed, RequestError) != isinstance(begun, RequestError), (removed, begun)


async def test_a_change_of_a_vim_keeps_what_another_one_wrote_at_the_same_time(
    postgresql_url: URL, tmp_path: Path
) -> None:
    async with rig_in(settings_in(tmp_path, setting(postgresql_url)), working=False) as rig:
        database = rig.slipway.database
        with database.engine.begin() as other:
            vims.update(other, replace(vims.get(other, "simulated"), description="of another"))
            changing = asyncio.create_task(rig.slipway.vims.modify("simulated", {"extra": {"site": "north"}}))
            await someone_waits(database)
        changed = await changing
        assert (changed.description, changed.extra) == ("of another", {"site": "north"})


async def test_two_clusters_do_not_get_one_name(url: str | None, tmp_path: Path) -> None:
    """Though they will be on different VIMs."""
    async with cluster_rig(settings_in(tmp_path, url), working=False) as rig:
        slipway = rig.rig.slipway
        endpoint = {"endpoint": "sim://second"}
        second = await slipway.vims.add(VimRequest(name="second", vim_type=SIMULATED, interface_info=endpoint))
        for number in range(ROUNDS):
            both = [await rig.rig.create() for _ in range(2)]
            wanted = instantiate(vim_name=f"cluster-{number}")
            begun = await asyncio.gather(
                *(
                    slipway.lcm.start_operation(
                        OperationType.INSTANTIATE,
                        one,
                        replace(wanted, vim_connection_info={"vim": VimConnectionInfo(vim_id=vim_id)}),
                    )
                    for one, vim_id in zip(both, ("simulated", second.id), strict=True)
                ),
                return_exceptions=True,
            )
            assert sum(isinstance(one, Unprocessable) for one in begun) == 1, begun


async def someone_waits(database: Database) -> None:
    """For a lock that another transaction holds."""

    def waits(connection: Connection) -> bool:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return bool(connection.scalar(text(query)))

    async with asyncio.timeout(20):
        while not await database.read(waits):  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)
