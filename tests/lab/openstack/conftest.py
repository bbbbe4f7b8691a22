"""The lab's OpenStack: started with the first test of this directory, stopped after the last. What a test leaves there
fails it.

Its services use a tenth of a core while nobody asks them anything, so they don't run beside tests of other labs.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.lab.openstack.openstack_lab import OpenStackLab, run_lab

HERE = Path(__file__).parent
STARTED = pytest.StashKey[bool]()


@pytest.fixture(scope="module")
def openstack_lab(request: pytest.FixtureRequest) -> OpenStackLab:
    if os.geteuid() != 0:
        pytest.skip("the lab's OpenStack needs root")
    run_lab("install")
    request.config.stash[STARTED] = True
    run_lab("start")
    lab = OpenStackLab.connect()
    lab.prepare()
    return lab


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """It is stopped when all fixtures that use it have ended, and no test of this directory follows."""
    try:
        return (yield)
    finally:
        last = nextitem is None or not nextitem.path.is_relative_to(HERE)
        if (
            last and item.config.stash.get(STARTED, False) and not os.environ.get("LAB_KEEP")
        ):  # the next run begins at once
            item.config.stash[STARTED] = False
            run_lab("stop")


@pytest.fixture
def cloud(openstack_lab: OpenStackLab) -> Iterator[OpenStackLab]:
    with openstack_lab.nothing_left():
        yield openstack_lab
