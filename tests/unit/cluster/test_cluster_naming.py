from __future__ import annotations

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.cluster.kubernetes_names import DNS_LABEL, is_label_key, is_label_value
from slipway.cluster.naming import (
    etcd_member_name,
    label_value,
    location_labels,
    node_name,
    virtual_router_id,
)

INSTANCE = "11111111-2222-4333-8444-555555555555"


def test_a_name_tells_the_slot_and_stays_the_same() -> None:
    assert re.fullmatch(r"workernode-2-[0-9a-f]{10}", node_name(INSTANCE, "workerNode-2"))
    assert node_name(INSTANCE, "workerNode-2") == node_name(INSTANCE, "workerNode-2")


def test_ten_thousand_nodes_of_two_clusters_have_ten_thousand_names() -> None:
    names = {node_name(instance, f"workerNode-{n}") for instance in (INSTANCE, "other") for n in range(5000)}
    assert len(names) == 10_000


def test_slots_that_look_alike_differ() -> None:
    slots = ["worker_Node-1", "workerNode-1", "worker.node-1", "worker-node-1", "WORKERNODE-1", "workerNode-01"]
    assert len({node_name(INSTANCE, slot) for slot in slots}) == len(slots)


def test_the_number_is_not_cut_off() -> None:
    assert re.search(r"-1234-[0-9a-f]{10}$", node_name(INSTANCE, "w" * 200 + "-1234"))


@given(st.text(), st.text())
def test_any_slot_gives_a_dns_label(instance: str, slot: str) -> None:
    assert DNS_LABEL.fullmatch(node_name(instance, slot))


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_word_of_a_vim_becomes_a_label_and_stays_apart(one: str, other: str) -> None:
    labels = location_labels(one, other)
    assert all(is_label_key(key) and is_label_value(value) for key, value in labels.items())
    assert (label_value(one) == label_value(other)) == (one == other)


def test_labels_tell_where_a_node_runs() -> None:
    assert location_labels("compute-1.example.org", "nova") == {
        "CIS-node": "compute-1.example.org",
        "kubernetes.io/zone": "nova",
        "topology.kubernetes.io/zone": "nova",
    }
    assert location_labels(None, None) == {}


def test_etcd_members_are_called_as_kubeadm_calls_them() -> None:
    assert etcd_member_name("master-0-ab") == "master-0-ab"


def test_routers_have_a_number_that_vrrp_takes() -> None:
    numbers = {virtual_router_id(str(uuid.UUID(int=n))) for n in range(2000)}
    assert min(numbers) >= 1
    assert max(numbers) <= 255
    assert len(numbers) > 200


@pytest.mark.parametrize("key", ["", "/", "a/", "/a", "A.example/x", "a/b/c", "-a", "a-", "a b", "x" * 64, "a\n"])
def test_keys_that_kubernetes_refuses(key: str) -> None:
    assert not is_label_key(key)
