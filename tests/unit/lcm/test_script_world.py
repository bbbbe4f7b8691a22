"""Which package a script comes from, when projects have packages of the same VNFD."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from slipway.lcm.script_data import RecordedScriptData
from slipway.model.clock import utcnow
from slipway.model.errors import NotFound
from slipway.model.operation import Operation, OperationType, State
from slipway.model.package import OnboardingState, OperationalState, UsageState, VnfPackage
from slipway.package.build import build_package
from slipway.store import operations, packages
from slipway.store.database import Database

SAMPLE = Path(__file__).parents[3] / "samples" / "cluster-simulated"


def begun(project: str) -> Operation:
    now = utcnow()
    return Operation(
        id=f"operation-of-{project}",
        vnf_instance_id=f"instance-of-{project}",
        operation=OperationType.INSTANTIATE,
        operation_state=State.STARTING,
        state_entered_time=now,
        start_time=now,
        is_automatic_invocation=False,
        is_cancel_pending=False,
    )


def package_with(directory: Path, project: str) -> str:
    """The sample with a script of the project's own; the id of the package."""
    tree = directory / project
    shutil.copytree(SAMPLE, tree)
    (tree / "Scripts").mkdir()
    (tree / "Scripts" / "hook.sh").write_text(f"echo {project}\n")
    build_package(tree, directory / f"package-of-{project}.csar")
    return f"package-of-{project}"


async def test_a_script_comes_from_the_package_of_the_operations_project(database: Database, tmp_path: Path) -> None:
    for project in ("default", "blue"):
        package = VnfPackage(
            id=package_with(tmp_path, project),
            vnfd_id="the-same",
            onboarding_state=OnboardingState.ONBOARDED,
            operational_state=OperationalState.ENABLED,
            usage_state=UsageState.NOT_IN_USE,
            created_at=utcnow(),
        )
        await database.write(packages.insert, package, project=project)
    for project in ("default", "blue", "red"):
        await database.write(operations.accept, begun(project), None, project)
    world = RecordedScriptData(database, tmp_path)
    for project in ("default", "blue"):
        place = tmp_path / f"unpacked-{project}"
        place.mkdir()
        await world.unpack(f"operation-of-{project}", "the-same", place)
        assert (place / "Scripts" / "hook.sh").read_text() == f"echo {project}\n"
    with pytest.raises(NotFound):
        await world.unpack("operation-of-red", "the-same", tmp_path)
