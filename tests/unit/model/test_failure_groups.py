"""What failed alike is told once."""

from __future__ import annotations

from slipway.model.failure_groups import Failure, grouped, listed


def test_the_same_cause_on_many_nodes_is_one() -> None:
    failures = [
        Failure(
            f"join workerNode-{at}",
            f"'join' on root@10.11.0.{at} ended with exit code 1. Node workernode-{at}-1f0c is not there.",
            (f"workerNode-{at}",),
        )
        for at in range(1, 13)
    ]
    (group,) = grouped(failures)
    assert group == failures
    assert listed(failure.nodes[0] for failure in group).endswith("workerNode-10 and 2 more")


def test_different_causes_stay_apart_in_their_order() -> None:
    failures = [
        Failure("join a-1", "exit code 1", ("a-1",)),
        Failure("join a-2", "exit code 2", ("a-2",)),
        Failure("join a-3", "exit code 1", ("a-3",)),
    ]
    assert [[one.who for one in group] for group in grouped(failures)] == [["join a-1", "join a-3"], ["join a-2"]]


def test_a_nodes_number_is_not_found_inside_another() -> None:
    failures = [Failure("x", "waits for a-11", ("a-1",)), Failure("y", "waits for a-21", ("a-2",))]
    assert len(grouped(failures)) == 2


def test_ids_and_addresses_of_any_family_do_not_count() -> None:
    one = "fd00:10::1 is machine 5f0c3e8a-0000-4000-8000-000000000001"
    two = "fd00:10:0:0::2 is machine 5f0c3e8a-0000-4000-8000-000000000002"
    assert len(grouped([Failure("x", one), Failure("y", two)])) == 1
