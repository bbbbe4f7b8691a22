"""clouds.yaml: where it is, and what of it a VIM wants to know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from slipway.cli.errors import CliError
from slipway.cli.os_cloud import clouds_file, info_of, read_cloud
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


def test_a_cloud_becomes_interface_and_access() -> None:
    assert info_of(LAB, "lab") == (
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


def test_an_application_credential_is_taken_as_it_is() -> None:
    auth = {"auth_url": "https://k", "application_credential_id": "i", "application_credential_secret": "s"}
    _, access = info_of({"auth_type": "v3applicationcredential", "auth": auth}, "lab")
    assert access == {"applicationCredentialId": "i", "applicationCredentialSecret": "s"}


def test_secrets_may_stand_in_a_file_beside_it(tmp_path: Path) -> None:
    without = {key: value for key, value in AUTH.items() if key != "password"}
    path = write(tmp_path / "clouds.yaml", lab={**LAB, "auth": without})
    write(tmp_path / "secure.yaml", lab={"auth": {"password": "from beside"}})
    _, access = read_cloud(path, "lab", read)
    assert (access["password"], access["username"]) == ("from beside", "me")


def test_the_first_of_the_usual_places_counts(tmp_path: Path) -> None:
    here, home, system = tmp_path / "here", tmp_path / "home", tmp_path / "etc"
    environment = {"HOME": str(home)}
    with pytest.raises(CliError, match=r"There is no clouds\.yaml.*here/clouds\.yaml.*--clouds-file"):
        clouds_file(None, environment, here, [system])
    for place in (system, home / ".config" / "openstack", here):
        written = write(place / "clouds.yaml", lab=LAB)
        assert clouds_file(None, environment, here, [system]) == written
    named = tmp_path / "named.yaml"
    assert clouds_file(None, {**environment, "OS_CLIENT_CONFIG_FILE": str(named)}, here) == named
    assert clouds_file(named, environment, here) == named


def test_certificates_are_believed_as_the_cloud_says(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("PEM")
    assert info_of({**LAB, "cacert": str(tmp_path / "ca.pem")}, "lab")[0]["ssl_ca_cert"] == "PEM"
    assert info_of({**LAB, "verify": False, "cacert": "/nowhere"}, "lab")[0] == {
        "endpoint": "https://keystone.example:5000",
        "skipCertificateVerification": True,
    }


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "has no auth"),
        ({"auth": {}}, "has no auth.auth_url"),
        ({"auth": {**AUTH, "password": 12345}}, r"auth\.password is no text; put it in quotes"),
        ({"auth": AUTH, "auth_type": "v3oidcpassword"}, "auth_type 'v3oidcpassword'; possible are: password"),
        ({"auth": AUTH, "verify": "/etc/ca.pem"}, "verify is true or false"),
        ({"auth": AUTH, "cacert": "/nowhere/ca.pem"}, "cacert: /nowhere/ca.pem can't be read: No such file"),
        ({"auth": AUTH, "cert": "c.pem"}, "client certificate"),
    ],
)
def test_what_can_not_be_used_is_named_and_not_repeated(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(CliError, match=words) as caught:
        info_of(entry, "lab")
    assert "12345" not in caught.value.detail
    assert "s3cret" not in caught.value.detail


def test_a_cloud_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    path = write(tmp_path / "clouds.yaml", one=LAB, two={"profile": "vendor"})
    with pytest.raises(CliError, match="has no cloud 'three'; it has: one, two"):
        read_cloud(path, "three", read)
    with pytest.raises(CliError, match="profile 'vendor'"):
        read_cloud(path, "two", read)


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
