from __future__ import annotations

import tomllib

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from slipway.cluster.containerd_config import (
    ForeignConfiguration,
    RegistryHost,
    RegistryLogin,
    containerd_toml,
    hosts_toml,
    registry_directory,
    registry_host,
    with_logins,
)
from slipway.cluster.parameters import NAME, read_parameters
from slipway.cluster.schema import Refusal
from tests.unit.cluster.documents import REGISTRIES


def test_containerd_of_either_version() -> None:
    old = tomllib.loads(containerd_toml("3.10", "registry.example.com"))
    cri = old["plugins"]["io.containerd.grpc.v1.cri"]
    assert old["version"] == 2
    assert cri["sandbox_image"] == "registry.example.com/pause:3.10"
    assert cri["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": True}
    assert cri["registry"]["config_path"] == "/etc/containerd/certs.d"
    new = tomllib.loads(containerd_toml("3.10.1", config_version=3))
    plugins = new["plugins"]
    assert new["version"] == 3
    assert plugins["io.containerd.cri.v1.images"]["pinned_images"] == {"sandbox": "registry.k8s.io/pause:3.10.1"}
    assert plugins["io.containerd.cri.v1.images"]["registry"]["config_path"] == "/etc/containerd/certs.d"
    runtimes = plugins["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]
    assert runtimes["runc"]["options"] == {"SystemdCgroup": True}


def test_registries_of_the_documents() -> None:
    plain, secure = read_parameters({NAME: REGISTRIES}).private_registry_connection_info
    assert tomllib.loads(hosts_toml(registry_host(plain))) == {
        "server": "http://192.168.0.10:5000",
        "capabilities": ["pull", "resolve"],
        "host": {},
    }
    told = tomllib.loads(hosts_toml(registry_host(secure)))
    assert told["ca"] == "/etc/containerd/certs.d/registry.example.com/ca.crt"
    assert registry_directory("192.168.0.10:5000") == "/etc/containerd/certs.d/192.168.0.10:5000"


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "a\nb", ""])
def test_a_registrys_directory_is_never_elsewhere(name: str) -> None:
    with pytest.raises(Refusal):
        registry_directory(name)


@given(st.text())
def test_no_value_can_add_a_key(text: str) -> None:
    host = RegistryHost(server="a", url=text, certificate=text)
    assert tomllib.loads(hosts_toml(host, text)) == {
        "server": text,
        "capabilities": ["pull", "resolve"],
        "ca": text,
        "header": {"Authorization": text},
        "host": {},
    }


def test_what_a_script_wrote_stays_when_logins_come_and_go() -> None:
    own = 'version = 2\nroot = "/data"\n[plugins."io.containerd.grpc.v1.cri"]\nsandbox_image = "p:1"\n'
    login = {"a:5000": RegistryLogin("me", 'x"\\')}
    told = tomllib.loads(with_logins(own, login, ()))
    assert told["root"] == "/data"
    cri = told["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["sandbox_image"] == "p:1"
    assert cri["registry"]["config_path"] == "/etc/containerd/certs.d"
    assert cri["registry"]["configs"]["a:5000"]["auth"]["password"] == 'x"\\'
    gone = tomllib.loads(with_logins(tomli_w.dumps(told), {}, ["a:5000"]))
    assert "configs" not in gone["plugins"]["io.containerd.grpc.v1.cri"]["registry"]


@pytest.mark.parametrize("version", [3, 4])
def test_the_newer_versions_have_logins_at_the_images_plugin(version: int) -> None:
    told = tomllib.loads(with_logins(f"version = {version}\n", {"a": RegistryLogin("me", "x")}, ()))
    assert told["version"] == version
    assert told["plugins"]["io.containerd.cri.v1.images"]["registry"]["configs"]["a"]["auth"]["username"] == "me"


def test_nothing_is_written_when_nothing_changes() -> None:
    """Whatever the file looks like: containerd would be restarted for it."""
    text = with_logins("# a comment\nversion = 3\n", {"a": RegistryLogin("me", "x")}, ())
    assert with_logins(f"# ours\n{text}", {"a": RegistryLogin("me", "x")}, ["a"]) == f"# ours\n{text}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("version = 1\n", "version"),
        ("not toml", "not TOML"),
        ('version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.mirrors.x]\n', "mirrors"),
        ('version = 2\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "/else"\n', "/else"),
        ("version = 2\nplugins = 1\n", "no table"),
    ],
)
def test_a_configuration_that_can_not_hold_registries_says_why(text: str, why: str) -> None:
    with pytest.raises(ForeignConfiguration, match=why):
        with_logins(text, {"a": RegistryLogin("me", "x")}, ())
