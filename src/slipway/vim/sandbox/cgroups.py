"""Cgroups that a machine made for itself in the v1 hierarchies of a hybrid host, as one with a kubelet does."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def remove_cgroups(name: str, root: Path = ROOT) -> None:
    """Empty by now; a hierarchy that still has processes keeps its own."""
    if not (root / "unified").is_dir():
        return
    for hierarchy in root.iterdir():
        for top in hierarchy.glob(f"**/{name}") if hierarchy.name != "unified" else ():
            for path, _, _ in os.walk(top, topdown=False):
                _remove(Path(path))


def _remove(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError:
        return
