from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.cluster.quorum import EtcdState, quorum, refuse_removal


def state(healthy: str, dead: str = "") -> EtcdState:
    return EtcdState(members=tuple(sorted(healthy + dead)), healthy=frozenset(healthy))


@pytest.mark.parametrize(("members", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)])
def test_more_than_half_are_needed(members: int, needed: int) -> None:
    assert quorum(members) == needed


@pytest.mark.parametrize(
    ("healthy", "dead", "name"), [("abc", "", "a"), ("ab", "c", "c"), ("ab", "", "a"), ("abc", "de", "e")]
)
def test_a_member_may_go_when_the_others_keep_the_quorum(healthy: str, dead: str, name: str) -> None:
    assert refuse_removal(state(healthy, dead), name) is None


@pytest.mark.parametrize(
    ("healthy", "dead", "name", "reason"),
    [
        ("ab", "c", "a", "Without a etcd would lose its quorum: 1 of 2 members answer, and 2 would be needed. Heal c"),
        ("a", "bc", "b", "etcd has lost its quorum already: 1 of 3 members answer, and 2 are needed"),
        ("abc", "de", "a", "Heal d, e first"),
        ("a", "", "a", "A single master holds all of the cluster's state"),
        ("", "abc", "a", "0 of 3"),
    ],
)
def test_a_removal_that_would_lose_the_quorum_is_refused_with_the_reason(
    healthy: str, dead: str, name: str, reason: str
) -> None:
    assert reason in (refuse_removal(state(healthy, dead), name) or "")


@given(st.integers(3, 7), st.data())
def test_what_is_refused_would_have_lost_the_quorum(size: int, data: st.DataObject) -> None:
    members = "abcdefg"[:size]
    healthy = frozenset(data.draw(st.sets(st.sampled_from(members))))
    name = data.draw(st.sampled_from(members))
    now = EtcdState(members=tuple(members), healthy=healthy)
    assert (refuse_removal(now, name) is None) == (now.has_quorum and now.without(name).has_quorum)
