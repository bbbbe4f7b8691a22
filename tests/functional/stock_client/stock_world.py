"""A running Slipway, looked at through its own API while the stock client talks to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.unit.vim.loopback import Asked, Reply, serving

LCM = "/vnflcm/v2"
PACKAGES = "/vnfpkgm/v1/vnf_packages"
RULES = "/slipway/v1/vims/simulated/rules"
VNFD = "6b1a5d0e-3c52-4f0a-9d57-1f5c2c7d8e10"
NEXT = "6b1a5d0e-3c52-4f0a-9d57-1f5c2c7d8e11"  # the same VNF's next version
UNDER_WAY = ("STARTING", "PROCESSING", "ROLLING_BACK")
PATIENCE = 60.0


@dataclass(frozen=True)
class Slipway:
    """The server that is talked to, looked at through its own API."""

    client: httpx.Client

    def get(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def onboard(self, csar: Path) -> None:
        package_id = self.client.post(PACKAGES, json={}).json()["id"]
        content = f"{PACKAGES}/{package_id}/package_content"
        self.client.put(content, content=csar.read_bytes(), headers={"Content-Type": "application/zip"})
        self.onboarded(package_id)

    def onboarded(self, package_id: str) -> None:
        until(lambda: self.get(f"{PACKAGES}/{package_id}")["onboardingState"] == "ONBOARDED")

    def instance(self, instance_id: str) -> Any:
        return self.get(f"{LCM}/vnf_instances/{instance_id}")

    def created(self) -> str:
        instance_id: str = self.client.post(f"{LCM}/vnf_instances", json={"vnfdId": VNFD}).json()["id"]
        return instance_id

    def machines(self, instance_id: str) -> dict[str, str]:
        """What the VIM calls them, by name."""
        vnfcs = self.instance(instance_id)["instantiatedVnfInfo"]["vnfcResourceInfo"]
        return {vnfc["metadata"]["name"]: vnfc["computeResource"]["resourceId"] for vnfc in vnfcs}

    def last(self, instance_id: str) -> Any:
        """The newest operation, when it rests."""
        wanted = f"{LCM}/vnf_lcm_op_occs?all_fields&filter=(eq,vnfInstanceId,{instance_id})"
        until(lambda: self.get(wanted)[0]["operationState"] not in UNDER_WAY)
        return self.get(wanted)[0]

    def processing(self, instance_id: str) -> None:
        """The newest operation is planned, and its steps run."""
        wanted = f"{LCM}/vnf_lcm_op_occs?filter=(eq,vnfInstanceId,{instance_id})"
        until(lambda: self.get(wanted)[0]["operationState"] == "PROCESSING")

    def done(self, instance_id: str, operation: str) -> Any:
        last = self.last(instance_id)
        assert (last["operation"], last["operationState"]) == (operation, "COMPLETED"), last
        return last

    def at_rest(self) -> None:
        """Nothing is under way."""
        busy = ",".join(UNDER_WAY)
        until(lambda: not self.get(f"{LCM}/vnf_lcm_op_occs?filter=(in,operationState,{busy})"))
        until(lambda: not self.get(f"{PACKAGES}?filter=(in,onboardingState,UPLOADING,PROCESSING)"))

    def rule(self, machine: str, **more: Any) -> None:
        self.client.put(RULES, json=[{"call": "make_machine", "machine": machine, **more}]).raise_for_status()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@dataclass
class Subscriber:
    url: str = ""
    notified: list[Any] = field(default_factory=list)

    def answer(self, asked: Asked) -> Reply:
        if asked.method == "POST":
            self.notified.append(asked.document)
        return Reply(204)


@contextmanager
def a_subscriber() -> Iterator[Subscriber]:
    subscriber = Subscriber()
    with serving(subscriber.answer) as url:
        subscriber.url = f"{url}/notifications"
        yield subscriber
