"""The script that serves directories by NFS, in a mount namespace with a stand-in for the service: whose they are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from slipway.cluster.steps.machine import SCRIPTS

pytestmark = pytest.mark.journey

WORLD = """
set -eu
mkdir -p "$1/bin" "$1/volume"
for name in systemctl ss exportfs; do
    printf '#!/bin/sh\\necho "%s  10.12.0.0/24(rw)"\\n' "$1/volume" >"$1/bin/$name"
    chmod +x "$1/bin/$name"
done
mount -t tmpfs -o mode=755 tmpfs "$1/volume"
mkdir -m 700 "$1/volume/lost+found"
volume=$1/volume PATH=$1/bin:$PATH
serve() { sh "$script" kernel nfs-server.service no "$volume" "$volume"; }
"""


def run(tmp_path: Path, what: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", WORLD + what, "sh", str(tmp_path)],
        env={**os.environ, "script": str(SCRIPTS / "nfs_server.sh")},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_a_whole_volume_that_is_exported_can_be_written_to(tmp_path: Path) -> None:
    done = run(tmp_path, 'serve >/dev/null; stat -c "%U %a" "$volume" "$volume/lost+found"')
    assert (done.returncode, done.stdout.split()) == (0, ["nobody", "770", "root", "700"]), done.stderr


def test_one_that_holds_data_keeps_its_owner(tmp_path: Path) -> None:
    done = run(tmp_path, 'touch "$volume/data"; serve >/dev/null; stat -c "%U %a" "$volume"')
    assert (done.returncode, done.stdout.split()) == (0, ["root", "755"]), done.stderr
