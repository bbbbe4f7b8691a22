"""The stock `openstack` program with the peer's plugin, called as its users call it."""

from __future__ import annotations

import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from tests.functional.readme import ROOT

INSTALL = ROOT / "lab" / "tackerclient" / "install"
WARM = Path(__file__).with_name("warm.py")
ASKING = """#!{python} -SE
import json, os, socket, sys
asked = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "directory": os.getcwd()}}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    connection.sendall(json.dumps(asked).encode() + b"\\n")
    code, out, err = json.load(connection.makefile())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
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
class Result:
    code: int
    out: str
    err: str


class Warm:
    """The client after its start, for one command after another."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, arguments: list[str], environment: dict[str, str], directory: Path) -> Result:
        out, err = directory / "stdout", directory / "stderr"
        for file in (out, err):
            file.write_text("")
        asked = {"arguments": arguments, "environment": environment, "directory": str(directory)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**asked, "out": str(out), "err": str(err)}) + "\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline()
        return Result(int(code), out.read_text(), err.read_text())


@contextmanager
def warm(program: Path) -> Iterator[Warm]:
    python = program.with_name("python")
    with subprocess.Popen([python, WARM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Warm(process)
        assert process.stdin is not None
        process.stdin.close()


@contextmanager
def command(client: Warm, directory: Path) -> Iterator[Path]:
    """A program `openstack` in this directory that has the client run what it is asked, where it is asked."""
    program, address = directory / "openstack", str(directory / "socket")
    program.write_text(ASKING.format(python=sys.executable, address=address))
    program.chmod(0o755)

    class Asked(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked = json.loads(self.rfile.readline())
            result = client.run(asked["arguments"], asked["environment"], Path(asked["directory"]))
            self.wfile.write(json.dumps([result.code, result.out, result.err]).encode())

    with socketserver.UnixStreamServer(address, Asked) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield program
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True)
class Stock:
    """`login` are the variables that a user would have in an openrc file."""

    client: Warm
    directory: Path
    login: dict[str, str]

    def version(self, major: str) -> Stock:
        return replace(self, login={**self.login, "OS_TACKER_API_VERSION": major})

    def run(self, command: str, *args: str, code: int = 0) -> Result:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        answer = self.client.run([*command.split(), *args], {**plain, **self.login}, self.directory)
        assert answer.code == code, f"{command} {args}: {answer}"
        return answer

    def says(self, command: str, *args: str) -> str:
        return self.run(command, *args).out

    def refused(self, command: str, *args: str) -> str:
        return self.run(command, *args, code=1).err

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
