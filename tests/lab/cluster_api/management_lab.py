"""The management cluster of lab/cluster-api, by its own commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LAB = ROOT / "lab"
SAMPLE = ROOT / "samples" / "management-cluster"


class ManagementLab:
    def __init__(self, place: Path) -> None:
        given = os.environ.get("LAB_PROGRAMS")
        self.programs = given.split(os.pathsep) if given else [_programs("kubernetes"), _programs("cluster-api")]
        self._environment = {
            **os.environ,
            "LAB_DIR": str(place / "lab"),
            "LAB_PROGRAMS": os.pathsep.join(self.programs),
        }

    def kubeconfig(self, command: str) -> str:
        return Path(self.run(command).strip()).read_text()

    def run(self, *words: str) -> str:
        command = [sys.executable, str(LAB / "cluster-api" / "management-cluster"), *words]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def package(self, tree: Path) -> Path:
        """The sample with the manifests of the in-memory provider."""
        clusterctl = Path(self.programs[-1]) / "clusterctl"
        environment = {
            **os.environ,
            "CLUSTERCTL": f"{clusterctl} --config {clusterctl.with_suffix('.yaml')}",
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
            "XDG_CONFIG_HOME": str(tree.parent / "config"),
        }
        command = [sys.executable, str(SAMPLE / "put-manifests"), "docker", str(tree)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return tree

    def package_for_processes(self, tree: Path) -> Path:
        """The same, with webhooks that are those of the lab's processes."""
        self.run("by-url", str(self.package(tree)))
        return tree


def _programs(folder: str) -> str:
    """Built the first time. Without a way to build them there is nothing to test on."""
    found = subprocess.run([sys.executable, LAB / folder / "programs"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"no programs of {folder}: {found.stderr.strip().splitlines()[-1]}")
    return found.stdout.strip()
