"""Packages of OpenStack Tacker's functional tests, unchanged but for what their builders add, on a real OpenStack: by
the bodies that those tests send, ids and addresses aside.

TACKER_CHECKOUT names a directory with Tacker's repository; without it all this is skipped. What has no life here:
packages that make volume types (`basic_lcms_max`: that is for administrators, and the lab's volumes are for one server
each), and clusters, whose scripts install from the internet.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.openstack.openstack_cluster import OpenStackVnf
from tests.lab.openstack.openstack_lab import OpenStackLab
from tests.lab.openstack.peer_packages import LIVES, V2, Life, completed, repository, requests

pytestmark = pytest.mark.group(name="openstack")

RANGES = {"net0": "10.94.0.0/24", "net1": "10.95.0.0/24", "net_mgmt": "10.96.0.0/24"}


@pytest.fixture(scope="module")
def tacker() -> Path:
    return repository()


@pytest.fixture(scope="module")
def project(tacker: Path, openstack_lab: OpenStackLab) -> OpenStackLab:
    """Behind the repository: where none is named, no OpenStack is started."""
    return openstack_lab.project("peer")


@pytest.fixture
def networks(project: OpenStackLab) -> Iterator[dict[str, str]]:
    for name, cidr in RANGES.items():
        project.own_network(name, cidr)
    with project.nothing_left():
        yield {name: project.network_id(name) for name in RANGES}


@pytest.mark.parametrize("name", LIVES)
def test_a_life_with_the_functional_tests_own_bodies(
    name: str, tacker: Path, project: OpenStackLab, networks: dict[str, str], tmp_path: Path
) -> None:
    find = project.user.network.find_network
    subnets = {net.replace("net", "subnet"): find(net).subnet_ids[0] for net in ("net0", "net1")}
    vnf = OpenStackVnf(tmp_path / "data", project, completed(tacker / V2 / name / "contents", tmp_path, tacker))
    try:
        vnf.create()
        LIVES[name](Life(vnf, project.vim, requests(tacker), networks, subnets))
    finally:
        vnf.kill()
