"""A hostile script in a package, against a running server: nothing gets out, nothing stays, the server goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy.engine import URL

from slipway.package.build import build_package
from tests.functional.processes import Process, serving_on
from tests.functional.scripted_package import scripted_tree
from tests.script_sandbox import needs_sandbox

pytestmark = needs_sandbox

pytestmark = pytest.mark.sqlite_suffices

CANARY = f"canary-{uuid4().hex}"
FILE = f"Scripts/{CANARY}.py"  # so that its processes are known by their command lines
LIMIT = 10

HOSTILE = """
import json, os, pathlib, signal, sys, time
given = json.load(sys.stdin)
wishes = given["request"]["additionalParams"]

def look():
    found = {"environment": dict(os.environ), "read": [], "processes": []}
    for path in wishes["paths"]:
        for attempt in (path, "/package/../" + path, "/proc/1/root" + path, "/proc/1/cwd" + path):
            try:
                found["read"].append(open(attempt, "rb").read(100).decode("latin-1"))
            except OSError:
                pass
    for process in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline", "maps"):
            try:
                found["processes"].append(open(f"/proc/{process}/{name}").read().replace(chr(0), " "))
            except OSError:
                pass
    for top, below, names in os.walk("/"):
        below[:] = [n for n in below if os.path.join(top, n) not in ("/proc", "/usr", sys.base_prefix)]
        found["read"].extend(n for n in names if n in ("slipway.db", "secrets.key", "token"))
    return found

def call():
    import socket
    said = {}
    for address in ("127.0.0.1", "localhost", "::1", "198.51.100.2", "198.51.100.3", "fd00::2"):
        try:
            with socket.create_connection((address, wishes["port"]), timeout=2) as connection:
                connection.sendall(b"GET /health HTTP/1.0\\r\\n\\r\\n")
                said[address] = connection.recv(100).decode()
        except OSError as error:
            said[address] = type(error).__name__
    return said

def kill():
    for pid in (os.getppid(), 1, -1, wishes["server"], -wishes["server"]):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(pid, number)
            except OSError:
                pass
    return {"alive": True}

def fork():
    while True:
        try:
            os.fork()
        except OSError:
            pass

def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(64):
                signal.signal(number, signal.SIG_IGN) if number in (1, 2, 3, 13, 15) else None
            os.closerange(0, 64)
            time.sleep(3600)
        os._exit(0)
    os.wait()
    return {"left": "a sleeper"}

def flood():
    piece = b"x" * (1 << 20)
    for _ in range(1024):
        os.write(1, piece)

def sleep():
    for number in (1, 2, 3, 13, 14, 15):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(3600)

answer = globals()[wishes["attack"]]()
print(json.dumps({"vnfInstance": {"metadata": {"answer": answer}}}))
"""


@pytest.fixture(scope="module")
def server(module_database_url: URL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    place = tmp_path_factory.mktemp("places")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CANARY_OF_THE_SERVER", CANARY)
        patch.setenv("TMPDIR", str(place))
        data = tmp_path_factory.mktemp("data")
        with serving_on(module_database_url, data, script_seconds=LIMIT, script_memory_bytes=4 << 30) as (process, _):
            yield process
    assert list(place.glob("slipway-script-*")) == []


@pytest.fixture(scope="module")
def vnfd_id(server: Process, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("package")
    tree = scripted_tree(directory, ["instantiate_end"], HOSTILE, file=FILE)
    package = build_package(tree, directory / "hostile.csar")
    with server.client() as client:
        created = client.post("/vnfpkgm/v1/vnf_packages", json={}).json()
        where = f"/vnfpkgm/v1/vnf_packages/{created['id']}"
        content = package.path.read_bytes()
        client.put(f"{where}/package_content", content=content, headers={"Content-Type": "application/zip"})
        until(lambda: client.get(where).json()["onboardingState"] == "ONBOARDED")
    return package.descriptor.vnfd_id


def until(true: Any, within: float = 60) -> None:
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def attacked(client: httpx.Client, vnfd_id: str, **wishes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The operation at rest, and the instance."""
    instance = client.post("/vnflcm/v2/vnf_instances", json={"vnfdId": vnfd_id}).json()
    where = f"/vnflcm/v2/vnf_instances/{instance['id']}"
    body = {"flavourId": "simple", "additionalParams": wishes}
    operation = client.post(f"{where}/instantiate", json=body).headers["location"]

    def at_rest() -> bool:
        # No request waits for the script, which goes on until its limit.
        began = time.monotonic()
        state = client.get(operation).json()["operationState"]
        assert time.monotonic() - began < LIMIT / 2
        return state not in ("STARTING", "PROCESSING")

    until(at_rest)
    return client.get(operation).json(), client.get(where).json()


