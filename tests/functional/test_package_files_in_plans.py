"""Files of a package that a VIM driver plans with: read before it plans, and other content is a change."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.model import package_content
from slipway.model.errors import StepError
from slipway.onboarding import package_files
from slipway.store.database import Database
from tests.drivers.objects import VIM_TYPE, ObjectsDriver
from tests.functional.next_package import NEXT_ID
from tests.unit.api.world import LCM, World, a_world
from tests.unit.package.csars import META, VNFD, written

pytestmark = pytest.mark.sqlite_suffices

FIRST_ID = "6b1a5d0e-3c52-4f0a-9d57-1f5c2c7d8e10"
VNFD_TEXT = """\
tosca_definitions_version: tosca_simple_yaml_1_2
imports: [etsi_nfv_sol001_vnfd_types.yaml]
topology_template:
  substitution_mappings:
    node_type: company.provider.VNF
    properties: {flavour_id: simple}
  node_templates:
    VNF:
      type: company.provider.VNF
      properties:
        descriptor_id: DESCRIPTOR_ID
        descriptor_version: "1.0"
        provider: Company
        product_name: Pods
        software_version: "1.0"
        vnfm_info: [Slipway]
        flavour_description: small
    pod:
      type: tosca.nodes.nfv.Vdu.OsContainerDeployableUnit
      properties: {name: pod, vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 3}}
      requirements: [{container: web}]
    web:
      type: tosca.nodes.nfv.Vdu.OsContainer
      properties: {name: web}
