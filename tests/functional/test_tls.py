"""A real server with a certificate of its own, and one that wants to see others'."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy.engine import URL

from tests.databases import setting
from tests.functional.processes import SLIPWAY, Process, running
from tests.unit.outgoing.certificates import Authority

pytestmark = pytest.mark.sqlite_suffices

INSTANCES = "/vnflcm/v2/vnf_instances"


class Files:
    """The certificates of everybody who takes part."""

    def __init__(self, directory: Path) -> None:
        ours, theirs, strangers = Authority("ours"), Authority("of clients"), Authority("of strangers")
        server, client, stranger = ours.vouch_for("127.0.0.1"), theirs.vouch_for("ada"), strangers.vouch_for("eve")
        self._directory = directory
        self.ca = self._write("ca.pem", ours.certificate)
        self.client_ca = self._write("client-ca.pem", theirs.certificate)
        self.certificate = self._write("server.pem", server.certificate)
        self.key = self._write("server.key", server.key)
        self.client = self._write("client.pem", client.certificate + client.key)
        self.client_certificate = self._write("client.crt", client.certificate)
        self.client_key = self._write("client.key", client.key)
        self.stranger = self._write("stranger.pem", stranger.certificate + stranger.key)

    def _write(self, name: str, text: str) -> Path:
        path = self._directory / name
        path.write_text(text)
        path.chmod(0o600)
        return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(module_database_url: URL, files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    data = tmp_path_factory.mktemp("plain-tls")
    settings = {"database_url": setting(module_database_url), "tls_key": files.key}
    with running("serve", data, tls_certificate=files.certificate, **settings) as process:
        yield process


@pytest.fixture(scope="module")
def strict(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Lets nobody talk to it who shows no certificate."""
    data = tmp_path_factory.mktemp("client-tls")
    settings = {"tls_certificate": files.certificate, "tls_key": files.key, "tls_client_ca": files.client_ca}
    with running("serve", data, **settings) as process:
        yield process


def url_of(process: Process) -> str:
    return process.first_line.split(" ready at ")[1].split(" ")[0]


def ask(process: Process, ca: Path, shown: Path | None = None, token: bool = True) -> httpx.Response:
    context = ssl.create_default_context(cafile=ca)
    if shown:
        context.load_cert_chain(shown)
    headers = {"Version": "2.0.0"}
    if token:
        headers["X-Auth-Token"] = (process.data_dir / "token").read_text().strip()
    with httpx.Client(base_url=url_of(process), verify=context, headers=headers, trust_env=False, timeout=30) as client:
        return client.get(INSTANCES)


def test_a_server_with_a_certificate_speaks_https_and_says_so(server: Process, files: Files) -> None:
    assert url_of(server).startswith("https://127.0.0.1:")
    assert ask(server, files.ca).status_code == 200
    assert ask(server, files.ca, token=False).status_code == 401


def test_links_are_https(server: Process, files: Files) -> None:
    context = ssl.create_default_context(cafile=files.ca)
    headers = {"X-Auth-Token": (server.data_dir / "token").read_text().strip()}
    with httpx.Client(base_url=url_of(server), verify=context, headers=headers, trust_env=False) as client:
        made = client.post("/vnfpkgm/v1/vnf_packages", json={})
    assert made.headers["Location"].startswith(url_of(server))


def test_nobody_else_is_believed_to_be_the_server(server: Process, files: Files) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        ask(server, files.client_ca)


def test_plain_http_gets_no_answer(server: Process) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(url_of(server).replace("https:", "http:") + INSTANCES, trust_env=False)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_old_versions_of_tls_are_not_spoken(server: Process, files: Files) -> None:
    port = int(url_of(server).rpartition(":")[2])
    for version, spoken in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True)):
        context = ssl.create_default_context(cafile=files.ca)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
            if spoken:
                with context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
                    assert tls.version() == "TLSv1.2"
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_client_needs_a_certificate_of_the_ca_that_was_named(strict: Process, files: Files) -> None:
    assert ask(strict, files.ca, files.client).status_code == 200
    for shown in (None, files.stranger):
        with pytest.raises(httpx.TransportError):
            ask(strict, files.ca, shown)


def test_a_client_certificate_alone_is_nobody(strict: Process, files: Files) -> None:
    assert ask(strict, files.ca, files.client, token=False).status_code == 401


def command(process: Process, *args: str, code: int = 0, **environment: object) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY_")}
    said = {f"SLIPWAY_{name.upper()}": str(value) for name, value in environment.items()}
    where = ["--url", url_of(process), "--data-dir", str(process.data_dir)]
    done = subprocess.run(
        [SLIPWAY, "vnf", "list", *where, *args],
        env=inherited | said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def test_the_command_line_believes_the_ca_it_is_told(server: Process, files: Files) -> None:
    command(server, "--ca-file", str(files.ca))
    command(server, ca_file=files.ca)
    assert "--ca-file" in command(server, code=3).stderr
    assert "no file" in command(server, "--ca-file", "/nowhere.pem", code=1).stderr
    assert "holds no certificate" in command(server, "--ca-file", str(files.key), code=1).stderr


def test_the_command_line_shows_its_certificate(strict: Process, files: Files) -> None:
    command(strict, "--client-cert", str(files.client), ca_file=files.ca)
    command(strict, client_cert=files.client_certificate, client_key=files.client_key, ca_file=files.ca)
    assert "--client-cert" in command(strict, code=3, ca_file=files.ca).stderr
    wrong = command(strict, code=1, client_cert=files.client_certificate, client_key=files.key, ca_file=files.ca)
    assert "does not go with its key" in wrong.stderr
    assert "goes with --client-cert" in command(strict, code=1, client_key=files.key, ca_file=files.ca).stderr


def test_a_key_that_does_not_fit_stops_the_start(files: Files, tmp_path: Path) -> None:
    settings = {"tls_certificate": files.certificate, "tls_key": files.client_key}
    with pytest.raises(AssertionError, match="do not belong together"), running("serve", tmp_path, **settings):
        pass
    assert not (tmp_path / "slipway.db").exists()
