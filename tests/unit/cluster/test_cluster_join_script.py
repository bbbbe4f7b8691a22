"""The script that joins a node: kubeadm says that an etcd did not start, and only the etcd itself says why."""

from __future__ import annotations

import subprocess
from pathlib import Path

from slipway.cluster.steps.machine import SCRIPTS

FATAL = '{"level":"fatal","msg":"discovery failed","error":"cannot fetch cluster info from peer urls"}'


def join(directory: Path, kubeadm: str) -> subprocess.CompletedProcess[str]:
    program = directory / "bin" / "kubeadm"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{kubeadm}\n")
    program.chmod(0o755)
    log = directory / "pods" / "kube-system_etcd-master-1_52fa" / "etcd" / "4.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        f'2026-11-17T13:55:14Z stderr F {{"level":"info","msg":"hello"}}\n2026-11-17T13:55:14Z stderr F {FATAL}\n'
    )
    return subprocess.run(
        ["sh", SCRIPTS / "join.sh", "config.yaml", log.parents[2]],
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_etcd_that_did_not_start_says_why(tmp_path: Path) -> None:
    ended = join(tmp_path, "echo 'the etcd member 5cf is not started' >&2; exit 3")
    assert ended.returncode == 3
    assert "the etcd member 5cf is not started" in ended.stderr
    assert f"etcd: {FATAL}" in ended.stderr
    assert "hello" not in ended.stderr


def test_a_node_that_joined_says_nothing_of_etcd(tmp_path: Path) -> None:
    ended = join(tmp_path, "exit 0")
    assert (ended.returncode, ended.stderr) == (0, "")
