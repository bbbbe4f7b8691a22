"""A real management cluster (lab/cluster-api) for a whole run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LAB = Path(__file__).parents[3] / "lab"


@pytest.fixture(scope="session")
def management_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its kubeconfig. The in-memory provider's ports are fixed: there is one at a time on a machine."""
    programs = os.pathsep.join(_programs(folder) for folder in ("kubernetes", "cluster-api"))
    place = tmp_path_factory.getbasetemp() / "management-cluster"
    environment = {**os.environ, "LAB_DIR": str(place), "LAB_PROGRAMS": programs}
    script = [sys.executable, str(LAB / "cluster-api" / "management-cluster")]
    up = subprocess.run([*script, "up"], env=environment, capture_output=True, text=True)
    assert up.returncode == 0, up.stderr + up.stdout
    try:
        yield Path(up.stdout.strip()).read_text()
    finally:
        subprocess.run([*script, "down", "--purge"], env=environment, check=True)


def _programs(folder: str) -> str:
    """Built the first time. Without a way to build them there is nothing to test on."""
    found = subprocess.run([sys.executable, LAB / folder / "programs"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"no programs of {folder}: {found.stderr.strip().splitlines()[-1]}")
    return found.stdout.strip()
