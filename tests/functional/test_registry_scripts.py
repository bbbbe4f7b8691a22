"""Scripts of a registry's machine, on this host in a mount namespace of their own: engines, uploads, taken ports.

docker, podman and systemd are stand-ins that say what the real ones say; curl, tar and the sockets are real.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slipway.cluster.steps.setup import exports
from slipway.registry.steps.machine import SCRIPTS
from tests.functional.registry_rig import tar_of

NEEDED = ("unshare", "curl", "ss", "tar")
TOOLS = [*NEEDED, "sh", "cat", "chmod", "cp", "df", "find", "grep", "head", "id", "ls", "mkdir", "mktemp", "printf",
         "rm", "sed", "seq", "sleep", "stat", "tail", "timeout", "touch", "tr"]  # fmt: skip
UPLOAD = "37bc7248-b6b1-4c4f-8464-115a3a246d02"
UPLOADS = "/var/lib/slipway-registry/docker/registry/v2/repositories/tools/_uploads"
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, NEEDED)), reason=f"needs root and {', '.join(NEEDED)}"
)

WORLD = """
set -eu
mkdir -p "$1/world" "$1/bin"
mount -t tmpfs tmpfs "$1/world"
mkdir "$1/world/etc" "$1/world/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/world/etc,workdir=$1/world/work" /etc
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /run
mkdir -p /etc/slipway /etc/slipway-registry /var/lib/slipway/files /var/lib/slipway-registry
: >/etc/slipway/environment
stub() { printf '#!/bin/sh\\n%s\\n' "$2" >"$made/bin/$1"; chmod +x "$made/bin/$1"; }
run() { name=$1; shift; sh "$scripts/$name.sh" "$@"; }
made=$1
for name in $tools; do ln -s "$(command -v $name)" "$1/bin/$name"; done
export PATH="$1/bin"   # nothing else: an engine that this host has is none of the machine's
stub systemctl 'echo "systemctl $*" >>/run/asked; case $1 in is-active) [ -e "/run/active-${3:-$2}" ];; esac'
stub journalctl :
"""


def run(tmp_path: Path, what: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", WORLD + what, "sh", str(tmp_path), *arguments],
        env={"scripts": str(SCRIPTS), "tools": " ".join(TOOLS), "PATH": os.environ["PATH"]},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


class Registry(ThreadingHTTPServer):
    """One whose disk is full: it takes an upload, and fails when it should be written."""

    daemon_threads = True
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Registry

    def answer(self, status: int, **headers: str) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
        self.send_response(status)
        for name, value in {"Content-Length": "0", "Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True

    def do_HEAD(self) -> None:
        self.answer(404)

    def do_POST(self) -> None:
        self.answer(202, Location=f"/v2/tools/blobs/uploads/{UPLOAD}?_state=begun")

    def do_PUT(self) -> None:
        self.answer(500)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[Registry]:
    server = Registry(("127.0.0.1", 0), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_upload_that_fails_is_taken_back_so_that_a_full_disk_is_not_full_for_a_week(
    tmp_path: Path, registry: Registry
) -> None:
    layer = b"a layer"
    (tmp_path / "archive.tar").write_bytes(tar_of({"layer.tar": layer}))
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    done = run(
        tmp_path,
        'cp "$1/archive.tar" /var/lib/slipway/files/x.part; : >/var/lib/slipway/files/x.login\n'
        f'mkdir -p "{UPLOADS}/{UPLOAD}" "{UPLOADS}/of-another"; : >"{UPLOADS}/{UPLOAD}/data"\n'
        f'run push_blob x layer.tar tools "$2" "$3" || {{ ls "{UPLOADS}"; exit 1; }}',
        digest,
        f"http://127.0.0.1:{registry.server_address[1]}",
    )
    assert (done.returncode, done.stdout) == (1, "of-another\n")
    assert f"the registry refused {digest} with HTTP 500" in done.stderr
    assert "room on its disk:" in done.stderr
    assert registry.asked[-1] == f"PUT /v2/tools/blobs/uploads/{UPLOAD}?_state=begun&digest={digest}"


def test_a_port_that_another_program_has_is_told_with_its_name(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, 'run serve http "$2" /var/lib/slipway-registry; cat /run/asked', str(port))
    assert done.returncode == 1
    assert f"port {port} is taken: " in done.stderr
    assert "python" in done.stderr or "pytest" in done.stderr


@pytest.mark.parametrize(
    ("journal", "told"),
    [
        (
            "Trying to pull\\n"
            "Error: crun: setrlimit: Operation not permitted: OCI permission denied\\n"
            "2026-11-18 container create 1234 (image=one, name=slipway-registry)\\n"
            "2026-11-18 container died 1234 (image=one, name=slipway-registry)\\n"
            "2026-11-18 container remove 1234 (image=one, name=slipway-registry)\\n"
            "slipway-registry.service: Main process exited, code=exited, status=126/n/a\\n"
            "slipway-registry.service: Failed with result exit-code.\\n"
            "slipway-registry.service: Scheduled restart job, restart counter is at 3.\\n",
            "Error: crun: setrlimit: Operation not permitted: OCI permission denied",
        ),
        ('level=info msg="hello"\\nlevel=fatal msg="no such file"\\nStopped.\\nStarted.\\n', "no such file"),
        ("panic: open config.yml\\ngoroutine 1\\none\\ntwo\\nthree\\nfour\\n", "panic: open config.yml"),
        ("hello\\ngood bye\\n", "good bye"),
    ],
    ids=["podman", "registry", "panic", "none"],
)
def test_a_registry_that_does_not_start_is_told_with_its_own_error(tmp_path: Path, journal: str, told: str) -> None:
    """Not with what systemd and podman say after it, which is the same whatever went wrong."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    done = run(
        tmp_path,
        'rm "$made/bin/seq" "$made/bin/sleep"; stub seq "echo 1"; stub sleep :\n'
        'printf "$3" >/run/journal; stub journalctl "cat /run/journal"\n'
        'run serve http "$2" /var/lib/slipway-registry',
        str(port),
        journal,
    )
    assert done.returncode == 1
    assert f"the registry does not answer at port {port}: " in done.stderr
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert "container died" not in done.stderr


