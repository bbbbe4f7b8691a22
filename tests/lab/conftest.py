"""A sandbox for tests on a real engine: one for each worker of the run, so that workers don't wait for each other.

Storage with the imported image stays in the cache between runs; containers, networks, loop devices and the engine go.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.model.action import VimConnection
from slipway.model.vim import SANDBOX
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.engine_images import ensure_image, ensure_kubernetes
from slipway.vim.sandbox.inventory import remove_outside
from slipway.vim.sandbox.paths import SandboxPaths, default_cache
from tests.lab.cluster_lab import ClusterLab, a_lab, clear
from tests.lab.stages import has_failed, pytest_runtest_makereport, pytest_runtest_setup

__all__ = ["pytest_runtest_makereport", "pytest_runtest_setup"]

HERE = Path(__file__).parent
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
ENOUGH = 8192
VERSIONS = ("1.33.13", "1.34.4")  # of Kubernetes
NEEDED = ("podman", "runc", "mmdebstrap", "losetup", "ip", "nsenter")


PATIENCE = 45 * 60  # seconds for one test: the first may have to build Kubernetes


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(PATIENCE))


def missing() -> str | None:
    if os.geteuid() != 0:
        return "the sandbox's own engine needs root"
    if absent := [program for program in NEEDED if shutil.which(program) is None]:
        return f"no {', '.join(absent)} on this machine: lab/hosts/install brings them"
    return None


@pytest.fixture(scope="session")
def engines(worker_id: str) -> Iterator[Engines]:
    """A running engine with the machine image."""
    if reason := missing():
        pytest.skip(reason)
    if int(INOTIFY.read_text()) < ENOUGH:
        INOTIFY.write_text(str(ENOUGH))
    engines = Engines(SandboxPaths(default_cache() / f"sandbox-lab-{worker_id}", default_cache()), {}, ())
    operations = engines.operations(LOCAL)
    ensure_image(operations.engine, engines.paths, operations.locks, lambda said: None)
    clear(operations)
    yield engines
    clear(operations)
    remove_outside(operations)
    engines.close()
    engines.service.stop()


@pytest.fixture(scope="session")
def kubernetes_engines(engines: Engines) -> Engines:
    """One that has the image of clusters, too, with two versions for upgrades. The first time that takes minutes."""
    operations = engines.operations(LOCAL)
    ensure_kubernetes(operations.engine, engines.paths, operations.locks, print, VERSIONS)
    return engines


@pytest.fixture
def operations(engines: Engines) -> Iterator[EngineOperations]:
    """The engine itself, empty before and after."""
    operations = engines.operations(LOCAL)
    yield operations
    clear(operations)


@pytest.fixture
def driver(engines: Engines, operations: EngineOperations) -> Iterator[SandboxDriver]:
    driver = SandboxDriver(engines.paths.directory, engines, sockets=("/nowhere.sock",))
    yield driver
    driver.close()


@pytest.fixture
def connection() -> VimConnection:
    return VimConnection(SANDBOX, {"endpoint": LOCAL}, {"password": "over the hills"}, {})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, kubernetes_engines: Engines) -> Iterator[ClusterLab]:
    """A Slipway process on real machines, with the sample package and without a cluster yet: for all of a file."""
    with a_lab(tmp_path_factory.mktemp("lab"), kubernetes_engines) as lab:
        yield lab


@pytest.fixture(autouse=True)
def recovered(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a stage that failed the next one finds a Slipway that runs, and no operation that waits for a decision."""
    yield
    if "lab" in request.fixturenames and has_failed(request.node):
        lab: ClusterLab = request.getfixturevalue("lab")
        lab.recover()
