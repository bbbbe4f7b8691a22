from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.cluster.containerd_config import (
    RegistryHost,
    as_toml,
    containerd_toml,
    hosts_toml,
    registry_directory,
    registry_host,
)
from slipway.cluster.parameters import NAME, read_parameters
from slipway.cluster.reading import Refusal
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


VALUES = st.text() | st.integers(-(2**31), 2**31) | st.booleans() | st.lists(st.text(), max_size=3)
TABLES = st.recursive(
    st.dictionaries(st.text(), VALUES, max_size=4),
    lambda inner: st.dictionaries(st.text(), VALUES | inner, max_size=4),
    max_leaves=8,
)


@settings(deadline=None)
@given(TABLES)
def test_no_value_can_add_a_key(table: dict[str, object]) -> None:
    try:
        text = as_toml(table)
    except ValueError:
        return
    assert tomllib.loads(text) == _without_empty(table)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_printable_text_comes_back_as_it_was(text: str) -> None:
    host = RegistryHost(server="a", url=text, certificate=text)
    assert tomllib.loads(hosts_toml(host)) == {
        "server": text,
        "host": {text: {"capabilities": ["pull", "resolve"], "ca": text}},
    }


def _without_empty(table: dict[str, object]) -> dict[str, object]:
    """A table without any value leaves no trace in the text."""
    pruned = {key: _without_empty(value) if isinstance(value, dict) else value for key, value in table.items()}
    return {key: value for key, value in pruned.items() if value != {}}
