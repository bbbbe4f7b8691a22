"""A real cluster by Slipway, and the same by hand: the same machines, scripts and kubeadm commands, typed without it.

What is by hand goes by plain ssh and kubectl, everything at once that can be, as a person with a good script would do
it. Both need root, and the sandbox's Kubernetes image.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from bench.lifecycle import INSTANCES, create, upload
from bench.server import Server
from slipway.cluster.containerd_config import containerd_toml
from slipway.cluster.flannel import flannel_manifests
from slipway.cluster.kubeadm_config import ClusterShape, JoinCredentials, NodeShape, as_yaml, init_documents
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.steps.machine import SCRIPTS
from slipway.cluster.steps.prepare import SYSCTLS
from slipway.cluster.values import Secret
from slipway.cluster.versions import Version
from slipway.kube.bootstrap import new_token
from slipway.model.machine import FoundMachine, Machine, Network, Port
from slipway.model.vim import SANDBOX
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox.connection import LOCAL, Access
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.engine_images import ensure_kubernetes
from slipway.vim.sandbox.inventory import everything, remove
from slipway.vim.sandbox.paths import SandboxPaths, default_cache

SAMPLE = Path(__file__).parents[1] / "samples" / "cluster-sandbox"
REPOSITORY = "registry.slipway.test"
VERSION = Version(1, 34, 4)
PASSWORD = "over the hills"  # noqa: S105 - of machines that live for a minute on a bridge of this host
PAUSE = VERSION.needs.pause


@contextmanager
def sandbox() -> Iterator[Engines]:
    engines = Engines(SandboxPaths(default_cache() / "sandbox-bench", default_cache()), {}, ())
    operations = engines.operations(LOCAL)
    try:
        ensure_kubernetes(operations.engine, engines.paths, operations.locks, lambda said: None)
        clear(operations)
        yield engines
    finally:
        clear(operations)
        engines.close()
        engines.service.stop()


def clear(operations: EngineOperations) -> None:
    for instance_id, holdings in everything(operations).items():
        remove(operations, instance_id, holdings)


def by_slipway(server: Server, place: Path) -> float:
    """Seconds from the request to COMPLETED."""
    login = {"username": "slipway", "password": PASSWORD}
    nodes = {f"{role}_node": {"ssh_cp_name": f"{role}Node_CP1", **login} for role in ("master", "worker")}
    parameters = {"k8s_cluster_installation_param": {**nodes, "image_repository": REPOSITORY}}
    with server.client as client:
        vim = {"name": "box", "vimType": SANDBOX, "interfaceInfo": {"endpoint": LOCAL}, "isDefault": True}
        client.post("/slipway/v1/vims", json=vim | {"accessInfo": {"password": PASSWORD}}).raise_for_status()
        vnf = create(client, upload(server, SAMPLE, place / "cluster.csar"))
        began = time.perf_counter()
        body = {"flavourId": "simple", "additionalParams": parameters}
        begun = client.post(f"{INSTANCES}/{vnf}/instantiate", json=body)
        begun.raise_for_status()
        while (found := client.get(begun.headers["location"]).json())["operationState"] in ("STARTING", "PROCESSING"):
            time.sleep(0.1)
        if found["operationState"] != "COMPLETED":
            raise SystemExit(f"the cluster was not built: {found.get('error')}")
    return time.perf_counter() - began


def by_hand(engines: Engines) -> float:
    began = time.perf_counter()
    asyncio.run(_built(engines))
    return time.perf_counter() - began


async def _built(engines: Engines) -> None:
    machines = await _machines(engines)
    master, *workers = machines
    key = engines.paths.key
    await asyncio.gather(*(_prepared(key, machine, is_master=machine is master) for machine in machines))
    address = _address(master)
    networks = ClusterNetworks(pods="192.168.0.0/16", services="10.96.0.0/12", node_prefix=24)
    shape = ClusterShape(name="by-hand", version=VERSION, address=address, balanced=False, networks=networks,
                         image_repository=REPOSITORY)  # fmt: skip
    ticket = JoinCredentials(token=Secret(new_token()), ca_cert_hashes=())
    config = as_yaml(init_documents(shape, NodeShape(name="master", address=address), ticket))
    await _ssh(key, master, "cat >/root/init.yaml && kubeadm init --config /root/init.yaml", config.encode())
    kubectl = "KUBECONFIG=/etc/kubernetes/admin.conf kubectl"
    manifests = yaml.safe_dump_all(flannel_manifests(networks.pods, REPOSITORY)).encode()
    join, _ = await asyncio.gather(
        _ssh(key, master, "kubeadm token create --print-join-command"),
        _ssh(key, master, f"{kubectl} apply -f -", manifests),
    )
    names = [f"--node-name worker-{number}" for number in range(len(workers))]
    await asyncio.gather(*(_ssh(key, one, f"{join.strip()} {name}") for one, name in zip(workers, names, strict=True)))
    await _ssh(key, master, f"{kubectl} wait --for=condition=Ready nodes --all --timeout=300s")
    await _ssh(key, master, f"{kubectl} -n kube-system rollout status deployment/coredns --timeout=300s")
    await _ssh(key, master, f"{kubectl} run smoke --image {REPOSITORY}/pause:{PAUSE} && "
                            f"{kubectl} wait --for=condition=Ready pod/smoke --timeout=300s")  # fmt: skip
    account = [
        f"{kubectl} -n kube-system create serviceaccount admin",
        f"{kubectl} create clusterrolebinding admin --clusterrole cluster-admin --serviceaccount kube-system:admin",
        f"{kubectl} -n kube-system create token admin",
    ]
    await _ssh(key, master, " && ".join(account))


async def _machines(engines: Engines) -> list[FoundMachine]:
    operations, maker = engines.operations(LOCAL), Maker(str(uuid.uuid4()), "bench")
    network = Network(id=str(uuid.uuid4()), name="net")
    await asyncio.to_thread(operations.make_network, network, maker)

    def make(name: str) -> FoundMachine:
        port = Port(id=str(uuid.uuid4()), name="cp", network=network.id)
        machine = Machine(id=str(uuid.uuid4()), name=name, vdu=name, image="kubernetes", ports=(port,))
        return operations.make_machine(machine, maker, Access())

    names = ("master", "worker-0", "worker-1")
    return list(await asyncio.gather(*(asyncio.to_thread(make, name) for name in names)))


async def _prepared(key: Path, machine: FoundMachine, *, is_master: bool) -> None:
    files = {
        "etc/containerd/config.toml": containerd_toml(PAUSE, REPOSITORY),
        "etc/sysctl.d/90-slipway-kubernetes.conf": SYSCTLS,
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    await _ssh(key, machine, "tar -C / -xf -", packed.getvalue(), patience=60)
    await _ssh(key, machine, "sh -s '' yes", (SCRIPTS / "prepare.sh").read_bytes())
    archives = "node master" if is_master else "node"
    await _ssh(key, machine, f"sh -s {archives}", (SCRIPTS / "import_images.sh").read_bytes())


async def _ssh(key: Path, machine: FoundMachine, command: str, stdin: bytes = b"", patience: float = 0) -> str:
    """As root. `patience`: seconds that the machine has to come up."""
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=2")
    words = ["ssh", "-i", str(key), *(word for one in options for word in ("-o", one)), f"slipway@{_address(machine)}"]
    end = time.monotonic() + patience
    while True:
        process = await asyncio.create_subprocess_exec(
            *words, "sudo", "sh", "-c", f"'{command.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate(stdin)
        if process.returncode == 0:
            return out.decode()
        if process.returncode != 255 or time.monotonic() > end:
            raise SystemExit(f"by hand, {machine.name}: {command}: {err.decode()[-500:]}")
        await asyncio.sleep(0.1)


def _address(machine: FoundMachine) -> str:
    return str(machine.ports[0].address)
