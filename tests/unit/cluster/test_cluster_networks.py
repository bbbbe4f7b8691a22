from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.cluster.networks import chosen_networks, network_problems, no_proxy, node_prefix
from slipway.cluster.parameters import MasterParameters
from slipway.cluster.values import Secret


def masters(pods: str | None = None, services: str | None = None) -> MasterParameters:
    return MasterParameters(
        ssh_cp_name="cp", username="root", password=Secret("x"), pod_cidr=pods, cluster_cidr=services
    )


@pytest.mark.parametrize(
    ("nodes", "pods", "services"),
    [
        (None, "192.168.0.0/16", "10.96.0.0/12"),
        ("10.10.0.0/24", "192.168.0.0/16", "10.96.0.0/12"),
        ("192.168.10.0/24", "10.244.0.0/16", "10.96.0.0/12"),
        ("10.0.0.0/8", "192.168.0.0/16", "172.28.0.0/14"),
        ("fd00:10:10::/64", "fd00:10:244::/56", "fd00:10:96::/112"),
    ],
)
def test_networks_that_a_request_leaves_open_keep_clear_of_the_nodes(
    nodes: str | None, pods: str, services: str
) -> None:
    chosen = chosen_networks(masters(), nodes, 10)
    assert (chosen.pods, chosen.services) == (pods, services)
    assert list(network_problems(chosen, 10)) == []


def test_defaults_keep_clear_of_what_is_given() -> None:
    assert chosen_networks(masters(services="192.168.0.0/20"), None, 3).pods == "10.244.0.0/16"
    assert chosen_networks(masters(pods="10.0.0.0/8"), None, 3).services == "172.28.0.0/14"


@pytest.mark.parametrize(
    ("pods", "nodes", "prefix"),
    [
        ("192.168.0.0/16", 5, 24),
        ("192.168.0.0/16", 300, 25),
        ("192.168.3.0/24", 1, 24),
        ("192.168.3.0/24", 7, 27),
        ("10.0.0.0/8", 5, 24),
        ("0.0.0.0/4", 5, 20),
        ("fd00::/56", 5, 64),
        ("fd00::/40", 5, 56),
        ("fd00::/112", 5, 115),
    ],
)
def test_every_node_gets_a_part_of_the_pods_network(pods: str, nodes: int, prefix: int) -> None:
    assert node_prefix(ipaddress.ip_network(pods), nodes) == prefix


def test_a_small_part_limits_the_pods_of_a_node() -> None:
    assert chosen_networks(masters("192.168.3.0/24"), None, 7).max_pods == 29
    assert chosen_networks(masters("192.168.0.0/16"), None, 7).max_pods == 110


@given(st.ip_addresses(v=4), st.integers(1, 32), st.integers(1, 5000))
def test_whatever_is_accepted_has_room_for_all(address: ipaddress.IPv4Address, prefix: int, nodes: int) -> None:
    network = ipaddress.ip_network((int(address), prefix), strict=False)
    chosen = chosen_networks(masters(str(network)), None, nodes)
    if not any(name == "pod_cidr" for name, _ in network_problems(chosen, nodes)):
        assert 2 ** (chosen.node_prefix - prefix) >= nodes
        assert chosen.max_pods <= 2 ** (32 - chosen.node_prefix)
        assert chosen.node_prefix - prefix <= 16


def test_what_is_inside_goes_past_the_proxy() -> None:
    chosen = chosen_networks(masters(), "10.10.0.0/24", 3)
    told = no_proxy(chosen, "10.10.0.100", "registry.example.com, 10.0.0.1,,localhost")
    assert told == (
        "registry.example.com", "10.0.0.1", "localhost", "127.0.0.1", "::1", "10.10.0.100",
        "192.168.0.0/16", "10.96.0.0/12", "10.10.0.0/24", ".svc", ".cluster.local",
    )  # fmt: skip
