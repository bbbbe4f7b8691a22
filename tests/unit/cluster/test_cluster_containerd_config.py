from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.cluster.containerd_config import (
    RegistryHost,
    containerd_toml,
    hosts_toml,
    registry_directory,
    registry_host,
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
        "host": {"http://192.168.0.10:5000": {"capabilities": ["pull", "resolve"]}},
    }
    told = tomllib.loads(hosts_toml(registry_host(secure)))["host"]["https://registry.example.com"]
    assert told["ca"] == "/etc/containerd/certs.d/registry.example.com/ca.crt"
    assert registry_directory("192.168.0.10:5000") == "/etc/containerd/certs.d/192.168.0.10:5000"


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "a\nb", ""])
def test_a_registrys_directory_is_never_elsewhere(name: str) -> None:
    with pytest.raises(Refusal):
        registry_directory(name)


@given(st.text())
def test_no_value_can_add_a_key(text: str) -> None:
    host = RegistryHost(server="a", url=text, certificate=text)
    assert tomllib.loads(hosts_toml(host)) == {
        "server": text,
        "host": {text: {"capabilities": ["pull", "resolve"], "ca": text}},
    }
