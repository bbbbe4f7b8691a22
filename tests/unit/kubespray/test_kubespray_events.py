"""What is told of a run: where it is, and why it failed, as Ansible reported it."""

from __future__ import annotations

import json
from typing import Any

from slipway.kubespray.events import LONGEST_MESSAGE, MOST_HOSTS, RunReport, read_events

SLOTS = {"workernode-1-ab": "workerNode-1"}


def report(*events: dict[str, Any]) -> RunReport:
    found = RunReport()
    for event in events:
        found.add(event)
    return found


def failed(host: str, task: str, message: str, **more: Any) -> dict[str, Any]:
    return {"event": "failed", "host": host, "task": task, "message": message, **more}


def stats(**hosts: dict[str, int]) -> dict[str, Any]:
    return {"event": "stats", "hosts": hosts}


def test_whoever_watches_sees_task_host_and_counts() -> None:
    found = report(
        {"event": "play", "name": "Install"},
        {"event": "task", "name": "download : Get kubeadm"},
        {"event": "ok", "host": "workernode-1-ab", "changed": True},
    )
    assert found.progress(SLOTS) == "task 1: download : Get kubeadm on workerNode-1 (ok=1 changed=1 failed=0)"


def test_a_failure_has_host_task_and_message() -> None:
    found = report(
        failed("workernode-1-ab", "kubeadm | Join", "rc 1\nno route to host"),
        stats(**{"workernode-1-ab": {"failures": 1}}),
    )
    told = found.explanation(SLOTS)
    assert told == "workerNode-1 (workernode-1-ab) failed in task 'kubeadm | Join': rc 1 | no route to host."


def test_a_host_that_went_away_could_not_be_reached() -> None:
    event = {"event": "unreachable", "host": "a", "task": "t", "message": "Connection timed out"}
    found = report(event, stats(a={"unreachable": 1}))
    assert found.explanation({}) == "a could not be reached by Ansible in task 't': Connection timed out."


def test_a_rescued_task_is_no_failure() -> None:
    found = report(failed("a", "try", "no"), stats(a={"failures": 0, "rescued": 1}))
    assert found.explanation({}) is None


def test_a_failure_after_a_rescued_one_is_the_one_that_counts() -> None:
    found = report(failed("a", "try", "no"), failed("a", "then", "never"), stats(a={"failures": 1, "rescued": 1}))
    assert found.explanation({}) == "a failed in task 'then': never."


def test_a_failure_that_is_ignored_is_none() -> None:
    assert report(failed("a", "try", "no", ignored=True)).explanation({}) is None


def test_a_run_that_was_killed_has_no_counts_and_tells_its_last_failure() -> None:
    assert report(failed("a", "try", "no")).explanation({}) == "a failed in task 'try': no."


def test_many_hosts_are_not_all_listed() -> None:
    found = report(*(failed(f"h{number}", "t", "m") for number in range(9)))
    assert str(found.explanation({})).endswith("And on 4 more hosts.")


def test_a_line_that_is_half_written_is_left_out() -> None:
    lines = [json.dumps({"event": "task", "name": "a"}), '{"event": "ta', "[]"]
    assert list(read_events(lines)) == [{"event": "task", "name": "a"}]


def test_a_server_that_writes_nonsense_is_not_believed() -> None:
    assert list(read_events(["[" * 200_000, '{"a":' * 200_000])) == []
    found = report(
        failed("a", "t", "m"), {"event": "stats", "hosts": {"a": "many", "b": {"failures": 1}}}, {"event": []}
    )
    assert found.explanation({}) is None


def test_control_characters_of_a_message_do_not_reach_a_terminal() -> None:
    found = report(failed("a", "t", "\x1b[31mred\x1b[0m\x07"))
    assert found.explanation({}) == "a failed in task 't': red."


def test_a_hosts_name_does_not_reach_a_terminal_as_it_is() -> None:
    host = "\x1b]0;title\x07\n" + "h" * 10_000
    found = report(failed(host, "t", "m"))
    for said in (found.progress({}), str(found.explanation({}))):
        assert "\x1b" not in said
        assert "\n" not in said
        assert len(said) < 400


def test_whoever_watches_does_not_count_what_was_rescued() -> None:
    found = report(failed("a", "try", "no"), failed("b", "try", "no"))
    assert "failed=2" in found.progress({})
    found.add({"event": "ok", "host": "a"})  # whom a failure stays with does nothing more
    assert "failed=1" in found.progress({})


def test_a_run_that_was_killed_does_not_tell_what_was_rescued() -> None:
    rescued = (failed("a", "try", "no"), {"event": "ok", "host": "a"})
    assert report(*rescued, failed("b", "then", "never")).explanation({}) == "b failed in task 'then': never."
    # After the last task of a block with "always" it may be one that stayed: better told than not.
    assert report(*rescued).explanation({}) == "a failed in task 'try': no."


def test_a_server_that_reports_without_end_is_kept_within_bounds() -> None:
    found = report(*(failed(f"h{number}", "t", "m" * 5000) for number in range(MOST_HOSTS + 10)))
    assert len(found.failures) == MOST_HOSTS
    assert max(len(one.message) for one in found.failures.values()) < 5000


def test_a_secret_is_hidden_before_a_message_is_cut() -> None:
    found = report(failed("a", "t", "x" * (LONGEST_MESSAGE - 7) + "open sesame"))
    assert "open" not in str(found.explanation({}, secrets=["open sesame"]))


def test_whoever_watches_sees_no_secret_in_the_name_of_a_task() -> None:
    report = RunReport()
    report.add({"event": "task", "name": f"{'x' * 70} open sesame"})
    assert "open s" not in report.progress({}, ["open sesame"])
