"""The cgroups that a machine leaves in the v1 hierarchies of a hybrid host, as one with a kubelet does."""

from __future__ import annotations

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def remove_cgroups(machine: str, root: Path = CGROUPS) -> None:
    """They are empty by now; a hierarchy that still has processes keeps its own.

    Other machines of the host come and go meanwhile, and their cgroups with them: what is gone is passed over.
    """
    if not (root / "unified").is_dir():
        return
    for hierarchy in root.iterdir():
        for top in _named(machine, hierarchy) if hierarchy.name != "unified" else ():
            for path, _, _ in os.walk(top, topdown=False):
                _remove_if_empty(Path(path))


def _named(machine: str, hierarchy: Path) -> list[Path]:
    return [Path(path) / machine for path, below, _ in os.walk(hierarchy) if machine in below]


def _remove_if_empty(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError:
        return
