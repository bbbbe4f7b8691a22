"""A Slipway process on a sandbox of real machines, and the cluster it builds there: what tests do to both."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL
from typing import Any, TypeVar

import httpx

from slipway.kube.api import Api
from slipway.kube.credentials import from_kubeconfig
from slipway.kube.seam import KubeApi
from slipway.kube.waiting import deployment_available
from slipway.model.vim import SANDBOX
from slipway.package.build import build_package
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.hands import Hands
from slipway.vim.sandbox.inventory import everything, remove
from tests.functional.processes import Process

T = TypeVar("T")
SAMPLE = Path(__file__).parents[2] / "samples" / "cluster-sandbox"
PASSWORD = "over the hills"
REPOSITORY = "registry.slipway.test"
INSTANCES, OPERATIONS = "/vnflcm/v2/vnf_instances", "/vnflcm/v2/vnf_lcm_op_occs"
AT_WORK = frozenset({"STARTING", "PROCESSING", "ROLLING_BACK"})
WEB_PORT = 30080
PARAMETERS = "k8s_cluster_installation_param"


class ClusterLab:
    def __init__(self, directory: Path, engines: Engines) -> None:
        self.directory, self.engines = directory, engines
        self.vnf = ""
        self.start()
        vim = {"name": "box", "vimType": SANDBOX, "isDefault": True, "interfaceInfo": {"endpoint": LOCAL}}
        self._send("POST", "/slipway/v1/vims", vim | {"accessInfo": {"password": PASSWORD}})
        self.vnfd = self.onboard(SAMPLE)

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

    def start(self) -> None:
        directory = self.engines.places.directory
        self.process = Process("serve", self.directory, sandbox_dir=directory, lease_seconds=10)
        self.http = self.process.client()

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
        self.vnf = self._send("POST", INSTANCES, {"vnfdId": self.vnfd, "vnfInstanceName": "cluster"}).json()["id"]

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
            if self.steps(operation).get(step) == state:
                return
            time.sleep(0.05)
        raise AssertionError(f"{step} was not {state}: {self.steps(operation)}")

    def plan(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        wanted = {"vnfInstanceId": self.vnf, "operation": operation, "request": body}
        return self._send("POST", "/slipway/v1/plans", wanted).json()  # type: ignore[no-any-return]

    def machines(self) -> dict[str, dict[str, Any]]:
        """VNFC resources by slot."""
        info = self.http.get(f"{INSTANCES}/{self.vnf}").json().get("instantiatedVnfInfo") or {}
        return {one["metadata"]["name"]: one for one in info.get("vnfcResourceInfo", ())}

    def address(self, slot: str) -> str:
        ethernet = self.machines()[slot]["vnfcCpInfo"][0]["cpProtocolInfo"][0]["ipOverEthernet"]
        return str(ethernet["ipAddresses"][0]["addresses"][0])

    def heal(self, *slots: str, state: str = "COMPLETED") -> dict[str, Any]:
        machines = self.machines()
        return self.run("heal", {"vnfcInstanceId": [machines[slot]["id"] for slot in slots]}, state)

    def scale(self, way: str, steps: int = 1, **more: Any) -> dict[str, Any]:
        return {"type": way, "aspectId": "workers", "numberOfSteps": steps, **more}

    def cut_power(self, slot: str) -> None:
        self.engines.hands(LOCAL).engine.kill(self.machines()[slot]["computeResource"]["resourceId"])

    def cut_power_of_new(self, slot: str) -> None:
        """Of a machine that an operation under way has made, and that the record does not know yet."""
        hands = self.engines.hands(LOCAL)
        (machine,) = (one for one in everything(hands)[str(self.vnf)].machines if one.name == slot)
        hands.engine.kill(machine.resource_id)

    def inside(self, slot: str, *command: str) -> str:
        machine = self.machines()[slot]["computeResource"]["resourceId"]
        code, printed = self.engines.hands(LOCAL).engine.execute(machine, list(command))
        assert code == 0, printed
        return printed

    @contextmanager
    def ssh_cut(self, slot: str) -> Iterator[None]:
        rule = ("INPUT", "-p", "tcp", "--dport", "22", "-j", "DROP")
        self.inside(slot, "iptables", "-I", *rule)
        try:
            yield
        finally:
            self.inside(slot, "iptables", "-D", *rule)

    def health(self) -> dict[str, Any]:
        return self.http.get(f"/slipway/v1/clusters/{self.vnf}", timeout=90).json()  # type: ignore[no-any-return]

    def kube(self, work: Callable[[KubeApi], Awaitable[T]]) -> T:
        """By the kubeconfig that a user gets, at the cluster's own address."""
        text = self.http.get(f"/slipway/v1/clusters/{self.vnf}/kubeconfig").json()["kubeconfig"]

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
        return _web_answers_at(self.address(slot), within)

    def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        answer = self.http.request(method, path, json=body, timeout=120)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer


