"""What `make test-all` runs beyond `make test`: groups of tests, each of which can be run alone.

A test joins a group by `@pytest.mark.group(name="upgrade")`, or by `pytestmark` for its whole file, and is then no part
of `make test`. `make test-all` runs `make test` and all groups, `make test-all GROUP=upgrade` one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

LAB = Path(__file__).parent / "lab"
WITHOUT_MACHINES = {
    "crash": "kill -9 at each step boundary of each operation, on both databases and three kinds of VIM driver",
    "postgresql": "on PostgreSQL what `make test` tries on SQLite alone; more requests to each route",
}
ON_MACHINES = {
    "cluster": "whole lives of real clusters, with one master and with three",
    "upgrade": "a real cluster goes to the next version of Kubernetes",
    "sources": "real clusters from packages, from files, and by a script of the package",
    "storage": "real clusters with a storage server, on OpenStack too: block volume, NFS, heals that keep the data",
    "world": "the contract between a cluster's steps and its machines, on real ones",
    "sandbox": "the contract of VIM drivers and all else that real machines show, and the Kubernetes image",
    "openstack": "VNFs and clusters on a real OpenStack: Heat, Nova, Neutron, Cinder, Glance, Keystone",
    "kubespray": "real clusters that playbooks build, on OpenStack too, by Ansible; by kubespray where it is at hand",
    "kubernetes": "CNFs on a real Kubernetes API server: the contract of VIM drivers, failures, bad input",
    "helm": "CNFs of Helm charts by the real helm on a real API server: contract, lives, crashes, hostile charts",
    "registry": "a real registry as a VNF, on OpenStack too, and a real cluster that pulls from it by HTTPS",
    "cluster-api": "workload clusters on real controllers of Cluster API, and the chain from a cluster VNF to them",
    "demo": "make demo prints what the README shows",
}
GROUPS = WITHOUT_MACHINES | ON_MACHINES


def main(asked: Sequence[str]) -> int:
    if unknown := [name for name in asked if name not in GROUPS]:
        print(f"GROUP={unknown[0]}: must be one of: {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    ended = {}
    for name in asked or GROUPS:
        print(f"\n{name}: {GROUPS[name]}", flush=True)
        begun = time.monotonic()
        passed = subprocess.run(command(name), check=False).returncode == 0
        ended[name] = passed, time.monotonic() - begun
    print()
    for name, (passed, took) in ended.items():
        print(f"{name:12}{'passed' if passed else 'FAILED'} after {took / 60:.1f} minutes")
    return 0 if all(passed for passed, _ in ended.values()) else 1


def command(group: str) -> list[str]:
    """On real machines one test at a time: each may make as many as this host can bear. Else WORKERS, as in `make`."""
    workers = os.environ.get("WORKERS", "4")
    spread = (
        ["-n", "1", "tests/lab"] if group in ON_MACHINES else ["-n", workers, "--dist", "worksteal", "tests/functional"]
    )
    shown = ["-v", "--durations=0", "--durations-min=1"]
    return [sys.executable, "-m", "pytest", *shown, "-m", f"group(name={group!r})", *spread]


def group_of(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker("group")
    return str(marker.kwargs["name"]) if marker else None


def misplaced(items: Iterable[pytest.Item]) -> list[str]:
    """What is wrong with the groups of these tests."""
    wrong = []
    for item in items:
        group, in_journey = group_of(item), item.get_closest_marker("journey") is not None
        if group is not None and group not in GROUPS:
            wrong.append(f"{item.nodeid}: its group {group!r} must be one of: {', '.join(GROUPS)}")
        if item.path.is_relative_to(LAB) and in_journey == (group is not None):
            wrong.append(f"{item.nodeid}: it must be marked as part of a journey, or of a group")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
