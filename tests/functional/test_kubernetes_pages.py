"""Pages about CNFs, charts and Cluster API can't rot: their commands exist, and their plans are what is printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperGroup

from slipway.cli.main import app
from tests.functional.processes import running
from tests.functional.readme import ROOT

pytestmark = pytest.mark.sqlite_suffices

PAGES = ("cnfs", "helm", "cluster-api")
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
TREE = re.compile(r"^\d+ steps?\n.*?Nothing was changed\.$", re.DOTALL | re.MULTILINE)
RELEASE = re.compile(r"\bvnf-[0-9a-f]{12}\b")
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "clusters": [{"name": "a", "cluster": {"server": "https://192.0.2.1:6443"}}],
    "users": [{"name": "a", "user": {"token": "a-token"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
}


def text(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text()


def commands(page: str) -> list[str]:
    """Lines of blocks, and words in a sentence, that a reader would type."""
    lines = [
        line.removeprefix("$ ").partition("  #")[0] for one in BLOCK.findall(text(page)) for line in one.splitlines()
    ]
    quoted = re.findall(r"`(slipway [a-z]+ [a-z-]+ [^`]+)`", BLOCK.sub("", text(page)))
    return [line.strip() for line in (*lines, *quoted) if line.startswith("slipway ")]


@pytest.mark.parametrize(("page", "command"), [(page, one) for page in PAGES for one in commands(page)])
def test_every_command_can_be_typed(page: str, command: str) -> None:
    words, here = shlex.split(command)[1:], typer.main.get_command(app)
    while isinstance(here, TyperGroup):
        assert words[0] in here.commands, f"docs/{page}.md: there is no {words[0]}"
        here, words = here.commands[words[0]], words[1:]
    here.make_context(command, words)


@pytest.mark.parametrize("page", PAGES)
def test_the_plan_is_the_one_that_is_printed(page: str, tmp_path: Path) -> None:
    """The cluster is never asked: nothing of a new VNF is there."""
    (tmp_path / "admin.conf").write_text(yaml.safe_dump(KUBECONFIG))
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh\nexit 1\n")
    helm.chmod(0o755)
    if parameters := re.search(r"^\$ cat (\S+)\n(.*?)^\$", text(page), re.DOTALL | re.MULTILINE):
        (tmp_path / parameters[1]).write_text(parameters[2])
    typed = commands(page)
    last = next(at for at, one in enumerate(typed) if one.endswith("--plan"))
    built = max(at for at, one in enumerate(typed[:last]) if one.startswith("slipway package build"))
    vim = next(one for one in typed if one.startswith("slipway vim add"))
    with running("serve", tmp_path / "data", helm_program=helm) as server:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SLIPWAY_URL": server.first_line.split(" ready at ")[1].split(" ")[0],
            "SLIPWAY_DATA_DIR": str(tmp_path / "data"),
        }
        for command in (vim, *typed[built : last + 1]):
            words = shlex.split(command)
            done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    (shown,) = TREE.findall(text(page))
    assert RELEASE.sub("RELEASE", done.stdout.strip()) == RELEASE.sub("RELEASE", shown)
