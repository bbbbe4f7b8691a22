"""A journey is a file of tests that run in their order on the same machines: the stages of one life.

A stage that fails is reported under its name. Those that need what it should have brought about are skipped and say so;
all others run, so that one failure does not hide the rest. The hooks below are for a conftest.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

_lost = pytest.StashKey[dict[str, str]]()  # stages of a file that did not succeed, and what became of them
_failed = pytest.StashKey[bool]()


def needs(*stages: Callable[..., Any]) -> pytest.MarkDecorator:
    return pytest.mark.needs(*(stage.__name__ for stage in stages))


def has_failed(stage: pytest.Item) -> bool:
    """For what its fixtures do after it."""
    return stage.stash.get(_failed, False)


def pytest_runtest_setup(item: pytest.Item) -> None:
    lost = _of_its_file(item)
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if name in lost:
                pytest.skip(f"needs {name}, which {lost[name]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_failed] = True
    if report.failed or report.skipped:
        _of_its_file(item).setdefault(item.name, "failed" if report.failed else "was skipped")
    return report


def _of_its_file(item: pytest.Item) -> dict[str, str]:
    assert item.parent is not None
    return item.parent.stash.setdefault(_lost, {})
