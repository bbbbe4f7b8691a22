"""The control plane of lab/kubernetes for a test run: one for all its workers, ended by the last that used it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LAB = Path(__file__).parents[3] / "lab" / "kubernetes"


@contextmanager
def shared_control_plane(place: Path) -> Iterator[Path]:
    """The path of its kubeconfig."""
    with _locked(place), _counted(place, +1):
        environment = {**os.environ, "LAB_DIR": str(place), "LAB_PROGRAMS": _programs()}
        up = subprocess.run([LAB / "control-plane", "up"], env=environment, capture_output=True, text=True)
        assert up.returncode == 0, up.stderr
    try:
        yield Path(up.stdout.strip())
    finally:
        with _locked(place), _counted(place, -1) as users:
            if users == 0:
                subprocess.run([LAB / "control-plane", "down", "--purge"], env=environment, check=True)


@contextmanager
def without_api_server(place: Path) -> Iterator[None]:
    """Killed, as by a power cut; at the end it is back."""
    os.kill(int((place / "kube-apiserver.pid").read_text()), signal.SIGKILL)
    try:
        yield
    finally:
        environment = {**os.environ, "LAB_DIR": str(place), "LAB_PROGRAMS": _programs()}
        subprocess.run([LAB / "control-plane", "up"], env=environment, check=True, capture_output=True)


def _programs() -> str:
    """Built the first time, unless LAB_PROGRAMS says where they are. Without a way to build them there is no test."""
    if given := os.environ.get("LAB_PROGRAMS"):
        return given
    found = subprocess.run([sys.executable, LAB / "programs"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"no Kubernetes programs: {found.stderr.strip().splitlines()[-1]}")
    return found.stdout.strip()


@contextmanager
def _counted(place: Path, change: int) -> Iterator[int]:
    file = place.with_suffix(".users")
    users = (int(file.read_text()) if file.exists() else 0) + change
    yield users
    file.write_text(str(users))  # not when it could not be started


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    with place.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
