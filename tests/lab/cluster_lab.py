"""A Slipway process on a sandbox of real machines, and the cluster it builds there: what tests do to both."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slipway.kube.waiting import wait_for_deployment
from slipway.model.vim import SANDBOX
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything, remove
from tests.functional.processes import Process
from tests.lab.slipway_lab import WEB_PORT, SlipwayLab, web_answers_at

SAMPLE = Path(__file__).parents[2] / "samples" / "cluster-sandbox"
PASSWORD = "over the hills"
REPOSITORY = "registry.slipway.test"
PARAMETERS = "k8s_cluster_installation_param"
# Words of the sample, for a package with fewer machines.
ONE_WORKER = {
    "min_number_of_instances: 2": "min_number_of_instances: 1",
    "number_of_instances: 2": "number_of_instances: 1",
}


class ClusterLab(SlipwayLab):
    def __init__(self, directory: Path, engines: Engines) -> None:
        self.engines = engines
        access = {"interfaceInfo": {"endpoint": LOCAL}, "accessInfo": {"password": PASSWORD}}
        super().__init__(directory, SAMPLE, {"name": "box", "vimType": SANDBOX, **access})

    def start(self) -> None:
        directory = self.engines.paths.directory
        self.process = Process("serve", self.directory, sandbox_dir=directory, lease_seconds=10)
        self.http = self.process.client()

    def cut_power(self, slot: str) -> None:
        self.engines.operations(LOCAL).engine.kill(self.machines()[slot]["computeResource"]["resourceId"])

    def cut_power_of_new(self, slot: str) -> None:
        """Of a machine that an operation under way has made, and that the record does not know yet."""
        operations = self.engines.operations(LOCAL)
        (machine,) = (one for one in everything(operations)[str(self.vnf)].machines if one.name == slot)
        operations.engine.kill(machine.resource_id)

    def inside(self, slot: str, *command: str) -> str:
        machine = self.machines()[slot]["computeResource"]["resourceId"]
        code, printed = self.engines.operations(LOCAL).engine.execute(machine, list(command))
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


@contextmanager
def a_lab(directory: Path, engines: Engines) -> Iterator[ClusterLab]:
    """Whatever comes of it, no machine is left."""
    lab = ClusterLab(directory, engines)
    try:
        yield lab
    finally:
        lab.kill()
        clear(engines.operations(LOCAL))


def clear(host: EngineOperations) -> None:
    for instance_id, holdings in everything(host).items():
        remove(host, instance_id, holdings)


@contextmanager
def web_never_silent(lab: ClusterLab, slot: str) -> Iterator[None]:
    """While this is open somebody asks all the time, and is answered within seconds each time."""
    over, failures, address = threading.Event(), [], lab.address(slot)

    def ask() -> None:
        while not over.is_set():
            try:
                web_answers_at(address, within=5)
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
            lab.kube(lambda api: wait_for_deployment(api, "default", "web", 60))
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
