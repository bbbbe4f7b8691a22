"""The lab's OpenStack: started for each file of tests, stopped after it. What a test leaves there fails it.

Its services use a tenth of a core while nobody asks them anything, so they don't run beside tests of other labs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.lab.openstack.openstack_lab import OpenStackLab, run_lab


@pytest.fixture(scope="module")
def openstack_lab() -> Iterator[OpenStackLab]:
    if os.geteuid() != 0:
        pytest.skip("the lab's OpenStack needs root")
    run_lab("install")
    run_lab("start")
    lab = OpenStackLab.connect()
    lab.prepare()
    yield lab
    if not os.environ.get("LAB_KEEP"):  # the next run begins at once
        run_lab("stop")


@pytest.fixture
def cloud(openstack_lab: OpenStackLab) -> Iterator[OpenStackLab]:
    with openstack_lab.nothing_left():
        yield openstack_lab
