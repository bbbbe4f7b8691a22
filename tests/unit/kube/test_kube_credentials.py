from __future__ import annotations

import base64
import os
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.kube.credentials import Credentials, from_kubeconfig, tls
from slipway.model.errors import StepError
from tests.unit.kube.pem import CA, CERTIFICATE, ENCRYPTED_KEY, KEY, OTHER_KEY, SLOW_KEY

OLDER_KEY = (
    "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\n"
    "AAAA\n-----END EC PRIVATE KEY-----\n"
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def kubeconfig(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **changes: Any) -> str:
    """As kubeadm writes one, with changes; None leaves a key out."""
    given = {"server": "https://10.0.0.1:6443", "certificate-authority-data": encoded(CA), **(cluster or {})}
    keys = {"client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(KEY), **(user or {})}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "kubernetes", "cluster": {key: value for key, value in given.items() if value is not None}}
        ],
        "contexts": [{"name": "admin", "context": {"cluster": "kubernetes", "user": "admin"}}],
        "current-context": "admin",
        "users": [{"name": "admin", "user": {key: value for key, value in keys.items() if value is not None}}],
        **changes,
    }
    return yaml.safe_dump(config)


def test_an_admin_conf_is_read() -> None:
    credentials = from_kubeconfig(kubeconfig())
    assert credentials == Credentials("https://10.0.0.1:6443", CA, CERTIFICATE, KEY)


def test_a_token_and_a_server_name_are_read() -> None:
    given = {"client-certificate-data": None, "client-key-data": None, "token": "t0ken"}
    credentials = from_kubeconfig(kubeconfig({"tls-server-name": "kubernetes"}, given))
    assert (credentials.token, credentials.server_name) == ("t0ken", "kubernetes")


def test_no_secret_is_in_any_text_of_credentials() -> None:
    credentials = Credentials("https://k", CA, CERTIFICATE, KEY, token="canary-token")
    assert repr(credentials) == "Credentials(server='https://k', server_name=None)"


HOSTILE = {
    "no YAML": "{",
    "another file": "just text",
    "no entries": "{}",
    "an alias bomb": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join(['*a'] * 9)}]\n" for n in range(9)),
    "Python": "!!python/object/apply:os.system [id]",
    "too much": "a: " + "x" * 2_000_000,
    "no current context": kubeconfig().replace("current-context: admin", "current-context: other"),
    "lists that are none": kubeconfig(clusters="canary", users=7),
    "entries that are none": kubeconfig(users=["canary", None, {"name": "admin", "user": "canary"}]),
    "a program": kubeconfig(user={"exec": {"command": "/bin/sh", "args": ["-c", "canary"]}}),
    "a plugin": kubeconfig(user={"auth-provider": {"name": "canary"}}),
    "a key file": kubeconfig(user={"client-key": "/etc/shadow"}),
    "a token file": kubeconfig(user={"tokenFile": "/etc/shadow"}),
    "a CA file": kubeconfig({"certificate-authority": "/etc/shadow"}),
    "no check": kubeconfig({"insecure-skip-tls-verify": True}),
    "a proxy": kubeconfig({"proxy-url": "http://canary"}),
    "no CA": kubeconfig({"certificate-authority-data": None}),
    "no credentials": kubeconfig(user={"client-key-data": None}),
    "no base64": kubeconfig(user={"client-key-data": "canary!"}),
    "a number": kubeconfig(user={"token": 7}),
    "no text in it": kubeconfig({"certificate-authority-data": base64.b64encode(b"\xff").decode()}),
    "plain HTTP": kubeconfig({"server": "http://10.0.0.1"}),
    "a file as server": kubeconfig({"server": "file:///etc/shadow"}),
    "a password in the URL": kubeconfig({"server": "https://canary:canary@10.0.0.1"}),
    "no port": kubeconfig({"server": "https://10.0.0.1:canary"}),
    "no server": kubeconfig({"server": None}),
    "a host that is no name": kubeconfig({"server": "https://xn--ü-canary:6443"}),
    "half a character": kubeconfig({"server": "https://canary\ud800:6443"}),
    "a path that can't be sent": kubeconfig({"server": "https://10.0.0.1/canary\x7f"}),
    "a fragment": kubeconfig({"server": "https://10.0.0.1/#canary"}),
    "no name of a certificate": kubeconfig({"tls-server-name": ".canary"}),
    "a name of nothing": kubeconfig({"tls-server-name": "canary" * 50}),
    "a header in the token": kubeconfig(user={"token": "a\r\nX-Canary: 1"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_kubeconfig_that_can_not_be_used_has_a_cure_and_is_not_repeated(name: str) -> None:
    with pytest.raises(StepError, match=r"Cure: ") as caught:
        from_kubeconfig(HOSTILE[name])
    assert "canary" not in caught.value.detail.lower()
    assert len(caught.value.detail) < 300
    assert not caught.value.temporary


def test_a_client_certificate_leaves_no_file_and_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    context = tls(from_kubeconfig(kubeconfig()))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert not list(tmp_path.iterdir())
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize("key", [OTHER_KEY, "nonsense"], ids=["another", "none"])
def test_a_key_that_does_not_fit_has_a_cure_and_is_not_shown(key: str) -> None:
    with pytest.raises(StepError, match=r"does not go with its key\. Cure: ") as caught:
        tls(Credentials("https://k", CA, CERTIFICATE, key))
    assert key not in caught.value.detail


@pytest.mark.parametrize(
    "ca", ["", "nonsense", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "\u1234"]
)
def test_a_ca_that_is_none_has_a_cure(ca: str) -> None:
    with pytest.raises(StepError, match=r"CA of the Kubernetes API can't be read\. Cure: "):
        tls(Credentials("https://k", ca, token="t"))


@pytest.mark.parametrize("key", [ENCRYPTED_KEY, SLOW_KEY, OLDER_KEY], ids=["locked", "slow", "older format"])
def test_an_encrypted_key_is_refused_before_its_passphrase_is_tried(key: str) -> None:
    """How long a passphrase takes is what the key says: minutes, in which the server would answer nobody."""
    began = time.process_time()
    with pytest.raises(
        StepError, match=r"client_key: .* encrypted\. Cure: give the key without a passphrase"
    ) as caught:
        tls(Credentials("https://k", CA, CERTIFICATE, key))
    assert time.process_time() - began < 1
    assert key not in caught.value.detail


def test_no_more_certificates_are_read_than_anybody_needs() -> None:
    for ca, why in ((CA * 101, "more than 100 certificates"), (CA + "#" * 65536, "larger than 64 KiB")):
        with pytest.raises(StepError, match=f"CA of the Kubernetes API .*{why}"):
            tls(Credentials("https://k", ca, token="t"))
        with pytest.raises(StepError, match=f"client_certificate, client_key: .*{why}"):
            tls(Credentials("https://k", CA, ca, OTHER_KEY))