def test_docker_that_runs_is_taken_and_its_daemon_is_told_of_the_proxy(tmp_path: Path) -> None:
    (tmp_path / "environment").write_text(exports({"HTTP_PROXY": "http://me:hills$1@proxy:3128", "NO_PROXY": "a, b"}))
    done = run(
        tmp_path,
        'cp "$1/environment" /etc/slipway/environment; stub docker :; stub podman :; : >/run/active-docker\n'
        "run install_engine; cat /etc/slipway/docker-proxy /etc/systemd/system/docker.service.d/slipway-proxy.conf\n"
        "stat -c %a /etc/slipway/docker-proxy; cat /run/asked",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        'HTTP_PROXY="http://me:hills$1@proxy:3128"', 'HTTPS_PROXY=""', 'NO_PROXY="a, b"',
        "[Service]", "EnvironmentFile=/etc/slipway/docker-proxy", "600",
        "systemctl is-active --quiet docker", "systemctl daemon-reload", "systemctl restart docker",
    ]  # fmt: skip


def test_docker_without_a_proxy_is_left_as_it_is(tmp_path: Path) -> None:
    done = run(tmp_path, "stub docker :; : >/run/active-docker; run install_engine; cat /run/asked")
    assert (done.returncode, done.stdout) == (0, "systemctl is-active --quiet docker\n"), done.stderr


def test_docker_that_does_not_run_is_passed_over_for_podman(tmp_path: Path) -> None:
    done = run(tmp_path, 'stub docker "exit 1"; stub podman "echo one"; run install_image pull a/b:1 a/b:1')
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "bin" / "podman"), "one"]


@pytest.mark.parametrize(
    ("engine", "says"),
    [
        ("docker", "Loaded image: registry:latest"),
        ("docker", "Loaded image ID: sha256:0123"),
        ("podman", "Loaded image: docker.io/library/registry:latest"),
    ],
)
def test_the_image_of_an_archive_is_run_by_its_id(tmp_path: Path, engine: str, says: str) -> None:
    """docker prints ids with their algorithm, podman without."""
    prefix = "sha256:" if engine == "docker" else ""
    stub = f"case $1 in load) echo '{says}';; image) echo \"$5\" >>/run/inspected; echo {prefix}0123;; esac"
    done = run(
        tmp_path,
        f': >/run/active-{engine}; stub {engine} "$2"; : >/var/lib/slipway/files/x.part\n'
        "run install_image sent x Files/x.tar; cat /run/inspected; ls /var/lib/slipway/files",
        stub,
    )
    assert done.returncode == 0, done.stderr
    named = says.partition(": ")[2]
    assert done.stdout.splitlines() == [f"{tmp_path / 'bin' / engine} 0123", named]


def test_an_archive_that_the_engine_does_not_take_is_named_and_does_not_stay(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "stub podman 'echo \"payload does not match any of the supported image formats\" >&2; exit 125'\n"
        ": >/var/lib/slipway/files/x.part; run install_image sent x Files/x.tar || ls /var/lib/slipway/files",
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "payload does not match" in done.stderr
    assert f"Files/x.tar holds no image that {tmp_path}/bin/podman takes" in done.stderr


def test_what_was_half_installed_when_the_power_went_is_set_right_first(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "for name in dpkg apt-get; do stub $name 'echo \"${0##*/} $*\" >>/run/asked'; done\n"
        "run install_engine; grep -o '^dpkg.*\\|update.*\\|install .*' /run/asked",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "dpkg --configure -a",
        "update -o APT::Update::Error-Mode=any",
        "install --no-install-recommends podman crun",
    ]
