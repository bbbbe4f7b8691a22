"""Packages of OpenStack Tacker, unchanged but for what their builders add: onboarded, and alive on a Heat on paper.

TACKER_CHECKOUT names a directory with Tacker's repository; without it all this is skipped.
On a real OpenStack: test_openstack_peer_packages.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from slipway.model.errors import PackageError
from slipway.package.build import build_package
from slipway.vim.openstack.hot_template import SERVER
from tests.functional.processes import Process
from tests.lab.openstack.paper_openstack import PaperCloud, a_paper_cloud
from tests.lab.openstack.peer_packages import (
    CLUSTER_V1,
    CLUSTER_V2,
    LIVES,
    V2,
    Life,
    all_packages,
    completed,
    largest_life,
    printed,
    repository,
    requests,
)
from tests.lab.slipway_lab import SlipwayLab
from tests.script_sandbox import needs_sandbox

pytestmark = pytest.mark.group(name="openstack")

AT_LEAST = 74
ON_PAPER = {**LIVES, "basic_lcms_max": largest_life}  # it makes volume types, which the lab has none of its kind for
CLUSTERS = (
    (CLUSTER_V1, "mgmt_driver_deploy_k8s_usage_guide.rst", "v1"),
    (CLUSTER_V2, "v2/mgmt_driver_deploy_k8s_with_cilium_cni.rst", "v2"),
)
UNSAID = ("locationConstraints", "VDU1-2.name")  # the bodies say nothing of them: Heat makes an empty text of that


class PaperVnf(SlipwayLab):
    def __init__(self, directory: Path, cloud: PaperCloud, tree: Path) -> None:
        self.cloud = cloud
        super().__init__(directory, tree, {"name": "paper", **cloud.vim})

    def start(self) -> None:
        self.process = Process("serve", self.directory)
        self.http = self.process.client()

    def begin_at(self, version: str, action: str, body: dict[str, Any]) -> str:
        """By that version of the API, which are about the same instances and operations."""
        path = f"/vnflcm/{version}/vnf_instances/{self.vnf}/{action}"
        answer = self.http.post(path, json=body, headers={"Version": "1.3.0" if version == "v1" else "2.0.0"})
        assert answer.status_code == 202, answer.text
        return answer.headers["location"].rpartition("/")[2]


@pytest.fixture
def tacker() -> Path:
    return repository()


@pytest.fixture
def cloud() -> Iterator[PaperCloud]:
    with a_paper_cloud() as cloud:
        yield cloud


def test_most_of_them_are_onboarded_and_the_others_told_why(tacker: Path, tmp_path: Path) -> None:
    onboarded, refused = [], {}
    for number, tree in enumerate(all_packages(tacker)):
        try:
            build_package(completed(tree, tmp_path / str(number), tacker), tmp_path / f"{number}.csar")
        except PackageError as error:
            refused[str(tree.relative_to(tacker))] = error
        else:
            onboarded.append(tree)
    assert len(onboarded) >= AT_LEAST, refused
    assert all(error.file and error.cure for error in refused.values())


@needs_sandbox
@pytest.mark.parametrize("name", ON_PAPER)
def test_a_life_with_the_functional_tests_own_bodies(
    name: str, tacker: Path, cloud: PaperCloud, tmp_path: Path
) -> None:
    ids: dict[str, Any] = defaultdict(lambda: str(uuid4()))
    vnf = PaperVnf(tmp_path / "data", cloud, completed(tacker / V2 / name / "contents", tmp_path, tacker))
    try:
        vnf.create()
        ON_PAPER[name](Life(vnf, cloud.vim, requests(tacker), ids, ids, ids))
    finally:
        vnf.kill()
    assert [one for one in cloud.unset if not one.endswith(UNSAID)] == []
    assert cloud.stacks == {}
    assert cloud.glance is not None
    assert cloud.glance.images == {}


@needs_sandbox
@pytest.mark.parametrize(("package", "page", "version"), CLUSTERS)
def test_a_cluster_by_the_body_that_its_documentation_prints_gets_its_servers(
    package: str, page: str, version: str, tacker: Path, cloud: PaperCloud, tmp_path: Path
) -> None:
    """As far as paper goes: nobody can log in to such servers. User data and names of groups are the package's own."""
    vnf = PaperVnf(tmp_path / "data", cloud, completed(tacker / package, tmp_path, tacker))
    body = with_own_ids(printed(tacker / "doc/source/user" / page, "simple"), vnf)
    try:
        vnf.create()
        operation = vnf.begin_at(version, "instantiate", body)
        vnf.ended(operation, "FAILED_TEMP")
        assert vnf.steps(operation)["make stack"] == "DONE"
        (stack,) = cloud.stacks.values()
        servers = [path[-1] for path, one in stack.made.items() if one.type == SERVER]
        assert sorted(servers) == ["masterNode", "workerNode", "workerNode"]
        vnf.decide(operation, "rollback", "ROLLED_BACK")
    finally:
        vnf.kill()
    assert [one for one in cloud.unset if not one.endswith(UNSAID)] == []
    assert cloud.stacks == {}


def with_own_ids(body: dict[str, Any], vnf: PaperVnf) -> dict[str, Any]:
    """Ids and addresses aside: the VIM is the one that there is, and there is no proxy."""
    body["additionalParams"]["k8s_cluster_installation_param"].pop("proxy", None)
    if isinstance(body["vimConnectionInfo"], list):
        body["vimConnectionInfo"][0]["vimId"] = vnf.vims()["paper"]["id"]
    else:
        body["vimConnectionInfo"] = {"vim1": vnf.cloud.vim}
    return body
