"""Software images of packages, on a real Glance: one for all VNFs, and none when the last has gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.openstack.image_packages import an_image, name_of, vnfd_id, with_image_file
from tests.lab.openstack.openstack_cluster import OpenStackVnf
from tests.lab.openstack.openstack_lab import OpenStackLab
from tests.lab.slipway_lab import INSTANCES

pytestmark = pytest.mark.group(name="openstack")

FIRST, NEXT = an_image(1), an_image(2)
TERMINATE = {"terminationType": "FORCEFUL"}
SCALE_OUT = {"type": "SCALE_OUT", "aspectId": "servers"}


@pytest.fixture(scope="module")
def project(openstack_lab: OpenStackLab) -> OpenStackLab:
    return openstack_lab.project("images")


@pytest.fixture(autouse=True)
def nothing_left(project: OpenStackLab) -> Iterator[None]:
    with project.nothing_left():
        yield


@pytest.fixture(scope="module")
def vnf(tmp_path_factory: pytest.TempPathFactory, project: OpenStackLab) -> Iterator[OpenStackVnf]:
    directory = tmp_path_factory.mktemp("images")
    vnf = OpenStackVnf(directory, project, with_image_file(directory, FIRST))
    vnf.onboard(with_image_file(directory, NEXT, version=2))
    vnf.onboard(with_image_file(directory, NEXT, version=3, size="no-such-size"))
    yield vnf
    vnf.kill()


def request(vnf: OpenStackVnf, **additional: Any) -> dict[str, Any]:
    return {"flavourId": "simple", "extVirtualLinks": vnf.connected("server_CP1"), "additionalParams": additional}


def images(vnf: OpenStackVnf) -> dict[str, set[str]]:
    """Ours: their names, and the VNFs that use them."""
    return {
        one.name: {tag.removeprefix("vnf-") for tag in one.tags if tag.startswith("vnf-")}
        for one in vnf.cloud.user.image.images(tag="slipway")
    }


def image_of(vnf: OpenStackVnf, slot: str) -> str:
    return str(vnf.cloud.user.image.get_image(vnf.server(slot).image.id).name)


def test_those_who_begin_at_once_share_one_image_and_the_last_to_go_removes_it(vnf: OpenStackVnf) -> None:
    instances = [vnf.http.post(INSTANCES, json={"vnfdId": vnf.vnfd}).json()["id"] for _ in range(3)]
    first, *others = instances
    all_at_once(vnf, "instantiate", request(vnf), instances)
    assert image_of(vnf, "server-0") == name_of(FIRST)
    (image,) = vnf.cloud.user.image.images(tag="slipway")
    assert (image.size, image.disk_format, image.container_format, image.min_disk) == (len(FIRST), "raw", "bare", 1)
    assert image.visibility == "private"
    assert images(vnf) == {name_of(FIRST): set(instances)}
    all_at_once(vnf, "terminate", TERMINATE, [first])
    assert images(vnf) == {name_of(FIRST): set(others)}
    all_at_once(vnf, "terminate", TERMINATE, others)
    assert images(vnf) == {}


def all_at_once(vnf: OpenStackVnf, action: str, body: dict[str, Any], instances: list[str]) -> None:
    operations = []
    for vnf.vnf in instances:
        operations.append(vnf.begin(action, body))
    for operation in operations:
        vnf.ended(operation)


def test_a_rollback_removes_what_was_uploaded(vnf: OpenStackVnf) -> None:
    vnf.create()
    with vnf.cloud.quota(instances=0):
        operation = vnf.begin("instantiate", request(vnf))
        vnf.ended(operation, "FAILED_TEMP")
    assert images(vnf) == {name_of(FIRST): {vnf.vnf}}
    vnf.decide(operation, "rollback", "ROLLED_BACK")
    assert images(vnf) == {}


def test_a_life_from_images_of_two_packages(vnf: OpenStackVnf) -> None:
    """Scaled and healed although somebody deleted the image, back from a change that failed, and changed in the end."""
    vnf.create()
    vnf.run("instantiate", request(vnf))
    first = vnf.server("server-0").id
    (image,) = vnf.cloud.user.image.images(tag="slipway")
    vnf.cloud.user.image.delete_image(image)
    vnf.run("scale", SCALE_OUT)
    assert vnf.server("server-0").id == first
    assert image_of(vnf, "server-1") == name_of(FIRST)
    vnf.heal("server-1")
    assert images(vnf) == {name_of(FIRST): {vnf.vnf}}

    operation = vnf.begin("change_vnfpkg", {"vnfdId": vnfd_id(3)})
    vnf.ended(operation, "FAILED_TEMP")
    assert images(vnf) == {name_of(FIRST): {vnf.vnf}, name_of(NEXT): {vnf.vnf}}
    vnf.decide(operation, "rollback", "ROLLED_BACK")
    assert image_of(vnf, "server-0") == name_of(FIRST)
    assert images(vnf) == {name_of(FIRST): {vnf.vnf}}

    vnf.run("change_vnfpkg", {"vnfdId": vnfd_id(2)})
    assert (image_of(vnf, "server-0"), image_of(vnf, "server-1")) == (name_of(NEXT), name_of(NEXT))
    assert images(vnf) == {name_of(NEXT): {vnf.vnf}}
    vnf.run("terminate", TERMINATE)
    assert images(vnf) == {}


def test_slipway_killed_in_the_middle_of_an_upload_begins_it_anew(project: OpenStackLab, tmp_path: Path) -> None:
    large = an_image(3, 128 << 20)
    vnf = OpenStackVnf(tmp_path, project, with_image_file(tmp_path, large, base_hot=False))
    try:
        vnf.create()
        operation = vnf.begin("instantiate", request(vnf))
        end = time.monotonic() + 120
        while not any(one.status == "saving" for one in project.user.image.images(tag="slipway")):
            assert time.monotonic() < end, vnf.steps(operation)
        vnf.kill()
        vnf.start()
        vnf.ended(operation)
        (image,) = project.user.image.images(tag="slipway")
        assert (image.name, image.status, image.size) == (name_of(large), "active", len(large))
        vnf.run("terminate", TERMINATE)
    finally:
        vnf.kill()