def _web_answers_at(address: str, within: float) -> str:
    end, last = time.monotonic() + within, "nothing"
    while time.monotonic() < end:
        try:
            answer = httpx.get(f"http://{address}:{WEB_PORT}/", timeout=5, trust_env=False)
            if answer.status_code == 200:
                return answer.text.strip()
            last = str(answer.status_code)
        except (httpx.HTTPError, ssl.SSLError) as error:
            last = repr(error)
        time.sleep(0.3)
    raise AssertionError(f"the web does not answer at {address}: {last}")


@contextmanager
def a_lab(directory: Path, engines: Engines) -> Iterator[ClusterLab]:
    """Whatever comes of it, no machine is left."""
    lab = ClusterLab(directory, engines)
    try:
        yield lab
    finally:
        lab.kill()
        clear(engines.hands(LOCAL))


def clear(hands: Hands) -> None:
    for instance_id, holdings in everything(hands).items():
        remove(hands, instance_id, holdings)


@contextmanager
def web_never_silent(lab: ClusterLab, slot: str) -> Iterator[None]:
    """While this is open somebody asks all the time, and is answered within seconds each time."""
    over, failures, address = threading.Event(), [], lab.address(slot)

    def ask() -> None:
        while not over.is_set():
            try:
                _web_answers_at(address, within=5)
            except AssertionError as error:
                failures.append(error)
            over.wait(0.2)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()
    if failures:
        raise AssertionError("; ".join(str(failure) for failure in failures))


def parameters(**more: Any) -> dict[str, Any]:
    """As a user of the sandbox gives them."""
    login = {"username": "slipway", "password": PASSWORD}
    masters = {"ssh_cp_name": "masterNode_CP1", **login, **more.pop("master_node", {})}
    workers = {"ssh_cp_name": "workerNode_CP1", **login}
    return {PARAMETERS: {"master_node": masters, "worker_node": workers, "image_repository": REPOSITORY, **more}}


def web(replicas: int = 2) -> list[dict[str, Any]]:
    """Pods that tell their name, behind a Service at a port of every node."""
    label = {"app": "web"}
    serve = "mkdir -p /tmp/www; hostname >/tmp/www/index.html; exec httpd -f -p 80 -h /tmp/www"
    container = {
        "name": "web",
        "image": f"{REPOSITORY}/tools:1",
        "command": ["sh", "-c", serve],
        "readinessProbe": {"httpGet": {"port": 80, "path": "/index.html"}, "periodSeconds": 1},
        # As anybody has it who wants no gap: it answers until every node has heard that it goes.
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
    }
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
              "labelSelector": {"matchLabels": label}}  # fmt: skip
    pod = {"terminationGracePeriodSeconds": 7, "topologySpreadConstraints": [spread], "containers": [container]}
    template = {"metadata": {"labels": label}, "spec": pod}
    ports = [{"port": 80, "nodePort": WEB_PORT}]
    metadata = {"name": "web", "namespace": "default"}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": replicas, "selector": {"matchLabels": label}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"type": "NodePort", "selector": label, "ports": ports},
        },
    ]


def move_web_to(lab: ClusterLab, slot: str) -> None:
    """One of its pods at least."""
    names = [node["metadata"]["name"] for node in lab.kube(lambda api: api.list("/api/v1/nodes"))]
    node = next(name for name in names if name.startswith(slot.lower()))
    deployment = web(replicas=2)[0]
    wish = {
        "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
        "weight": 100,
    }
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
    spec = deployment["spec"]["template"]["spec"]
    spec["affinity"] = {"nodeAffinity": preferred}
    spec["topologySpreadConstraints"] = []
    lab.kube(lambda api: api.apply(deployment))
    end = time.monotonic() + 120
    while time.monotonic() < end:
        pods = lab.kube(lambda api: api.list("/api/v1/namespaces/default/pods", labelSelector="app=web"))
        running = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        if any(pod["spec"].get("nodeName") == node for pod in running) and len(running) == 2:
            lab.kube(lambda api: deployment_available(api, "default", "web", 60))
            return
        time.sleep(0.3)
    raise AssertionError(f"no pod of the web runs on {slot}")


def budget(least: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}},
    }
