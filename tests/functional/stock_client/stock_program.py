"""The stock `openstack` program with the peer's plugin, called as its users call it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from tests.functional.readme import ROOT

INSTALL = ROOT / "lab" / "tackerclient" / "install"
OURS = ("vim_", "vnf_package_", "vnflcm_")  # the plugin's other commands are for alarms and measurements


def installed() -> Path:
    """The program; brought into the cache when it is not there yet."""
    done = subprocess.run([INSTALL], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(done.stdout.strip())


def commands(program: Path) -> set[str]:
    """All that the plugin adds for VNFs, packages and VIMs: "vnflcm op show"."""
    (site_packages,) = program.parents[1].glob("lib/python3*/site-packages")
    (plugin,) = distributions(name="python-tackerclient", path=[str(site_packages)])
    groups = ("openstack.tackerclient.v1", "openstack.tackerclient.v2")
    points = [point for point in plugin.entry_points if point.group in groups and point.name.startswith(OURS)]
    return {point.name.replace("_", " ") for point in points}


@dataclass(frozen=True)
class Stock:
    """`login` are the variables that a user would have in an openrc file."""

    program: Path
    directory: Path
    login: dict[str, str]

    def version(self, major: str) -> Stock:
        return replace(self, login={**self.login, "OS_TACKER_API_VERSION": major})

    def run(self, command: str, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        done = subprocess.run(
            [self.program, *command.split(), *args],
            capture_output=True,
            text=True,
            cwd=self.directory,
            env={**plain, **self.login},
        )
        assert done.returncode == code, f"{command} {args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def says(self, command: str, *args: str) -> str:
        return self.run(command, *args).stdout

    def refused(self, command: str, *args: str) -> str:
        return self.run(command, *args, code=1).stderr

    def json(self, command: str, *args: str) -> Any:
        """What it prints as JSON, after the sentence that some commands say first."""
        printed = self.says(command, "-f", "json", *args)
        start = next(place for place, letter in enumerate(printed) if letter in "[{")
        return json.loads(printed[start:])

    def file(self, name: str, document: Any) -> str:
        (self.directory / name).write_text(json.dumps(document))
        return name


def with_token(url: str, token: str) -> dict[str, str]:
    return {"OS_AUTH_TYPE": "admin_token", "OS_ENDPOINT": url, "OS_TOKEN": token}