def processes() -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
        except OSError:
            continue
        if CANARY.encode() in words:
            found.append(process.name)
    return found


def assert_nothing_left(server: Process) -> None:
    assert processes() == []
    with server.client() as client:
        assert client.get("/vnflcm/v2/vnf_instances").status_code == 200
    assert CANARY not in server.log.read_text().replace(FILE, "")


def test_it_sees_neither_environment_nor_database_nor_key_nor_token(server: Process, vnfd_id: str) -> None:
    names = ("slipway.db", "slipway.db-wal", "secrets.key", "token", "lock", "packages", "")
    paths = [str(server.data_dir / name) for name in names] + [f"/proc/{server.pid}/environ", "/etc/shadow"]
    with server.client() as client:
        operation, instance = attacked(client, vnfd_id, attack="look", paths=paths)
    assert operation["operationState"] == "COMPLETED", operation.get("error")
    answer = instance["metadata"]["answer"]
    assert answer["read"] == []
    assert set(answer["environment"]) <= {"PATH", "LANG", "HOME", "LC_CTYPE"}
    seen = json.dumps(answer).replace(FILE, "")
    for secret in (CANARY, (server.data_dir / "token").read_text().strip(), "SLIPWAY_"):
        assert secret not in seen
    assert_nothing_left(server)


def test_it_does_not_reach_the_servers_own_port(server: Process, vnfd_id: str) -> None:
    with server.client() as client:
        operation, instance = attacked(client, vnfd_id, attack="call", port=client.base_url.port)
    assert operation["operationState"] == "COMPLETED", operation.get("error")
    assert set(instance["metadata"]["answer"].values()) == {"ConnectionRefusedError"}
    assert_nothing_left(server)


def test_it_cannot_kill_its_parent_or_the_server(server: Process, vnfd_id: str) -> None:
    with server.client() as client:
        operation, instance = attacked(client, vnfd_id, attack="kill", server=server.pid)
    assert operation["operationState"] == "COMPLETED", operation.get("error")
    assert instance["metadata"]["answer"] == {"alive": True}
    assert_nothing_left(server)


def test_a_sleeper_that_left_its_session_is_dead_when_the_step_is_done(server: Process, vnfd_id: str) -> None:
    with server.client() as client:
        operation, instance = attacked(client, vnfd_id, attack="daemon")
    assert operation["operationState"] == "COMPLETED", operation.get("error")
    assert instance["metadata"]["answer"] == {"left": "a sleeper"}
    assert_nothing_left(server)


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        ("fork", f"timed out after {LIMIT} s"),
        ("sleep", f"timed out after {LIMIT} s"),
        ("flood", "printed more than 1 MiB on stdout"),
    ],
)
def test_what_goes_too_far_ends_with_a_clear_reason(server: Process, vnfd_id: str, attack: str, reason: str) -> None:
    with server.client() as client:
        operation, instance = attacked(client, vnfd_id, attack=attack)
    assert operation["operationState"] == "FAILED_TEMP"
    assert f"{FILE}, the script for instantiate_end, {reason}." in operation["error"]["detail"]
    assert "Cure: " in operation["error"]["detail"]
    assert "answer" not in instance.get("metadata", {})
    assert_nothing_left(server)
