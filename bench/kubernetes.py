"""On the lab's API server: calls that each operation makes, 200 objects applied by Slipway and by `kubectl apply`, and
what watching 1000 pods takes.

python -m bench.kubernetes      these alone; the lab's programs are built the first time (lab/kubernetes)
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from bench import figures

if TYPE_CHECKING:
    from slipway.kube.api import Api

LAB = Path(__file__).parents[1] / "lab" / "kubernetes"
OBJECTS, PODS, TURNS = 200, 1000, 3
COUNTED = 30  # objects of the CNF whose operations are counted


@dataclass(frozen=True)
class ControlPlane:
    kubeconfig: Path
    kubectl: Path


@contextmanager
def lab(place: Path) -> Iterator[ControlPlane]:
    programs = os.environ.get("LAB_PROGRAMS") or _output([sys.executable, LAB / "programs"])
    environment = {**os.environ, "LAB_DIR": str(place), "LAB_PROGRAMS": programs}
    try:
        kubeconfig = _output([LAB / "control-plane", "up"], environment)
        yield ControlPlane(Path(kubeconfig), _kubectl())
    finally:
        subprocess.run([LAB / "control-plane", "down", "--purge"], env=environment, check=True)


def _kubectl() -> Path:
    """From the cache that the lab's other programs are in."""
    from slipway.vim.sandbox.image.kubernetes import programs
    from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
    from slipway.vim.sandbox.image.kubernetes.versions import DEFAULT, RELEASES
    from slipway.vim.sandbox.paths import default_cache

    cache = ProgramCache(default_cache() / "kubernetes", lambda said: print(f"  {said}", file=sys.stderr))
    return cache.built(programs.command(RELEASES[DEFAULT], "kubectl"))


def _output(command: list[Any], environment: dict[str, str] | None = None) -> str:
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def applied(plane: ControlPlane, place: Path) -> tuple[list[float], list[float]]:
    """Seconds by Slipway and by kubectl, by turns, each turn in namespaces of their own."""
    ours, theirs = [], []
    for _ in range(TURNS):
        ours.append(uvloop.run(_by_slipway(plane)))  # as Slipway's own processes run
        theirs.append(_by_kubectl(plane, place))
    return ours, theirs


def manifests(namespace: str) -> list[dict[str, Any]]:
    """Half of them ConfigMaps, a quarter each Services and ServiceAccounts."""

    def one(number: int) -> dict[str, Any]:
        metadata = {"name": f"object-{number}", "namespace": namespace}
        if number % 2:
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * 500}}
        if number % 4:
            return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        spec = {"selector": {"app": "bench"}, "ports": [{"port": 80}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}

    return [one(number) for number in range(OBJECTS)]


async def _by_slipway(plane: ControlPlane) -> float:
    from slipway.kube.api import Api
    from slipway.kube.apply import apply
    from slipway.kube.credentials import from_kubeconfig
    from slipway.kube.ownership import Owner

    namespace = f"slipway-{uuid.uuid4().hex[:8]}"
    async with Api(from_kubeconfig(plane.kubeconfig.read_text())) as api:
        await api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    began = time.perf_counter()
    async with Api(from_kubeconfig(plane.kubeconfig.read_text())) as api:
        await asyncio.gather(*(apply(api, one, Owner("bench", "bench")) for one in manifests(namespace)))
    return time.perf_counter() - began


def _by_kubectl(plane: ControlPlane, place: Path) -> float:
    namespace, file = f"kubectl-{uuid.uuid4().hex[:8]}", place / "objects.json"
    kubectl = [plane.kubectl, "--kubeconfig", plane.kubeconfig]
    _output([*kubectl, "create", "namespace", namespace])
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests(namespace)}))
    began = time.perf_counter()
    _output([*kubectl, "apply", "-f", file])
    return time.perf_counter() - began


async def calls(plane: ControlPlane) -> dict[str, Counter[str]]:
    """Of each operation on a CNF, by verb."""
    from slipway.kube.api import Api
    from slipway.kube.credentials import from_kubeconfig
    from tests.lab.kube.fake_kubelet import fake_node
    from tests.lab.kubernetes.conftest import vim_of
    from tests.lab.kubernetes.counted_calls import calls_of_operations

    who = from_kubeconfig(plane.kubeconfig.read_text())
    async with Api(who) as api:
        await _until_pods_can_be(api)
        async with fake_node(api):
            return await calls_of_operations(vim_of(who, "default"), COUNTED)


def watching(plane: ControlPlane) -> float:
    """MiB by which a process grows that has listed the pods and watches them, in a process of its own."""
    asyncio.run(_make_pods(plane))
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        return processes.apply(_grown, (plane.kubeconfig.read_text(),))


async def _make_pods(plane: ControlPlane) -> None:
    from slipway.kube.api import Api
    from slipway.kube.credentials import from_kubeconfig

    async with Api(from_kubeconfig(plane.kubeconfig.read_text())) as api:
        await _until_pods_can_be(api)
        container = {"name": "main", "image": "registry.slipway.test/pause:1"}
        spec = {"containers": [container], "schedulingGates": [{"name": "slipway.io/bench"}]}
        pods = [{"metadata": {"name": f"pod-{number}"}, "spec": spec} for number in range(PODS)]
        await asyncio.gather(*(api.create("/api/v1/namespaces/default/pods", pod) for pod in pods))


async def _until_pods_can_be(api: Api) -> None:
    """They need the account that a controller makes."""
    from slipway.kube.interface import ObjectRef
    from slipway.kube.wait_ready import wait_ready

    await wait_ready(api, [ObjectRef("v1", "ServiceAccount", "default", "default")], (), 60)


def _grown(kubeconfig: str) -> float:
    async def watch() -> float:
        from slipway.kube.api import Api
        from slipway.kube.credentials import from_kubeconfig
        from slipway.kube.watch import Selection, Watch
        from slipway.vim.kubernetes.vnfcs import slim

        async with Api(from_kubeconfig(kubeconfig)) as api:
            pods = Selection(await api.discovery.resource("v1", "Pod"), "default")
            before = _rss_mib()
            async with Watch(api, [pods], slim) as found:
                while not found.complete or len(found.objects) < PODS:
                    if not await found.changed(60):
                        raise SystemExit("the pods are not seen")
                return _rss_mib() - before

    return asyncio.run(watch())


def _rss_mib() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as directory:
        place = Path(directory)
        with lab(place / "control-plane") as plane:
            for operation, counted in asyncio.run(calls(plane)).items():
                told = ", ".join(f"{number} {verb}" for verb, number in sorted(counted.items()))
                print(f"  calls of {operation} of a CNF of {COUNTED} objects: {told}", flush=True)
            ours, theirs = applied(plane, place)
            for who, seconds in (("by Slipway", ours), ("by kubectl", theirs)):
                print(f"  {OBJECTS} objects {who}: {', '.join(f'{one:.2f}' for one in seconds)} s")
            print(figures.KUBE_APPLY.line(statistics.median(ours) / statistics.median(theirs)), flush=True)
            print(figures.KUBE_WATCH.line(watching(plane)), flush=True)


if __name__ == "__main__":
    main()
