"""Five servers on the lab's OpenStack: a VNF by Slipway, and the same template given to Heat by hand.

By hand it is what `openstack stack create --wait` does, with a look every half second. Needs root, and lab/openstack.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.lifecycle import INSTANCES, OPERATIONS, create, upload
from bench.server import Server
from slipway.model.vim import OPENSTACK

ROOT = Path(__file__).parents[1]
LAB, SAMPLE = ROOT / "lab" / "openstack", ROOT / "samples" / "cluster-openstack"
CLOUDS = Path.home() / ".cache" / "slipway" / "openstack-lab" / "clouds.yaml"
LOOK = 0.5  # seconds
WORKERS = 4


@dataclass(frozen=True)
class Turn:
    by_slipway: float
    by_hand: float


@contextmanager
def lab() -> Iterator[Any]:
    """The lab's cloud, as its user sees it."""
    from openstack.connection import Connection

    for script in ("install", "start"):
        subprocess.run([LAB / script], check=True, stdout=subprocess.DEVNULL)
    try:
        account = yaml.safe_load(CLOUDS.read_text())["clouds"]["lab"]["auth"]
        yield Connection(auth=account, region_name="RegionOne")
    finally:
        subprocess.run([LAB / "stop"], check=True, stdout=subprocess.DEVNULL)


def onboard(server: Server, place: Path) -> str:
    """The sample without its hooks and templates: machines, and nothing on them."""
    tree = place / "package"
    for file in SAMPLE.rglob("*"):
        if file.is_file() and "BaseHOT" not in file.parts:
            target = tree / file.relative_to(SAMPLE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_plain(file.read_text()))
    return upload(server, tree, place / "plain.csar")


def turn(server: Server, cloud: Any, vnfd_id: str) -> Turn:
    network = cloud.network.find_network("mgmt").id
    with server.client as client:
        account = cloud.config.get_auth_args()
        access = {"username": account["username"], "password": account["password"], "project": account["project_name"]}
        vim = {"vimType": OPENSTACK, "interfaceInfo": {"endpoint": account["auth_url"]}, "accessInfo": access}
        client.post("/slipway/v1/vims", json={"name": f"lab-{uuid.uuid4()}", "isDefault": True, **vim})
        instance_id = create(client, vnfd_id)
        seconds = _operation(client, instance_id, "instantiate", _request(network))
        stack = next(iter(cloud.orchestration.stacks(name=f"vnf-{instance_id}")))
        template = cloud.orchestration.get(f"/stacks/{stack.name}/{stack.id}/template").json()
        _operation(client, instance_id, "terminate", {"terminationType": "FORCEFUL"})
    return Turn(seconds, _by_hand(cloud, template))


def _by_hand(cloud: Any, template: dict[str, Any]) -> float:
    began = time.perf_counter()
    made = cloud.orchestration.create_stack(name=f"by-hand-{uuid.uuid4()}", template=template, timeout_mins=10)
    while cloud.orchestration.get_stack(made.id, resolve_outputs=False).status != "CREATE_COMPLETE":
        time.sleep(LOOK)
    seconds = time.perf_counter() - began
    cloud.orchestration.delete_stack(made)
    cloud.orchestration.wait_for_delete(made, wait=300)
    return seconds


def _operation(client: Any, instance_id: str, operation: str, body: dict[str, Any]) -> float:
    began = time.perf_counter()
    answer = client.post(f"{INSTANCES}/{instance_id}/{operation}", json=body)
    answer.raise_for_status()
    place = answer.headers["location"].rpartition("/")[2]
    while (state := client.get(f"{OPERATIONS}/{place}").json()["operationState"]) in ("STARTING", "PROCESSING"):
        time.sleep(0.05)
    if state != "COMPLETED":
        raise SystemExit(f"{operation} ended as {state}")
    return time.perf_counter() - began


def _request(network: str) -> dict[str, Any]:
    point = {"any": {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}}
    points = [{"cpdId": name, "cpConfig": point} for name in ("masterNode_CP1", "workerNode_CP1")]
    return {"flavourId": "simple", "extVirtualLinks": [{"id": "net", "resourceId": network, "extCps": points}]}


def _plain(text: str) -> str:
    """No management driver, one image and size of the lab, and as many workers as are measured."""
    lines = [line for line in text.splitlines() if "implementation: kubernetes" not in line]
    plain = "\n".join(lines).replace("      interfaces:\n        Vnflcm:\n\n", "\n")
    plain = plain.replace("name: kubernetes", "name: lab-debian").replace("m1.medium", "m1.tiny")
    return plain.replace("number_of_instances: 2", f"number_of_instances: {WORKERS}") + "\n"
