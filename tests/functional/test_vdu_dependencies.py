"""A VNFD says which VDUs must be there before others: machines really come and go in that order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from slipway.store.database import Database
from tests.unit.api.world import World, a_world
from tests.unit.package.csars import VNFD_TEXT, valid_files, written

pytestmark = pytest.mark.sqlite_suffices

# web needs app, app needs the database; worker and disk are in the package anyway.
VDUS = """\
    web:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: web, vdu_profile: {min_number_of_instances: 2, max_number_of_instances: 2}}
      requirements: [{dependency: app}]
    app:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: app}
      requirements: [{dependency: {node: database}}]
    database:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: database}
  groups:
"""


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


async def times(world: World, operation_id: str, word: str) -> dict[str, tuple[datetime, datetime]]:
    """When each machine's step began and ended, by the machine's name."""
    answer = await world.call("GET", f"/slipway/v1/operations/{operation_id}/steps", 200)
    steps: list[dict[str, Any]] = answer.json()["steps"]
    return {
        one["nodes"][0]: (datetime.fromisoformat(one["startedAt"]), datetime.fromisoformat(one["endedAt"]))
        for one in steps
        if one["id"].startswith(f"{word} machine")
    }


async def test_machines_come_after_those_they_depend_on_and_go_before_them(world: World) -> None:
    await world.add_vim()
    text = VNFD_TEXT.replace("  groups:\n", VDUS)
    hook = "          instantiate_end:\n            implementation: installer\n"
    assert text.count(hook) == 1
    text = text.replace(hook, "")
    package = await world.onboard(written(valid_files(text), world.directory))
    assert package["onboardingState"] == "ONBOARDED", package
    instance_id = await world.create(package["vnfdId"])

    begun = await world.begin(instance_id, "instantiate", {"flavourId": "simple"})
    await world.ended(begun)
    made = await times(world, begun, "make")
    assert made.keys() == {"worker-0", "database-0", "app-0", "web-0", "web-1"}
    assert made["database-0"][1] <= made["app-0"][0]
    for web in ("web-0", "web-1"):
        assert made["app-0"][1] <= made[web][0]

    body = {"terminationType": "FORCEFUL"}
    ended = await world.begin(instance_id, "terminate", body)
    await world.ended(ended)
    gone = await times(world, ended, "remove")
    assert gone.keys() == made.keys()
    for web in ("web-0", "web-1"):
        assert gone[web][1] <= gone["app-0"][0]
    assert gone["app-0"][1] <= gone["database-0"][0]
