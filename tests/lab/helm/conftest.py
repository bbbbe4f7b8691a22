"""The real helm beside a real API server, which is a VIM with a namespace of one's own and a node that plays pods."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.lab.kube.conftest import administrator, api, control_plane, kubeconfig, namespace, node
from tests.lab.kubernetes.conftest import connection

__all__ = ["administrator", "api", "connection", "control_plane", "kubeconfig", "namespace", "node"]
LAB = Path(__file__).parents[3] / "lab" / "helm"


@pytest.fixture(scope="session")
def helm() -> Path:
    """Built the first time. Without a way to build it there is no test."""
    found = subprocess.run([sys.executable, LAB / "programs"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"no helm: {found.stderr.strip().splitlines()[-1]}")
    return Path(found.stdout.strip()) / "helm"


@pytest.fixture
def driver(helm: Path) -> KubernetesVimDriver:
    return KubernetesVimDriver(helm=helm)
