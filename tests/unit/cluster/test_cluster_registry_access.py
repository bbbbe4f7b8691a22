"""What curl and containerd say of a registry, in the words of an error."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from slipway.cluster.parameters import REGISTRIES, RegistryParameters
from slipway.cluster.registry_access import (
    NoAccess,
    RegistryResponse,
    Trouble,
    check_answer,
    curl_config,
    pull_failed,
    read_answer,
    token_of,
)
from slipway.cluster.schema import read
from slipway.remote.output import Result

NODE = "workerNode-1"


def registry(**more: Any) -> RegistryParameters:
    given = {"connection_type": 1, "server": "registry.example.com:5000", **more}
    return read(RegistryParameters, given, REGISTRIES)


@pytest.mark.parametrize(
    ("code", "said", "trouble", "temporary"),
    [
        (6, "Could not resolve host: registry.example.com", Trouble.NAME, True),
        (7, "Failed to connect", Trouble.CONNECTION, True),
        (28, "Operation timed out", Trouble.CONNECTION, True),
        (35, "OpenSSL SSL_connect: Connection reset by peer", Trouble.TLS, True),
        (35, "error:0A00010B:SSL routines::wrong version number", Trouble.TLS, False),
        (60, "SSL certificate problem: certificate has expired", Trouble.TLS, False),
    ],
)
def test_what_curl_says(code: int, said: str, trouble: Trouble, temporary: bool) -> None:
    with pytest.raises(NoAccess) as caught:
        read_answer(registry(), NODE, Result(code, b"", f"curl: ({code}) {said}\nMore details here\n".encode()))
    assert caught.value.trouble is trouble
    assert caught.value.temporary is temporary
    assert caught.value.detail.startswith(f"{NODE} can't use the registry registry.example.com:5000 ({trouble}): ")
    assert said in caught.value.detail


@pytest.mark.parametrize(
    ("answer", "trouble", "temporary"),
    [
        (RegistryResponse(401, 'Basic realm="x"'), Trouble.LOGIN, False),
        (RegistryResponse(403), Trouble.LOGIN, False),
        (RegistryResponse(400, body="Client sent an HTTP request to an HTTPS server."), Trouble.TLS, False),
        (RegistryResponse(502), Trouble.CONNECTION, True),
        (RegistryResponse(404), Trouble.CONNECTION, False),
        (RegistryResponse(401, 'Bearer realm="file:///etc/passwd"'), Trouble.LOGIN, False),
        (RegistryResponse(401, 'Bearer realm="https://elsewhere.example:none/token"'), Trouble.LOGIN, False),
        (RegistryResponse(401, 'Bearer realm="https://[elsewhere.example/token"'), Trouble.LOGIN, False),
        (RegistryResponse(401, 'Bearer realm="http://elsewhere.example"'), Trouble.TLS, False),
    ],
)
def test_what_a_registry_answers(answer: RegistryResponse, trouble: Trouble, temporary: bool) -> None:
    with pytest.raises(NoAccess) as caught:
        check_answer(registry(username="me", password="x"), NODE, answer)
    assert caught.value.trouble is trouble
    assert caught.value.temporary is temporary


def test_a_registry_that_gives_out_tokens_is_asked_for_one() -> None:
    one = registry(username="me", password="x", image="team/app:1")
    url = check_answer(
        one, NODE, RegistryResponse(401, 'Bearer realm="https://auth.example/token",service="the registry"')
    )
    assert url == "https://auth.example/token?service=the%20registry&scope=repository%3Ateam%2Fapp%3Apull"
    assert token_of(one, NODE, 200, {"token": "abc.def"}) == "abc.def"
    for status, given in ((200, {"token": 'a"\nb'}), (200, []), (401, None), (503, None)):
        with pytest.raises(NoAccess) as caught:
            token_of(one, NODE, status, given)
        assert caught.value.trouble is Trouble.LOGIN


@pytest.mark.parametrize(
    ("server", "url", "port"),
    [
        ("registry.example.com:5050", "https://registry.example.com:5050/v2/", "5050"),
        ("registry.example.com:5050", "https://registry.example.com/jwt/auth?service=registry", "443"),
        ("registry.example.com:5050", "https://registry.example.com:8443/token", "8443"),
        ("[fd00::5]", "https://[fd00::5]/v2/", "443"),
    ],
)
def test_a_name_of_hosts_string_is_known_at_the_port_that_is_asked(server: str, url: str, port: str) -> None:
    """Also where tokens are given, for /etc/hosts has no word of it before the registry was asked."""
    one = registry(server=server, hosts_string="10.0.0.5 registry.example.com")
    config = curl_config(url, one, None, {}, login=True)
    assert f'resolve = "registry.example.com:{port}:10.0.0.5"' in config.splitlines()


def test_headers_of_a_proxy_and_of_a_pause_come_before_the_answer() -> None:
    printed = b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 401 No\r\nWWW-Authenticate: Basic x\r\n\r\n{}"
    assert read_answer(registry(), NODE, Result(0, printed, b"")) == RegistryResponse(401, "Basic x", "{}")


@pytest.mark.parametrize(
    ("said", "trouble", "temporary"),
    [
        ("failed to resolve reference: registry.example.com:5000/tls/x509:1: not found", Trouble.IMAGE, False),
        (
            "failed to do request: dial tcp: lookup registry.example.com on 10.0.0.1:53: no such host",
            Trouble.NAME,
            True,
        ),
        ("failed to do request: x509: certificate signed by unknown authority", Trouble.TLS, False),
        ("failed to do request: net/http: TLS handshake timeout", Trouble.TLS, True),
        ("unexpected status: 401 Unauthorized", Trouble.LOGIN, False),
        ("dial tcp 10.0.0.9:5000: connect: connection refused", Trouble.CONNECTION, True),
        ("no match for platform in manifest: not found", Trouble.IMAGE, False),
        (
            'level=info msg="trying next host" error="x509: unknown authority" | ctr: failed: not found',
            Trouble.IMAGE,
            False,
        ),
        ("cannot access socket /run/containerd/containerd.sock", Trouble.CONNECTION, False),
    ],
)
def test_what_containerd_says_of_a_pull(said: str, trouble: Trouble, temporary: bool) -> None:
    error = pull_failed(registry(), NODE, "registry.example.com:5000/tls/x509:1", said)
    assert (error.trouble, error.temporary) == (trouble, temporary)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_curl_reads_every_password_as_it_is(tmp_path: Path) -> None:
    password = "q\" b\\ d$ 'x' # % \\n ü"
    config = curl_config("http://127.0.0.1:9/v2/", registry(username="me", password=password), None, {}, login=True)
    done = subprocess.run(
        ["curl", "-q", "--config", "-", "--libcurl", "-"], input=config, capture_output=True, text=True, check=False
    )
    found = re.search(r"CURLOPT_USERPWD, (\".*\")\);", done.stdout)
    assert found, done.stdout + done.stderr
    assert "q\\\" b\\\\ d$ 'x' # % \\\\n" in found[1]