"""


@pytest.fixture
def objects(tmp_path: Path) -> ObjectsDriver:
    return ObjectsDriver(tmp_path)


@pytest.fixture
async def world(database: Database, tmp_path: Path, objects: ObjectsDriver) -> AsyncIterator[World]:
    async with a_world(database, tmp_path, others=(objects,)) as world:
        await world.call(
            "POST",
            "/slipway/v1/vims",
            201,
            json={"name": "objects", "vimType": VIM_TYPE, "isDefault": True, "interfaceInfo": {"endpoint": "here"}},
        )
        yield world


async def onboarded(world: World, vnfd_id: str, **objects: dict[str, Any]) -> None:
    files = {f"Files/objects/{name}.json": msgspec.json.encode(content) for name, content in objects.items()}
    files |= {META: b"Entry-Definitions: " + VNFD.encode(), VNFD: VNFD_TEXT.replace("DESCRIPTOR_ID", vnfd_id).encode()}
    package = await world.onboard(written(files, world.directory, f"{vnfd_id}.csar"))
    assert package["onboardingState"] == "ONBOARDED", package


async def instantiated(world: World) -> str:
    instance_id = await world.create(FIRST_ID)
    await world.run(instance_id, "instantiate", {"flavourId": "simple"})
    return instance_id


def content(world: World) -> dict[str, Any]:
    """What the VIM holds under the names of ConfigMaps."""
    with sqlite3.connect(world.directory / "objects.db") as db:
        rows = db.execute("SELECT name, content FROM object WHERE kind = 'ConfigMap' AND name != 'settings'").fetchall()
    db.close()
    return {name: msgspec.json.decode(text) for name, text in rows}


async def test_a_file_of_the_package_becomes_what_the_driver_makes_of_it(world: World) -> None:
    await onboarded(world, FIRST_ID, colours={"sky": "blue"}, shapes={"ball": "round"})
    await instantiated(world)
    assert content(world) == {"colours": {"sky": "blue"}, "shapes": {"ball": "round"}}


async def test_the_same_name_with_other_content_is_a_change_with_a_way_back(world: World) -> None:
    await onboarded(world, FIRST_ID, colours={"sky": "blue"})
    await onboarded(world, NEXT_ID, colours={"sky": "grey"}, shapes={"ball": "round"})
    instance_id = await instantiated(world)
    asked = {"vnfInstanceId": instance_id, "operation": "CHANGE_VNFPKG", "request": {"vnfdId": NEXT_ID}}
    (step,) = (await world.call("POST", "/slipway/v1/plans", 200, json=asked)).json()["steps"]
    assert [(one["verb"], one["name"]) for one in step["effects"]] == [("change", "colours"), ("make", "shapes")]

    await world.run(instance_id, "change_vnfpkg", {"vnfdId": NEXT_ID})
    assert content(world) == {"colours": {"sky": "grey"}, "shapes": {"ball": "round"}}
    await world.run(instance_id, "change_vnfpkg", {"vnfdId": FIRST_ID})
    assert content(world) == {"colours": {"sky": "blue"}}


async def test_files_too_large_to_plan_with_end_the_operation_before_anything_is_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_files, "LARGEST_PLANNED", 10)
    await onboarded(world, FIRST_ID, colours={"sky": "blue"})
    instance_id = await world.create(FIRST_ID)
    ended = await world.run(instance_id, "instantiate", {"flavourId": "simple"}, "ROLLED_BACK")
    assert "Files/objects/colours.json" in ended["error"]["detail"]


async def test_a_rollback_brings_the_former_content_back(world: World, objects: ObjectsDriver) -> None:
    await onboarded(world, FIRST_ID, colours={"sky": "blue"})
    await onboarded(world, NEXT_ID, colours={"sky": "grey"}, shapes={"ball": "round"})
    instance_id = await instantiated(world)
    objects.failing = "shapes"
    operation_id = await world.begin(instance_id, "change_vnfpkg", {"vnfdId": NEXT_ID})
    await world.ended(operation_id, "FAILED_TEMP")
    assert content(world) == {"colours": {"sky": "grey"}, "shapes": {"ball": "round"}}
    await world.call("POST", f"{LCM}/vnf_lcm_op_occs/{operation_id}/rollback", 202)
    await world.ended(operation_id, "ROLLED_BACK")
    assert content(world) == {"colours": {"sky": "blue"}}


async def test_a_file_that_the_driver_names_and_the_package_lacks_is_named(
    world: World, objects: ObjectsDriver
) -> None:
    objects.globs = ("Files/objects/none.json",)
    await onboarded(world, FIRST_ID, colours={"sky": "blue"})
    instance_id = await world.create(FIRST_ID)
    ended = await world.run(instance_id, "instantiate", {"flavourId": "simple"}, "ROLLED_BACK")
    assert "has no file Files/objects/none.json" in ended["error"]["detail"]


async def test_what_a_driver_refuses_is_refused_in_a_preview_too(world: World) -> None:
    """A VNF of machines on a VIM of objects: no empty plan is shown."""
    instance_id = await world.create((await world.onboard())["vnfdId"])
    body = {"flavourId": "simple"}
    asked = {"vnfInstanceId": instance_id, "operation": "INSTANTIATE", "request": body}
    shown = await world.call("POST", "/slipway/v1/plans", 422, json=asked)
    refused = await world.call("POST", f"{LCM}/vnf_instances/{instance_id}/instantiate", 422, json=body)
    assert shown.json()["detail"] == refused.json()["detail"]


async def test_a_step_reads_a_file_of_any_size_in_pieces(world: World, database: Database) -> None:
    large = {"sky": "blue" * package_content.PIECE}
    await onboarded(world, FIRST_ID, colours=large)
    instance_id, path, text = await world.create(FIRST_ID), "Files/objects/colours.json", msgspec.json.encode(large)
    files = package_files.PackageFiles(database, world.directory / "packages")
    content = await files.content(instance_id, FIRST_ID, path, sha256(text).hexdigest())
    pieces = list(content)
    assert (b"".join(pieces), len(content)) == (text, len(text))
    assert max(map(len, pieces)) <= package_content.PIECE
    with pytest.raises(StepError, match="The package has no file none"):
        await files.content(instance_id, FIRST_ID, "none", "")
