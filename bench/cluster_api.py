"""Workload clusters on the lab's Cluster API: ten VNFs by Slipway, and the same objects applied by hand.

python -m bench.cluster_api      these alone; the lab's programs are built the first time (lab/cluster-api)

By hand it is what `kubectl apply` and waiting for the conditions do. Machines are those of the in-memory provider, so
what is measured beside Slipway is what Cluster API's own controllers take.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from bench import figures
from bench.lifecycle import INSTANCES, OPERATIONS, create, upload
from bench.server import Server, serving

ROOT = Path(__file__).parents[1]
LAB, SAMPLE = ROOT / "lab", ROOT / "samples" / "workload-cluster"
CLUSTERS = 10
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


def by_slipway(server: Server, vnfd_id: str, kubeconfig: str) -> float:
    from slipway.kube.credentials import from_kubeconfig
    from slipway.model.vim import KUBERNETES

    who = from_kubeconfig(kubeconfig)
    access = {"client_certificate": who.client_certificate, "client_key": who.client_key}
    vim = {
        "vimType": KUBERNETES,
        "interfaceInfo": {"endpoint": who.server, "ssl_ca_cert": who.ca},
        "accessInfo": access,
    }
    namespaces = asyncio.run(_namespaces(kubeconfig, "slipway"))
    with server.client as client:
        client.post("/slipway/v1/vims", json={"name": "management", "isDefault": True, **vim}).raise_for_status()
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


def by_hand(kubeconfig: str) -> float:
    namespaces = asyncio.run(_namespaces(kubeconfig, "by-hand"))
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
        return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as directory:
        place = Path(directory)
        with management_cluster(place / "lab") as kubeconfig, serving(place / "data") as server:
            ours = by_slipway(server, upload(server, SAMPLE, place / "workload.csar"), kubeconfig)
            print(f"  {CLUSTERS} workload clusters by Slipway: {ours:.1f} s", flush=True)
            theirs = by_hand(kubeconfig)
            print(f"  {CLUSTERS} workload clusters by hand: {theirs:.1f} s", flush=True)
        print(figures.CLUSTER_API.line(ours / theirs), flush=True)


if __name__ == "__main__":
    main()
