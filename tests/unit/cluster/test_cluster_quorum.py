from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.cluster.quorum import EtcdState, heal_order, judge_heal, judge_removal, quorum, survivor


def state(healthy: str, dead: str = "", leader: str | None = None) -> EtcdState:
    return EtcdState(members=tuple(sorted(healthy + dead)), healthy=frozenset(healthy), leader=leader)


@pytest.mark.parametrize(("members", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)])
def test_more_than_half_are_needed(members: int, needed: int) -> None:
    assert quorum(members) == needed


@pytest.mark.parametrize(
    ("healthy", "dead", "healing", "allowed", "reason"),
    [
        ("abc", "", "a", True, "3 of 3 members answer after it"),
        ("ab", "c", "c", True, "3 of 3 members answer after it"),
        (
            "ab",
            "c",
            "a",
            False,
            "Without a etcd would lose its quorum: 1 of 2 members answer, and 2 would be needed. Heal c",
        ),
        ("ab", "c", "ac", True, "3 of 3"),
        ("abc", "", "abc", True, "3 of 3"),
        ("a", "bc", "b", False, "etcd has lost its quorum already: 1 of 3 members answer, and 2 are needed"),
        ("abc", "de", "de", True, "5 of 5"),
        ("abc", "de", "a", False, "Heal d, e first"),
        ("a", "", "a", False, "A single master holds all of the cluster's state"),
        ("ab", "", "a", True, "2 of 2"),
        ("ab", "", "c", True, "3 of 3"),
        ("", "abc", "a", False, "0 of 3"),
    ],
)
def test_a_heal_keeps_the_quorum_or_is_refused_with_the_reason(
    healthy: str, dead: str, healing: str, allowed: bool, reason: str
) -> None:
    verdict = judge_heal(state(healthy, dead), list(healing))
    assert verdict.allowed == allowed
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("healthy", "dead", "leaving", "allowed"),
    [
        ("abcde", "", "ab", True),
        ("abc", "", "a", True),
        ("abc", "", "ab", True),
        ("abc", "", "abc", False),
        ("ab", "c", "c", True),
        ("ab", "c", "a", False),
        ("ab", "c", "ac", True),
        ("a", "bc", "bc", False),
        ("", "", "", False),
    ],
)
def test_masters_that_leave_for_good(healthy: str, dead: str, leaving: str, allowed: bool) -> None:
    assert judge_removal(state(healthy, dead), list(leaving)).allowed == allowed


def test_the_dead_are_healed_first_and_the_leader_last() -> None:
    assert heal_order(state("abd", "ce", leader="a"), "abce") == ("c", "e", "b", "a")
    assert heal_order(state("abc"), "xca") == ("x", "a", "c")


def test_work_goes_on_from_a_master_that_stays_answers_and_is_reached() -> None:
    assert survivor(state("abc", leader="b"), "a", ["c", "b"]) == "b"
    assert survivor(state("abc", leader="a"), "a", ["c", "b"]) == "c"
    assert survivor(state("ab", "c"), "a", ["c", "b"]) == "b"
    assert survivor(state("abc"), "a", []) is None
    assert survivor(state("abc"), "abc", ["a", "b", "c"]) is None


@settings(deadline=None)
@given(st.integers(1, 7), st.data())
def test_an_allowed_heal_never_passes_a_moment_without_quorum(size: int, data: st.DataObject) -> None:
    members = "abcdefg"[:size]
    healthy = data.draw(st.sets(st.sampled_from(members)))
    healing = data.draw(st.sets(st.sampled_from(members), min_size=1))
    now = EtcdState(members=tuple(members), healthy=frozenset(healthy))
    if not judge_heal(now, healing).allowed:
        return
    for name in heal_order(now, healing):
        assert now.has_quorum
        now = now.without(name)
        assert now.has_quorum
        now = now.joined_by(name)
    assert now.has_quorum
    assert sorted(now.members) == sorted(members)


@settings(deadline=None)
@given(st.integers(3, 7), st.data())
def test_what_is_refused_would_have_lost_the_quorum_in_any_order_for_one_master(size: int, data: st.DataObject) -> None:
    members = "abcdefg"[:size]
    healthy = frozenset(data.draw(st.sets(st.sampled_from(members))))
    name = data.draw(st.sampled_from(members))
    now = EtcdState(members=tuple(members), healthy=healthy)
    assert judge_heal(now, [name]).allowed == (now.has_quorum and now.without(name).has_quorum)
