"""Every test on real machines is run by `make test` or by a group of `make test-all`, and the README has all groups."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.functional.readme import README, ROOT
from tests.groups import GROUPS, LAB, command, misplaced


def a_test(place: Path, **markers: dict[str, str]) -> Any:
    found = {name: SimpleNamespace(kwargs=kwargs) for name, kwargs in markers.items()}
    return SimpleNamespace(path=place / "test_it.py", nodeid="test_it", get_closest_marker=found.get)


def test_a_test_on_real_machines_is_part_of_a_journey_or_a_group() -> None:
    assert misplaced([a_test(LAB, journey={}), a_test(LAB, group={"name": "upgrade"}), a_test(ROOT)]) == []
    assert misplaced([a_test(LAB)]) == ["test_it: it must be marked as part of a journey, or of a group"]
    assert misplaced([a_test(LAB, journey={}, group={"name": "upgrade"})]) != []


def test_a_group_is_one_that_is_run() -> None:
    assert misplaced([a_test(ROOT, group={"name": "upgrades"})]) == [
        f"test_it: its group 'upgrades' must be one of: {', '.join(GROUPS)}"
    ]


@pytest.mark.parametrize("group", GROUPS)
def test_no_group_is_empty(group: str) -> None:
    paths = [ROOT / place for place in command(group) if place.startswith("tests/")]
    tests = [file.read_text() for place in paths for file in place.rglob("test_*.py")]
    mark = "mark.sqlite_suffices" if group == "postgresql" else f'mark.group(name="{group}")'
    assert any(mark in text for text in tests)


def test_make_says_how_many_tests_of_a_group_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKERS", "7")
    assert command("crash")[command("crash").index("-n") + 1] == "7"
    assert command("cluster")[command("cluster").index("-n") + 1] == "1"
    asked = ["make", "--silent", "--eval", "shown: ; @echo $$WORKERS", "shown"]
    assert subprocess.run([*asked, "WORKERS=9"], capture_output=True, text=True, cwd=ROOT).stdout == "9\n"
    monkeypatch.delenv("WORKERS")
    assert subprocess.run(asked, capture_output=True, text=True, cwd=ROOT).stdout == "4\n"


def test_an_unknown_group_is_refused_with_the_list() -> None:
    asked = ["make", "test-all", "GROUP=upgrades", "--assume-old", ".venv/installed"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode != 0
    assert f"GROUP=upgrades: must be one of: {', '.join(GROUPS)}" in done.stderr


def test_the_readme_lists_the_groups_with_their_times() -> None:
    assert re.findall(r"^\| `([\w-]+)` \| (.*) \| (?:\d+|—) \|$", README, re.MULTILINE) == list(GROUPS.items())
