"""A Slipway process beside real machines, and the cluster it builds there: what tests do to both, on whatever VIM."""

from __future__ import annotations

import asyncio
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from signal import SIGKILL
from typing import Any, TypeVar

import httpx

from slipway.kube.api import Api
from slipway.kube.credentials import from_kubeconfig
from slipway.kube.interface import KubeApi
from slipway.package.build import build_package
from tests.functional.processes import Process

T = TypeVar("T")
INSTANCES, OPERATIONS = "/vnflcm/v2/vnf_instances", "/vnflcm/v2/vnf_lcm_op_occs"
AT_WORK = frozenset({"STARTING", "PROCESSING", "ROLLING_BACK"})
WEB_PORT = 30080


class SlipwayLab(ABC):
    process: Process
    http: httpx.Client

    def __init__(self, directory: Path, sample: Path, vim: dict[str, Any]) -> None:
        self.directory = directory
        self.vnf = ""
        self.start()
        self._send("POST", "/slipway/v1/vims", {"isDefault": True, **vim})
        self.vnfd = self.onboard(sample)

    @abstractmethod
    def start(self) -> None:
        """The process, and a client for it."""

    def onboard(self, tree: Path) -> str:
        """The id of its VNFD."""
        csar = self.directory / "cluster.csar"
        build_package(tree, csar)
        package = self._send("POST", "/vnfpkgm/v1/vnf_packages", {}).json()["id"]
        content = f"/vnfpkgm/v1/vnf_packages/{package}/package_content"
        self.http.put(
            content, content=csar.read_bytes(), headers={"Content-Type": "application/zip"}
        ).raise_for_status()
        return str(self.http.get(f"/vnfpkgm/v1/vnf_packages/{package}").json()["vnfdId"])

    def kill(self) -> None:
        """kill -9"""
        self.http.close()
        self.process.end(SIGKILL)

    def recover(self) -> None:
        """Slipway runs, and whatever a stage left behind half done is rolled back, or given up."""
        self.kill()
        self.start()
        for found in self.http.get(OPERATIONS).json():
            operation = self.at_rest(found["id"], 600)
            for decision in ("rollback", "fail"):
                if operation["operationState"] == "FAILED_TEMP":
                    self.http.post(f"{OPERATIONS}/{found['id']}/{decision}")  # what can't be rolled back is given up
                    operation = self.at_rest(found["id"], 600)

    def create(self) -> None:
        self.new_vnf(self.vnfd, "cluster")

    def new_vnf(self, vnfd: str, name: str) -> str:
        """Beside the others. Operations go to `vnf`."""
        self.vnf = str(self._send("POST", INSTANCES, {"vnfdId": vnfd, "vnfInstanceName": name}).json()["id"])
        return self.vnf

    def vims(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return {vim["name"]: vim for vim in self.http.get("/slipway/v1/vims").json()}

    def begin(self, action: str, body: dict[str, Any]) -> str:
        answer = self._send("POST", f"{INSTANCES}/{self.vnf}/{action}", body)
        return answer.headers["location"].rpartition("/")[2]

    def run(self, action: str, body: dict[str, Any], state: str = "COMPLETED", within: float = 600) -> dict[str, Any]:
        return self.ended(self.begin(action, body), state, within)

    def decide(self, operation: str, decision: str, state: str, within: float = 600) -> dict[str, Any]:
        self._send("POST", f"{OPERATIONS}/{operation}/{decision}", None)
        return self.ended(operation, state, within)

    def ended(self, operation: str, state: str = "COMPLETED", within: float = 600) -> dict[str, Any]:
        found = self.at_rest(operation, within)
        assert found["operationState"] == state, found.get("error")
        return found

    def at_rest(self, operation: str, within: float) -> dict[str, Any]:
        end = time.monotonic() + within
        while time.monotonic() < end:
            found: dict[str, Any] = self.http.get(f"{OPERATIONS}/{operation}").json()
            if found["operationState"] not in AT_WORK:
                return found
            time.sleep(0.2)
        raise AssertionError(f"{operation} did not come to rest: {self.steps(operation)}")

    def steps(self, operation: str) -> dict[str, str]:
        found = self.http.get(f"/slipway/v1/operations/{operation}/steps").json()["steps"]
        return {step["id"]: step["state"] for step in found}

    def until_step(self, operation: str, step: str, state: str = "RUNNING", within: float = 300) -> None:
        end = time.monotonic() + within
        while time.monotonic() < end:
            steps = self.steps(operation)
            if steps.get(step) == state:
                return
            if "FAILED" in steps.values():
                found = self.http.get(f"{OPERATIONS}/{operation}").json()
                assert found["operationState"] in AT_WORK, found.get("error")
            time.sleep(0.05)
        raise AssertionError(f"{step} was not {state}: {self.steps(operation)}")

    def plan(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        wanted = {"vnfInstanceId": self.vnf, "operation": operation, "request": body}
        return self._send("POST", "/slipway/v1/plans", wanted).json()  # type: ignore[no-any-return]

    def shown(self) -> dict[str, Any]:
        return self.http.get(f"{INSTANCES}/{self.vnf}").json()  # type: ignore[no-any-return]

    def machines(self) -> dict[str, dict[str, Any]]:
        """VNFC resources by slot."""
        info = self.shown().get("instantiatedVnfInfo") or {}
        return {one["metadata"]["name"]: one for one in info.get("vnfcResourceInfo", ())}

    def address(self, slot: str) -> str:
        ethernet = self.machines()[slot]["vnfcCpInfo"][0]["cpProtocolInfo"][0]["ipOverEthernet"]
        return str(ethernet["ipAddresses"][0]["addresses"][0])

    def heal(self, *slots: str, state: str = "COMPLETED") -> dict[str, Any]:
        machines = self.machines()
        return self.run("heal", {"vnfcInstanceId": [machines[slot]["id"] for slot in slots]}, state)

    def scale(self, way: str, steps: int = 1, **more: Any) -> dict[str, Any]:
        return {"type": way, "aspectId": "workers", "numberOfSteps": steps, **more}

    def health(self) -> dict[str, Any]:
        return self.http.get(f"/slipway/v1/clusters/{self.vnf}", timeout=90).json()  # type: ignore[no-any-return]

    def until_healthy(self, within: float = 60) -> None:
        """Each part of a look has a few seconds, which a busy host may let pass."""
        end = time.monotonic() + within
        while problems := self.health()["problems"]:
            assert time.monotonic() < end, problems

    def cluster_kubeconfig(self) -> str:
        """That a user gets, with the cluster's own address."""
        return str(self.http.get(f"/slipway/v1/clusters/{self.vnf}/kubeconfig").json()["kubeconfig"])

    def kube(self, work: Callable[[KubeApi], Awaitable[T]]) -> T:
        text = self.cluster_kubeconfig()

        async def done() -> T:
            async with Api(from_kubeconfig(text)) as api:
                return await work(api)

        return asyncio.run(done())

    def nodes(self) -> dict[str, bool]:
        """Names in Kubernetes, and whether they are ready."""
        return {
            node["metadata"]["name"].rpartition("-")[0]: any(
                one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"]
            )
            for node in self.kube(lambda api: api.list("/api/v1/nodes"))
        }

    def all_ready(self) -> dict[str, bool]:
        """What nodes() should tell, by the record."""
        return {slot.lower(): True for slot in self.machines()}

    def web_answers(self, slot: str, within: float = 90) -> str:
        """The name of the pod that answers at a worker's port: through the Service, wherever the pod is."""
        return web_answers_at(self.address(slot), within)

    def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        answer = self.http.request(method, path, json=body, timeout=120)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer


def web_answers_at(address: str, within: float) -> str:
    end, last = time.monotonic() + within, "nothing"
    while time.monotonic() < end:
        try:
            # A connection to a pod that has just gone never comes about; the next one goes to another.
            answer = httpx.get(f"http://{address}:{WEB_PORT}/", timeout=1, trust_env=False)
            if answer.status_code == 200:
                return answer.text.strip()
            last = str(answer.status_code)
        except (httpx.HTTPError, ssl.SSLError) as error:
            last = repr(error)
        time.sleep(0.3)
    raise AssertionError(f"the web does not answer at {address}: {last}")
