"""Workload clusters on the lab's Cluster API: ten VNFs by Slipway, and the same objects applied by hand, by turns.

python -m bench.cluster_api      these alone; the lab's programs are built the first time (lab/cluster-api)

By hand it is what `kubectl apply` and waiting for the conditions do. Machines are those of the in-memory provider, so
what is measured beside Slipway is what Cluster API's own controllers take. The first turn warms them up and does not
count; in those that do, now one begins and now the other, and the clusters of each are gone before the next ones come.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import yaml

from bench import figures
from bench.lifecycle import INSTANCES, OPERATIONS, create, upload
from bench.server import Server, serving

ROOT = Path(__file__).parents[1]
LAB, SAMPLE = ROOT / "lab", ROOT / "samples" / "workload-cluster"
CLUSTERS, TURNS = 10, 4
LOOK = 0.5  # seconds
PATIENCE = 1800.0
WAITED_FOR = ("Cluster", "KubeadmControlPlane", "MachineDeployment")


@contextmanager
def management_cluster(place: Path) -> Iterator[str]:
    """Its kubeconfig."""
    folders = ("kubernetes", "cluster-api")
    programs = os.environ.get("LAB_PROGRAMS") or os.pathsep.join(
        _output([sys.executable, LAB / folder / "programs"]) for folder in folders
    )
    environment = {**os.environ, "LAB_DIR": str(place), "LAB_PROGRAMS": programs}
    script = [sys.executable, str(LAB / "cluster-api" / "management-cluster")]
    try:
        yield Path(_output([*script, "up"], environment)).read_text()
    finally:
        subprocess.run([*script, "down", "--purge"], env=environment, check=True)


def _output(command: list[Any], environment: dict[str, str] | None = None) -> str:
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def register(server: Server, kubeconfig: str) -> None:
    from slipway.kube.credentials import from_kubeconfig
    from slipway.model.vim import KUBERNETES

    who = from_kubeconfig(kubeconfig)
    access = {"client_certificate": who.client_certificate, "client_key": who.client_key}
    vim = {
        "vimType": KUBERNETES,
        "interfaceInfo": {"endpoint": who.server, "ssl_ca_cert": who.ca},
        "accessInfo": access,
    }
    with server.client as client:
        client.post("/slipway/v1/vims", json={"name": "management", "isDefault": True, **vim}).raise_for_status()


def by_turns(measurements: dict[str, Callable[[str], float]]) -> dict[str, list[float]]:
    """Seconds of each, by its name. Each is given a name of its own for what it makes."""
    seconds: dict[str, list[float]] = {name: [] for name in measurements}
    order = list(measurements)
    for turn in range(TURNS):
        for name in order:
            seconds[name].append(measurements[name](f"{name.replace(' ', '-')}-{turn}".lower()))
        order.reverse()
    return {name: found[1:] for name, found in seconds.items()}


def by_slipway(server: Server, vnfd_id: str, kubeconfig: str, prefix: str) -> float:
    namespaces = asyncio.run(_namespaces(kubeconfig, prefix))
    with server.client as client:
        vnfs = [create(client, vnfd_id) for _ in namespaces]
        requests = [
            {"flavourId": "in-memory", "additionalParams": {"namespace": name, "cluster_api": {"register_vim": {}}}}
            for name in namespaces
        ]
        began = time.perf_counter()
        _all(client, "instantiate", dict(zip(vnfs, requests, strict=True)))
        seconds = time.perf_counter() - began
        _all(client, "terminate", {vnf: {"terminationType": "FORCEFUL"} for vnf in vnfs})
    return seconds


def by_hand(kubeconfig: str, prefix: str) -> float:
    namespaces = asyncio.run(_namespaces(kubeconfig, prefix))
    return asyncio.run(_by_hand(kubeconfig, namespaces))


def _all(client: httpx.Client, action: str, requests: dict[str, dict[str, Any]]) -> None:
    waiting = []
    for vnf, request in requests.items():
        answer = client.post(f"{INSTANCES}/{vnf}/{action}", json=request)
        answer.raise_for_status()
        waiting.append(answer.headers["location"].rpartition("/")[2])
    end = time.monotonic() + PATIENCE
    while waiting:
        operation = client.get(f"{OPERATIONS}/{waiting[0]}").json()
        if operation["operationState"] == "COMPLETED":
            waiting.pop(0)
        elif operation["operationState"].startswith("FAILED") or time.monotonic() > end:
            raise SystemExit(f"{action}: {operation['operationState']}: {operation.get('error')}")
        else:
            time.sleep(LOOK)


async def _namespaces(kubeconfig: str, prefix: str) -> list[str]:
    from slipway.kube.api import Api
    from slipway.kube.credentials import from_kubeconfig

    names = [f"{prefix}-{number}" for number in range(CLUSTERS)]
    async with Api(from_kubeconfig(kubeconfig)) as api:
        for name in names:
            await api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return names


async def _by_hand(kubeconfig: str, namespaces: list[str]) -> float:
    from slipway.kube.api import Api
    from slipway.kube.credentials import from_kubeconfig
    from slipway.kube.deletion import Doomed, delete, wait_gone
    from slipway.kube.interface import ObjectRef
    from slipway.kube.readiness_rules import read_rules
    from slipway.kube.wait_ready import wait_ready

    files = SAMPLE / "Files" / "kubernetes"
    names = ("in-memory/cluster.yaml", "cni.yaml", "cni-manifests.yaml")
    objects = [one for name in names for one in yaml.safe_load_all((files / name).read_text()) if one]
    rules = read_rules(yaml.safe_load((files / "readiness.yaml").read_text())["rules"], "readiness.yaml")
    placed = [{**one, "metadata": {**one["metadata"], "namespace": name}} for name in namespaces for one in objects]
    refs = [
        ObjectRef(one["apiVersion"], one["kind"], one["metadata"]["name"], one["metadata"]["namespace"])
        for one in placed
        if one["kind"] in WAITED_FOR
    ]
    async with Api(from_kubeconfig(kubeconfig)) as api:
        began = time.perf_counter()
        await asyncio.gather(*(api.apply(one) for one in placed))
        await wait_ready(api, refs, rules, PATIENCE)
        seconds = time.perf_counter() - began
        gone = [Doomed(one) for one in refs if one.kind == "Cluster"]  # its machines go with it
        await asyncio.gather(*(delete(api, one) for one in gone))
        await wait_gone(api, gone, PATIENCE)
        return seconds


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as directory:
        place = Path(directory)
        with management_cluster(place / "lab") as kubeconfig, serving(place / "data") as server:
            register(server, kubeconfig)
            vnfd_id = upload(server, SAMPLE, place / "workload.csar")
            ours, theirs = "by Slipway", "by hand"
            seconds = by_turns(
                {ours: partial(by_slipway, server, vnfd_id, kubeconfig), theirs: partial(by_hand, kubeconfig)}
            )
        for who, found in seconds.items():
            print(f"  {CLUSTERS} workload clusters {who}: {', '.join(f'{one:.1f}' for one in found)} s", flush=True)
        ratio = statistics.median(seconds[ours]) / statistics.median(seconds[theirs])
        print(figures.CLUSTER_API.line(ratio), flush=True)


if __name__ == "__main__":
    main()
