"""VNFs that are no clusters, on a real OpenStack and through Slipway's own API: user data, grants, many at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.small_nfvo import SmallNfvo, a_grant, small_nfvo
from tests.lab.openstack.openstack_cluster import OpenStackVnf
from tests.lab.openstack.openstack_lab import OpenStackLab
from tests.lab.slipway_lab import AT_WORK, INSTANCES, OPERATIONS
from tests.unit.outgoing.loopback_server import Answer, document

pytestmark = pytest.mark.group(name="openstack")

SMALL = Path(__file__).with_name("small_vnf")
TERMINATE = {"terminationType": "FORCEFUL"}
MANY = 20


@pytest.fixture(scope="module")
def project(openstack_lab: OpenStackLab) -> Iterator[OpenStackLab]:
    project = openstack_lab.project("vnfs")
    with project.nothing_left():
        yield project


@pytest.fixture(scope="module")
def vnf(tmp_path_factory: pytest.TempPathFactory, project: OpenStackLab) -> Iterator[OpenStackVnf]:
    vnf = OpenStackVnf(tmp_path_factory.mktemp("vnfs"), project, SMALL)
    yield vnf
    vnf.kill()


def request(vnf: OpenStackVnf, **additional: Any) -> dict[str, Any]:
    return {"flavourId": "simple", "extVirtualLinks": vnf.connected("server_CP1"), "additionalParams": additional}


def user_data(class_name: str) -> dict[str, str]:
    return {"lcm-operation-user-data": "./UserData/motto.py", "lcm-operation-user-data-class": class_name}


def test_user_data_of_a_package_that_answers_all_parameters_has_its_say(vnf: OpenStackVnf) -> None:
    vnf.create()
    vnf.run("instantiate", request(vnf, motto="per aspera", **user_data("ByDict")))
    assert vnf.server("server-0").metadata == {"motto": "per aspera"}
    vnf.run("terminate", TERMINATE)


def test_a_life_with_user_data_that_speaks_of_each_server(vnf: OpenStackVnf) -> None:
    vnf.create()
    vnf.run("instantiate", request(vnf, motto="ad astra", **user_data("ByServer")))
    assert vnf.server("server-0").metadata == {"motto": "ad astra"}
    first = vnf.server("server-0").id
    vnf.run("scale", {"type": "SCALE_OUT", "aspectId": "servers"})
    assert sorted(vnf.machines()) == ["server-0", "server-1"]
    assert vnf.server("server-0").id == first
    assert vnf.server("server-1").metadata == {"motto": "ad astra"}
    address = vnf.address("server-1")
    vnf.heal("server-1")
    assert vnf.address("server-1") == address
    vnf.run("scale", {"type": "SCALE_IN", "aspectId": "servers"})
    assert vnf.server("server-0").id == first
    vnf.run("terminate", TERMINATE)


async def test_zone_flavour_and_image_are_those_of_the_grant(project: OpenStackLab, tmp_path: Path) -> None:
    image = project.user.image.find_image("image-next").id
    flavour = project.user.compute.find_flavor("size-next").id

    def decide(asked: dict[str, Any]) -> Answer:
        grant = a_grant(asked, zones=[{"id": "here", "zoneId": "nova"}])
        for info in grant.get("addResources", ()):
            info["zoneId"] = "here"
        assets = {
            "softwareImages": [{"vnfdSoftwareImageId": "server", "vimSoftwareImageId": image}],
            "computeResourceFlavours": [{"vnfdVirtualComputeDescId": "server", "vimFlavourId": flavour}],
        }
        return document({**grant, "vimAssets": assets}, 201)

    async with small_nfvo() as nfvo:
        nfvo.decide = decide
        await asyncio.to_thread(granted, project, tmp_path, nfvo, image)


def granted(project: OpenStackLab, directory: Path, nfvo: SmallNfvo, image: str) -> None:
    vnf = OpenStackVnf(directory, project, SMALL, nfvo_url=nfvo.url)
    try:
        vnf.create()
        vnf.run("instantiate", request(vnf))
        server = vnf.server("server-0")
        assert (server.image.id, server.flavor["original_name"], server.availability_zone) == (
            image, "size-next", "nova",
        )  # fmt: skip
        vnf.run("terminate", TERMINATE)
    finally:
        vnf.kill()


def test_twenty_at_once(vnf: OpenStackVnf) -> None:
    instances = [vnf.http.post(INSTANCES, json={"vnfdId": vnf.vnfd}).json()["id"] for _ in range(MANY)]
    for action, body in (("instantiate", request(vnf)), ("terminate", TERMINATE)):
        operations = []
        for instance in instances:
            answer = vnf.http.post(f"{INSTANCES}/{instance}/{action}", json=body)
            assert answer.status_code == 202, answer.text
            operations.append(answer.headers["location"].rpartition("/")[2])
        assert ends(vnf, operations) == {"COMPLETED": MANY}


def ends(vnf: OpenStackVnf, operations: list[str], within: float = 900) -> dict[str, int]:
    """How many ended how, once all have."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = [vnf.http.get(f"{OPERATIONS}/{one}").json() for one in operations]
        states = [one["operationState"] for one in found]
        if not AT_WORK & set(states):
            for one in found:
                assert not one.get("error"), one["error"]
            return {state: states.count(state) for state in states}
        time.sleep(1)
    raise AssertionError(f"after {within:g} s: {states}")
