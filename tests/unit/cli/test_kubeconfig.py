"""A kubeconfig: which context, which files, and what of it a server can't use."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from slipway.cli.errors import CliError
from slipway.cli.kubeconfig import read_kubeconfig
from slipway.cli.paths import INSTANCES, VIMS
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, ScriptedServer

HERE = Path("/lab/config")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "current-context": "admin@lab",
        "contexts": [
            {"name": "admin@lab", "context": {"cluster": "lab", "user": "admin"}},
            {"name": "dev@lab", "context": {"cluster": "lab", "user": "dev", "namespace": "mine"}},
            {"name": "gone", "context": {"cluster": "lab", "user": "nobody"}},
        ],
        "clusters": [
            {
                "name": "lab",
                "cluster": {"server": "https://k:6443", "certificate-authority-data": encoded("CA"), **(cluster or {})},
            }
        ],
        "users": [
            {
                "name": "admin",
                "user": {"client-certificate-data": encoded("CERT"), "client-key-data": encoded("KEY")}
                if user is None
                else user,
            },
            {"name": "dev", "user": {"token": "s3cret"}},
        ],
    }


def test_the_current_context_is_read() -> None:
    assert read_kubeconfig(config(), None, HERE) == (
        {"endpoint": "https://k:6443", "ssl_ca_cert": "CA"},
        {"client_certificate": "CERT", "client_key": "KEY"},
    )


def test_another_context_is_read_by_its_name() -> None:
    _, access = read_kubeconfig(config(), "dev@lab", HERE)
    assert access == {"bearer_token": "s3cret", "namespace": "mine"}


def test_files_are_beside_the_file_that_names_them(tmp_path: Path) -> None:
    for name in ("ca.crt", "me.crt", "me.key", "token"):
        (tmp_path / name).write_text(f"{name}\n")
    cluster = {"certificate-authority-data": None, "certificate-authority": "ca.crt"}
    user = {"client-certificate": str(tmp_path / "me.crt"), "client-key": "me.key"}
    interface, access = read_kubeconfig(config(cluster, user), None, tmp_path / "config")
    assert interface["ssl_ca_cert"] == "ca.crt\n"
    assert access == {"client_certificate": "me.crt\n", "client_key": "me.key\n"}
    assert read_kubeconfig(config(user={"tokenFile": "token"}), None, tmp_path / "config")[1] == {
        "bearer_token": "token"
    }


def test_how_the_server_is_known_is_taken_over() -> None:
    interface, _ = read_kubeconfig(config({"tls-server-name": "kubernetes"}), None, HERE)
    assert interface["tls_server_name"] == "kubernetes"
    interface, _ = read_kubeconfig(config({"insecure-skip-tls-verify": True}), None, HERE)
    assert interface == {"endpoint": "https://k:6443", "skipCertificateVerification": True}


def test_a_password_is_taken_where_there_is_no_token() -> None:
    user = {"username": "me", "password": "s3cret"}
    assert read_kubeconfig(config(user=user), None, HERE)[1] == user
    assert read_kubeconfig(config(user={**user, "token": "t"}), None, HERE)[1] == {"bearer_token": "t"}


@pytest.mark.parametrize(
    ("document", "context", "words"),
    [
        ({}, None, "has no current context; choose one by --context: none"),
        (config(), "prod", "has no context 'prod'; it has: admin@lab, dev@lab, gone"),
        (config(), "gone", "its user 'nobody' is not there"),
        (config(user={"exec": {"command": "aws", "args": ["s3cret"]}}), None, r"\(exec\).*kubectl create token"),
        (config(user={"auth-provider": {"name": "gcp"}}), None, "auth-provider"),
        (config(user={}), None, "no token, no client certificate"),
        (config(user={"token": 7}), None, "token must be a string"),
        (config(user={"client-certificate-data": "s3cret!"}), None, "no base64 of PEM in client-certificate-data"),
        (config(user={"tokenFile": "nowhere"}), None, "tokenFile /lab/nowhere can't be read: No such file"),
        (config({"proxy-url": "http://p"}), None, "proxy-url"),
        (config({"server": None}), None, "has no server"),
        (config({"certificate-authority-data": None, "certificate-authority": "ca"}), None, "/lab/ca can't be read"),
    ],
)
def test_what_can_not_be_used_is_named_and_not_repeated(
    document: dict[str, Any], context: str | None, words: str
) -> None:
    with pytest.raises(CliError, match=words) as caught:
        read_kubeconfig(document, context, HERE)
    assert "s3cret" not in caught.value.detail


def test_a_cluster_is_added_by_its_kubeconfig(server: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    server.answer(f"POST {VIMS}", {"id": ID, "name": "k", "vimType": "ETSINFV.KUBERNETES.V_1"}, 201)
    (tmp_path / "config").write_text(yaml.safe_dump(config()))
    result = slipway("vim", "add", "k", "--kubeconfig", str(tmp_path / "config"), "--context", "dev@lab")
    assert result.exit_code == 0, result.output
    assert "s3cret" not in result.output
    assert server.sent(f"POST {VIMS}") == [
        {
            "name": "k",
            "vimType": "ETSINFV.KUBERNETES.V_1",
            "interfaceInfo": {"endpoint": "https://k:6443", "ssl_ca_cert": "CA"},
            "accessInfo": {"bearer_token": "s3cret", "namespace": "mine"},
        }
    ]


def test_a_fetched_one_is_written_with_the_time_it_is_valid(
    server: ScriptedServer, slipway: Slipway, tmp_path: Path
) -> None:
    server.answer(f"GET {INSTANCES}/{ID}", {"id": ID, "vnfInstanceName": "mycluster"})
    told = {"kubeconfig": "users: [s3cret]\n", "expires": "2026-11-17T11:52:00Z"}
    server.answer(f"GET /slipway/v1/clusters/{ID}/kubeconfig", told)
    target = tmp_path / "own"
    result = slipway("vnf", "kubeconfig", ID, "--to", str(target), "--hours", "2")
    assert result.exit_code == 0, result.output
    assert server.requests[-1].url.params == httpx.QueryParams(lifetime_seconds="7200")
    assert "valid until 2026-11-17T11:52:00Z" in result.output
    assert "s3cret" not in result.output
    assert target.read_text() == told["kubeconfig"]
    assert target.stat().st_mode & 0o077 == 0
    assert slipway("vnf", "kubeconfig", ID, "--hours", "169").exit_code == 2
