"""clouds.yaml: where it is, and what of it a VIM wants to know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.cli.errors import CliError
from slipway.cli.os_cloud import read_cloud
from slipway.cli.paths import VIMS
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, ScriptedServer

AUTH = {
    "auth_url": "https://keystone.example:5000",
    "username": "me",
    "password": "s3cret",
    "project_name": "demo",
    "user_domain_name": "Default",
    "project_domain_id": "default",
}
LAB: dict[str, Any] = {"auth": AUTH, "region_name": "RegionOne", "interface": "internal"}


def write(path: Path, **clouds: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"clouds": clouds}))
    return path


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def info_of(path: Path, entry: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return read_cloud(write(path / "clouds.yaml", lab=entry), "lab", read)


def test_a_cloud_becomes_interface_and_access(tmp_path: Path) -> None:
    assert info_of(tmp_path, LAB) == (
        {"endpoint": "https://keystone.example:5000"},
        {
            "username": "me",
            "password": "s3cret",
            "project": "demo",
            "userDomain": "Default",
            "projectDomainId": "default",
            "region": "RegionOne",
            "interface": "internal",
        },
    )


def test_old_names_and_one_domain_for_both_are_understood(tmp_path: Path) -> None:
    auth = {"auth_url": "https://k", "username": "me", "password": "s", "tenant_name": "demo", "domain_name": "here"}
    _, access = info_of(tmp_path, {"auth": auth, "regions": ["one", "two"]})
    assert access == {
        "username": "me",
        "password": "s",
        "project": "demo",
        "userDomain": "here",
        "projectDomain": "here",
        "region": "one",
    }


def test_an_application_credential_is_taken_as_it_is(tmp_path: Path) -> None:
    auth = {"auth_url": "https://k", "application_credential_id": "i", "application_credential_secret": "s"}
    _, access = info_of(tmp_path, {"auth_type": "v3applicationcredential", "auth": auth})
    assert access == {"applicationCredentialId": "i", "applicationCredentialSecret": "s"}


def test_secrets_may_stand_in_a_file_beside_it(tmp_path: Path) -> None:
    without = {key: value for key, value in AUTH.items() if key != "password"}
    path = write(tmp_path / "clouds.yaml", lab={**LAB, "auth": without})
    write(tmp_path / "secure.yaml", lab={"auth": {"password": "from beside"}})
    _, access = read_cloud(path, "lab", read)
    assert (access["password"], access["username"]) == ("from beside", "me")


def test_the_variables_of_an_openrc_file_are_a_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**AUTH, "region_name": "north", "identity_api_version": "3"}.items():
        monkeypatch.setenv(f"OS_{name.upper()}", value)
    interface, access = read_cloud(None, "envvars", read)
    assert interface == {"endpoint": "https://keystone.example:5000"}
    assert (access["username"], access["projectDomainId"], access["region"]) == ("me", "default", "north")


def test_a_file_may_be_named_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "named.yaml", lab=LAB)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    assert read_cloud(None, "lab", read)[1]["username"] == "me"
    other = write(tmp_path / "other.yaml", lab={**LAB, "region_name": "elsewhere"})
    assert read_cloud(other, "lab", read)[1]["region"] == "elsewhere"


def test_where_a_file_is_looked_for_is_said(slipway: Slipway, monkeypatch: pytest.MonkeyPatch) -> None:
    from openstack.config import loader

    monkeypatch.setattr(loader, "CONFIG_FILES", ["/nowhere/clouds.yaml"])
    result = slipway("vim", "add", "lab", "--os-cloud", "lab")
    assert result.exit_code == 1
    assert "There is no clouds.yaml. It is looked for at: /nowhere/clouds.yaml. Or" in " ".join(result.output.split())


def test_certificates_are_believed_as_the_cloud_says(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("PEM")
    assert info_of(tmp_path, {**LAB, "cacert": str(tmp_path / "ca.pem")})[0]["ssl_ca_cert"] == "PEM"
    for unsafe in ({"verify": False, "cacert": "/nowhere"}, {"insecure": True}):
        assert info_of(tmp_path, {**LAB, **unsafe})[0] == {
            "endpoint": "https://keystone.example:5000",
            "skipCertificateVerification": True,
        }


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, r"has no auth\.auth_url"),
        ({"auth": "s3cret"}, "auth wants auth_url, username"),
        ({"auth": {}}, r"has no auth\.auth_url"),
        ({"auth": {}, "profile": "unheard-of"}, "nor does its profile 'unheard-of' have one"),
        ({"auth": {**AUTH, "password": 12345}}, r"auth\.password must be a string; put it in quotes"),
        ({"auth": AUTH, "auth_type": "v3oidcpassword"}, "auth_type 'v3oidcpassword'; it must be one of: password"),
        ({"auth": AUTH, "verify": "/nowhere/ca.pem"}, "verify: /nowhere/ca.pem can't be read: No such file"),
        ({"auth": AUTH, "cacert": "/nowhere/ca.pem"}, "cacert or verify: /nowhere/ca.pem can't be read: No such file"),
        ({"auth": AUTH, "cert": "c.pem"}, "client certificate"),
    ],
)
def test_what_can_not_be_used_is_named_and_not_repeated(tmp_path: Path, entry: dict[str, Any], words: str) -> None:
    with pytest.raises(CliError, match=words) as caught:
        info_of(tmp_path, entry)
    assert "12345" not in caught.value.detail
    assert "s3cret" not in caught.value.detail


def test_a_cloud_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    path = write(tmp_path / "clouds.yaml", one=LAB, two=LAB)
    with pytest.raises(CliError, match="has no cloud 'three'; it has: one, two"):
        read_cloud(path, "three", read)


def test_a_cloud_is_added_by_its_name_alone(server: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    server.answer(f"POST {VIMS}", {"id": ID, "name": "lab", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}, 201)
    path = write(tmp_path / "clouds.yaml", lab=LAB)
    result = slipway("vim", "add", "lab", "--os-cloud", "lab", "--clouds-file", str(path), "--access", "region=two")
    assert result.exit_code == 0, result.output
    assert "s3cret" not in result.output
    (sent,) = server.sent(f"POST {VIMS}")
    assert sent["vimType"] == "ETSINFV.OPENSTACK_KEYSTONE.V_3"
    assert (sent["accessInfo"]["password"], sent["accessInfo"]["region"]) == ("s3cret", "two")


def test_a_file_that_is_no_yaml_is_not_repeated(slipway: Slipway, tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text("clouds:\n  lab:\n    password: *s3cret\n")
    result = slipway("vim", "add", "lab", "--os-cloud", "lab", "--clouds-file", str(path))
    assert result.exit_code == 2
    assert "line 3" in result.output
    assert "s3cret" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--os-cloud", "lab", "--kubeconfig", "k"),
        ("--os-cloud", "lab", "--type", "kubernetes"),
        ("--type", "openstack", "--clouds-file", "c"),
        ("--type", "kubernetes", "--context", "c"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: tuple[str, ...], server: ScriptedServer, slipway: Slipway
) -> None:
    assert slipway("vim", "add", "lab", *arguments).exit_code == 2
    assert not server.requests
