"""A journey is a file of tests that run in their order on the same machines: the stages of one life.

A stage that fails is reported under its name. Those that need what it should have brought about are skipped and say so;
all others run, so that one failure does not hide the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

failed = pytest.StashKey[dict[str, str]]()  # stages of a file that did not succeed, and why
stage_failed = pytest.StashKey[bool]()  # of one stage, for its teardown


def needs(*stages: Callable[..., Any]) -> pytest.MarkDecorator:
    return pytest.mark.needs(*(stage.__name__ for stage in stages))


def skip_without_what_it_needs(item: pytest.Item) -> None:
    lost = _lost(item)
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if name in lost:
                pytest.skip(f"needs {name}, which {lost[name]}")


def note(item: pytest.Item, report: pytest.TestReport) -> None:
    if report.failed:
        item.stash[stage_failed] = True
    if report.failed or report.skipped:
        _lost(item).setdefault(item.name, "failed" if report.failed else "was skipped")


def _lost(item: pytest.Item) -> dict[str, str]:
    return item.parent.stash.setdefault(failed, {}) if item.parent else {}
