"""A client of version 1, and a world that it talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.api.application import make_app
from slipway.store.database import Database
from tests.functional.v1.v1_caller import Caller
from tests.unit.api.world import BASE_URL, TOKEN, a_world


@pytest.fixture
async def v1(database: Database, tmp_path: Path) -> AsyncIterator[Caller]:
    async with a_world(database, tmp_path, page_size=3) as world:
        app: Any = make_app(world.services)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers={"X-Auth-Token": TOKEN}) as client:
            yield Caller(world, client)
