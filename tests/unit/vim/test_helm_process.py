"""How Helm is run, seen from a program in its place: what it is given, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest

from slipway.kube.credentials import Credentials
from slipway.model.errors import VimError, VimFault
from slipway.vim.kubernetes.helm.process import PREFIX, HelmProgram, Workspace, fault_of_helm, remove_stale_workspaces

WHO = Credentials(server="https://10.0.0.1:6443", ca=None, token="canary-token", server_name="api.example")


def program(directory: Path, script: str) -> HelmProgram:
    path = directory / "helm-3.19"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return HelmProgram(path)


async def said(workspace: Workspace, seconds: float = 30) -> str:
    return (await workspace.helm(["status"], ["--output=json"], ["--debug"], seconds)).decode()


async def test_credentials_are_in_a_file_of_its_own_and_nothing_of_ours_is_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELM_PLUGINS", "/plugins")
    monkeypatch.setenv("SLIPWAY_CANARY", "1")
    show = 'echo "$0" "$@"; env; stat -c %a "$KUBECONFIG" .; cat "$KUBECONFIG"'
    with program(tmp_path, show).workspace(WHO, "prod") as workspace:
        command, *rest = (await said(workspace)).splitlines()
    assert command == f"{workspace.place}/helm status --namespace=prod --output=json -- --debug"
    config = json.loads(rest[-1])
    assert rest[-3:-1] == ["600", "700"]
    assert config["users"][0]["user"] == {"token": "canary-token"}
    assert config["clusters"][0]["cluster"] == {"server": "https://10.0.0.1:6443", "tls-server-name": "api.example"}
    environment = dict(line.partition("=")[::2] for line in rest[:-3])
    assert "SLIPWAY_CANARY" not in environment
    assert {environment[name].startswith(str(workspace.place)) for name in environment if name.endswith("_HOME")} == {
        True
    }
    assert environment["HELM_PLUGINS"] == f"{workspace.place}/plugins"
    assert not workspace.place.exists()


async def test_one_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! > {tmp_path}/child; wait"
    with (
        program(tmp_path, script).workspace(WHO, "prod") as workspace,
        pytest.raises(VimError, match="took more than 1 s") as raised,
    ):
        await said(workspace, 1)
    assert raised.value.fault is VimFault.TEMPORARY
    assert not _runs(int((tmp_path / "child").read_text()))


async def test_one_that_is_cancelled_is_ended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    with program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 1000").workspace(WHO, "prod") as workspace:
        task = asyncio.create_task(said(workspace))
        pid = await asyncio.to_thread((tmp_path / "pid").read_text)
        task.cancel()
        await asyncio.wait([task])
    assert not _runs(int(pid))


async def test_what_it_says_is_told_without_secrets_and_private_paths(tmp_path: Path) -> None:
    script = 'echo "Error: $PWD/chart: hunter2 and canary-token are wrong" >&2; exit 1'
    with (
        program(tmp_path, script).workspace(WHO, "prod", ["hunter2"]) as workspace,
        pytest.raises(VimError) as raised,
    ):
        await said(workspace)
    assert raised.value.detail == "helm status --debug: …/chart: *** and *** are wrong."


async def test_secrets_of_several_lines_and_in_base64_are_not_told_either(tmp_path: Path) -> None:
    key = "-----BEGIN KEY-----\nMIIcanary\nQEEcanary\n-----END KEY-----\n"
    kept = base64.b64encode(b"hunter2").decode()
    (tmp_path / "said").write_text(f"Error: in {key!r}: {key}and {kept}\n")
    with (
        program(tmp_path, f"cat {tmp_path}/said >&2; exit 1").workspace(WHO, "prod", [key, "hunter2"]) as workspace,
        pytest.raises(VimError) as raised,
    ):
        await said(workspace)
    assert "canary" not in raised.value.detail
    assert kept not in raised.value.detail


async def test_one_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with (
        program(tmp_path, "exec yes").workspace(WHO, "prod") as workspace,
        pytest.raises(VimError, match=r"more than 64 MiB|File too large|SIGXFSZ"),
    ):
        await said(workspace, 120)


def test_what_a_killed_slipway_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    gone, ours = tmp_path / f"{PREFIX}{namespace}-4194305-x", tmp_path / f"{PREFIX}{namespace}-{os.getpid()}-x"
    for place in (gone, ours):
        place.mkdir()
    remove_stale_workspaces()
    assert not gone.exists()
    assert ours.exists()


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("Kubernetes cluster unreachable: dial tcp 10.0.0.1:6443: connect: connection refused", VimFault.TEMPORARY),
        ('pods "x" is forbidden: exceeded quota: few', VimFault.QUOTA),
        ('secrets is forbidden: User "x" cannot list resource "secrets"', VimFault.AUTH),
        ("execution error at (web/templates/a.yaml:1:3): no", VimFault.PERMANENT),
    ],
)
def test_what_went_wrong_is_one_of_the_faults_of_a_vim(words: str, fault: VimFault) -> None:
    assert fault_of_helm(words) is fault


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
