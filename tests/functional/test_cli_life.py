"""The life of a cluster through the command line, against a real server in its own process."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from slipway.cli.main import app

SLIPWAY = str(Path(sys.executable).with_name("slipway"))
SAMPLE = Path(__file__).parents[2] / "samples" / "cluster-simulated"
PATIENCE = 60
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Shell:
    """Calls commands as a user of the server's machine would; those that must be processes of their own are started."""

    environment: dict[str, str]
    directory: Path

    def run(self, *args: str, code: int = 0, **more: str) -> Result:
        others = {name: None for name in os.environ if name.startswith("SLIPWAY_")}
        runner = CliRunner(env={**others, **self.environment, **more})
        result = runner.invoke(app, list(args), prog_name="slipway", catch_exceptions=False)
        assert result.exit_code == code, f"{args}: {result.exit_code}\n{result.stdout}\n{result.stderr}"
        return result

    def out(self, *args: str) -> str:
        return self.run(*args).stdout

    def json(self, *args: str) -> Any:
        return json.loads(self.out(*args, "-o", "json"))

    def start(self, *args: str, **more: Any) -> subprocess.Popen[str]:
        """As from a terminal: a run of the tests in the background ignores Ctrl-C, and children inherit that."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY_")}
        return subprocess.Popen(
            ["env", "--default-signal=INT", SLIPWAY, *args], env={**plain, **self.environment}, text=True, **more
        )

    def file(self, name: str) -> Path:
        return self.directory / name


@contextlib.contextmanager
def serving(shell: Shell) -> Iterator[str]:
    """The address a new server says it is ready at."""
    server = shell.start("serve", "--port", "0", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert server.stdout is not None
    try:
        ready = server.stdout.readline()
        assert " is ready at http://127.0.0.1:" in ready
        yield ready.split(" is ready at ")[1].split()[0]
    finally:
        server.terminate()
        server.stdout.close()
        assert server.wait(PATIENCE) == 0


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    directory = tmp_path_factory.mktemp("cli")
    environment = {"SLIPWAY_DATA_DIR": str(directory / "data")}
    with serving(Shell(environment, directory)) as url:
        yield Shell({**environment, "SLIPWAY_URL": url}, directory)


@pytest.fixture(scope="module")
def package(shell: Shell) -> str:
    csar = str(shell.file("cluster.csar"))
    shell.run("package", "build", str(SAMPLE), "-o", csar)
    shell.run("package", "upload", csar, "--name", "cluster")
    return "cluster"


@pytest.fixture
def cluster(shell: Shell, package: str) -> Iterator[str]:
    """An instantiated cluster on a VIM of its own, which has the same name."""
    name = f"cluster-{next(NUMBERS)}"
    shell.run("vim", "add", name, "--type", "simulated")
    shell.run("vnf", "create", name, "--package", package)
    shell.run("vnf", "instantiate", name, "--flavour", "simple", "--vim", name)
    yield name
    shell.run("sim", "rules", name, "--clear")
    for operation in shell.json("op", "list", "--vnf", name, "--state", "FAILED_TEMP"):
        shell.run("op", "fail", operation["id"])
    shell.run("vnf", "terminate", name, "--forceful")
    shell.run("vnf", "delete", name)
    shell.run("vim", "remove", name)


def workers(shell: Shell, name: str) -> list[str]:
    info = shell.json("vnf", "show", name)["instantiatedVnfInfo"]
    return [vnfc["metadata"]["name"] for vnfc in info["vnfcResourceInfo"] if vnfc["vduId"] == "workerNode"]


def last_operation(shell: Shell, name: str) -> dict[str, Any]:
    operation: dict[str, Any] = shell.json("op", "list", "--vnf", name)[0]
    return operation


def test_a_whole_life(shell: Shell, package: str) -> None:
    assert "Sample cluster" in shell.out("package", "list")
    assert shell.json("vnf", "create", "life", "--package", package)["instantiationState"] == "NOT_INSTANTIATED"

    assert "0 to change, 0 to remove" in shell.out("vnf", "instantiate", "life", "--flavour", "simple", "--plan")
    assert shell.json("vnf", "show", "life")["instantiationState"] == "NOT_INSTANTIATED"
    lines = shell.out("vnf", "instantiate", "life", "--flavour", "simple", "--vim", "simulated").splitlines()
    assert lines[0].startswith("✓ make network clusterNet")
    assert lines[-1].startswith("INSTANTIATE COMPLETED")
    assert workers(shell, "life") == ["workerNode-0", "workerNode-1"]

    shell.run("vnf", "scale", "life", "--aspect", "workers", "--steps", "2")
    assert len(workers(shell, "life")) == 4
    shell.run("vnf", "scale", "life", "--aspect", "workers", "--in", "--steps", "1")
    assert len(workers(shell, "life")) == 3

    healed = shell.out("vnf", "heal", "life", "--vnfc", "workerNode-1", "--cause", "a test")
    assert "workerNode-1" in healed
    assert "workerNode-0" not in healed
    shell.run("vnf", "modify", "life", "--name", "living", "--description", "well", "--metadata", "team=core")
    assert shell.json("vnf", "show", "living")["metadata"]["team"] == "core"

    page = shell.out("vnf", "describe", "living")
    assert "Problems" not in page
    assert "Scale: workers at level 1 of 10" in page
    assert "workerNode: 3" in page

    assert "to remove" in shell.out("vnf", "terminate", "living", "--plan")
    shell.run("vnf", "delete", "living", code=1)
    shell.run("vnf", "terminate", "living", "--graceful", "--timeout", "5")
    shell.run("vnf", "delete", "living")
    assert "no VNF instance" in shell.run("vnf", "show", "living", code=1).stderr


def test_a_failure_says_why_and_a_retry_goes_on(shell: Shell, cluster: str) -> None:
    rule = "call=make_machine,machine=workerNode-2,kind=error,fault=permanent,message=no more room"
    assert "make_machine" in shell.out("sim", "rules", cluster, "--add", rule)
    failed = shell.run("vnf", "scale", cluster, "--aspect", "workers", code=1)
    assert "no more room" in failed.stdout
    assert "slipway op retry" in failed.stderr

    operation = last_operation(shell, cluster)
    assert operation["operationState"] == "FAILED_TEMP"
    page = shell.out("vnf", "describe", cluster).splitlines()
    assert "Problems" in page[1]
    assert "no more room" in page[2]
    assert f"slipway op retry {operation['id']}" in "\n".join(page)
    assert "FAILED" in shell.out("op", "steps", operation["id"])
    assert "no more room" in shell.out("op", "show", operation["id"])
    shell.run("vnf", "scale", cluster, "--aspect", "workers", code=1)

    shell.run("op", "wait", operation["id"], code=1)
    shell.run("sim", "rules", cluster, "--clear")
    assert "COMPLETED" in shell.out("op", "retry", operation["id"])
    assert len(workers(shell, cluster)) == 3
    assert "COMPLETED" in shell.run("op", "retry", operation["id"], code=1).stderr


def test_a_failure_is_rolled_back(shell: Shell, cluster: str) -> None:
    shell.run("sim", "rules", cluster, "--add", "call=make_machine,machine=workerNode-3,kind=error,fault=permanent")
    shell.run("vnf", "scale", cluster, "--aspect", "workers", "--steps", "2", code=1)
    operation = last_operation(shell, cluster)["id"]

    assert "ROLLED_BACK" in shell.out("op", "rollback", operation)
    assert workers(shell, cluster) == ["workerNode-0", "workerNode-1"]


def test_ctrl_c_leaves_the_operation_and_a_cancel_stops_it(shell: Shell, cluster: str) -> None:
    shell.run("sim", "rules", cluster, "--add", "call=make_machine,machine=workerNode-3,kind=latency,seconds=600")
    accepted = shell.json("vnf", "scale", cluster, "--aspect", "workers", "--steps", "2", "--no-wait")["id"]
    watching = shell.start("op", "wait", accepted, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watching.stdout is not None
    assert "workerNode-2" in watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=PATIENCE)

    assert watching.returncode == 130
    assert f"slipway op wait {accepted}" in said
    assert last_operation(shell, cluster)["operationState"] in ("STARTING", "PROCESSING")
    assert "FAILED_TEMP" in shell.out("op", "cancel", accepted, "--forceful")
    shell.run("op", "fail", accepted)
    assert last_operation(shell, cluster)["operationState"] == "FAILED"


def test_on_a_terminal_the_steps_are_drawn_in_place(shell: Shell, cluster: str) -> None:
    master, slave = pty.openpty()
    terminal = Shell({**shell.environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}, shell.directory)
    process = terminal.start("vnf", "scale", cluster, "--aspect", "workers", stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    drawn = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody is there any more
        while chunk := os.read(master, 65536):
            drawn += chunk
    os.close(master)

    assert process.wait(PATIENCE) == 0
    assert b"\x1b[" in drawn
    assert "✓ make machine workerNode-2" in drawn.decode()
    assert "SCALE COMPLETED" in drawn.decode()


def test_a_refused_package_leaves_nothing_behind(shell: Shell, package: str) -> None:
    broken = shell.file("broken.csar")
    broken.write_bytes(b"no zip")
    before = shell.json("package", "list")
    refused = shell.run("package", "upload", str(broken), code=1)

    assert refused.stderr.startswith("Error: ")
    assert shell.json("package", "list") == before


def test_a_package_comes_back_as_it_was_sent(shell: Shell, package: str) -> None:
    back = shell.file("back.csar")
    shell.run("package", "download", package, "--to", str(back))

    assert back.read_bytes() == shell.file("cluster.csar").read_bytes()
    shell.run("package", "disable", package)
    shell.run("vnf", "create", "never", "--package", package, code=1)
    shell.run("package", "enable", package)


def test_secrets_are_never_shown_and_survive_a_new_key(shell: Shell) -> None:
    password = shell.file("password")
    password.write_text("s3cret\n")
    shell.run("vim", "add", "locked", "--type", "simulated", "--access", f"password=@{password}")
    for form in ("table", "json", "yaml"):
        assert "s3cret" not in shell.out("vim", "show", "locked", "-o", form)

    assert shell.json("secrets", "rotate")["rotated"] >= 1
    assert "can be used" in shell.out("vim", "check", "locked")
    shell.run("vim", "remove", "locked")


def test_a_wrong_token_and_no_server_are_exit_code_3(shell: Shell) -> None:
    assert "--token-file" in shell.run("vnf", "list", code=3, SLIPWAY_TOKEN="x" * 32).stderr
    assert "slipway serve" in shell.run("vnf", "list", "--url", "http://127.0.0.1:1", code=3).stderr


def test_two_servers_do_not_share_a_data_directory(shell: Shell) -> None:
    second = shell.start("serve", "--port", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, said = second.communicate(timeout=PATIENCE)

    assert (second.returncode, out) == (1, "")
    assert "Another Slipway uses" in said


def test_the_installed_command_answers(shell: Shell, package: str) -> None:
    listing = shell.start("package", "list", "-o", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, said = listing.communicate(timeout=PATIENCE)

    assert (listing.returncode, said) == (0, "")
    assert json.loads(out)[0]["userDefinedData"] == {"name": "cluster"}


def test_a_reader_who_goes_away_ends_the_command_without_noise(shell: Shell) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    listing = shell.start("vim", "list", "-o", "json", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    _, said = listing.communicate(timeout=PATIENCE)

    assert (listing.returncode, said) == (1, "")
