"""What a node's curl says of a registry's certificate, by real TLS: the error tells what is wrong with it."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from slipway.cluster.parameters import RegistryParameters
from slipway.cluster.registry_access import NoAccess, Trouble, check_answer, curl_config, read_answer
from slipway.registry.certificates import Authority, make_authority, make_server_certificate
from slipway.remote.output import Result

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")

NODE = "workerNode-0"
OURS, THEIRS = make_authority("ours"), make_authority("theirs")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(directory: Path, certificate: str, key: str) -> Iterator[int]:
    (directory / "server.pem").write_text(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def expired(authority: Authority) -> tuple[str, str]:
    """As one that was made for the machine two years ago."""
    pem, key = make_server_certificate(authority, ["127.0.0.1"])
    made = x509.load_pem_x509_certificate(pem.encode())
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(made.subject)
        .issuer_name(issuer.subject)
        .public_key(made.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now - timedelta(days=1))
    )
    for extension in made.extensions:
        builder = builder.add_extension(extension.value, critical=extension.critical)
    issuer_key = serialization.load_pem_private_key(authority.private_key.encode(), None)
    signed = builder.sign(issuer_key, hashes.SHA256())  # type: ignore[arg-type]
    return signed.public_bytes(serialization.Encoding.PEM).decode(), key


def ask(directory: Path, port: int, authority: Authority, host: str = "127.0.0.1") -> None:
    (directory / "ca.crt").write_text(authority.certificate)
    registry = RegistryParameters(connection_type=1, server=f"{host}:{port}", certificate_path="Files/ca.crt",
                                  hosts_string=f"127.0.0.1 {host}" if host != "127.0.0.1" else None)  # fmt: skip
    config = curl_config(f"https://{registry.server}/v2/", registry, str(directory / "ca.crt"), {}, login=True)
    done = subprocess.run(["curl", "-q", "--config", "-"], input=config.encode(), capture_output=True, check=False)
    result = Result(done.returncode, done.stdout, done.stderr)
    assert check_answer(registry, NODE, read_answer(registry, NODE, result)) is None


def test_a_good_one_is_taken(tmp_path: Path) -> None:
    with serving(tmp_path, *make_server_certificate(OURS, ["127.0.0.1", "registry.example.com"])) as port:
        ask(tmp_path, port, OURS)
        ask(tmp_path, port, OURS, "registry.example.com")


@pytest.mark.parametrize(
    ("certificate", "authority", "said"),
    [
        (expired(OURS), OURS, "expired"),
        (make_server_certificate(OURS, ["127.0.0.1"]), THEIRS, "certificate"),
        (make_server_certificate(OURS, ["10.0.0.9"]), OURS, "127.0.0.1"),
    ],
    ids=["expired", "another CA", "another name"],
)
def test_a_bad_one_is_told_as_tls_and_is_for_a_person(
    tmp_path: Path, certificate: tuple[str, str], authority: Authority, said: str
) -> None:
    with serving(tmp_path, *certificate) as port, pytest.raises(NoAccess) as caught:
        ask(tmp_path, port, authority)
    assert (caught.value.trouble, caught.value.temporary) == (Trouble.TLS, False)
    assert f"{NODE} can't use the registry 127.0.0.1:{port} (TLS)" in caught.value.detail
    assert said in caught.value.detail
