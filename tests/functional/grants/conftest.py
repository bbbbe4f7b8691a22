"""A Slipway that asks a small NFVO."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from slipway.settings import Settings
from tests.functional.grants.grant_world import settings_for
from tests.functional.rig import Rig, rig_in
from tests.functional.small_nfvo import SmallNfvo, small_nfvo


@pytest.fixture
async def nfvo() -> AsyncIterator[SmallNfvo]:
    async with small_nfvo() as nfvo:
        yield nfvo


@pytest.fixture
def settings(database_url: URL, tmp_path: Path, nfvo: SmallNfvo) -> Settings:
    return settings_for(database_url, tmp_path, nfvo)


@pytest.fixture
async def rig(settings: Settings) -> AsyncIterator[Rig]:
    async with rig_in(settings) as rig:
        yield rig
