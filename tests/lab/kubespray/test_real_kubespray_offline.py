"""The real kubespray builds a cluster on machines of the sandbox, as far as that goes without the internet.

KUBESPRAY_CHECKOUT names its directory, as in test_real_kubespray.py. The inventory, the group variables and the way it
is run are Slipway's. Beside them kubespray is given its own variables for places without the internet, for a server on
this host has the programs. lab/kubespray-stand-in/README.md says what is left out.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.cluster.containerd_config import containerd_toml
from slipway.cluster.spec import Node, SshLogin
from slipway.kubespray.group_vars import cluster_variables, login_variables
from slipway.kubespray.inventory import InventoryHost, as_yaml, hosts_yaml, known_hosts
from slipway.kubespray.steps.server import SCRIPTS
from slipway.model.action import VimConnection
from slipway.model.machine import FoundMachine, Machine, Port
from slipway.remote.quoting import run_script
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.versions import DEFAULT, RELEASES, REPOSITORY
from slipway.vim.sandbox.paths import default_cache
from tests.lab.file_server import Server, serving
from tests.lab.kubespray.test_real_kubespray import NETWORKS, kubespray
from tests.lab.test_sandbox_machines import one_machine, reached

__all__ = ["kubespray"]

pytestmark = [
    pytest.mark.group(name="kubespray"),
    # Before any fixture: they would bring images into an engine first.
    pytest.mark.skipif(not os.environ.get("KUBESPRAY_CHECKOUT"), reason="KUBESPRAY_CHECKOUT names no directory"),
]
CIDR, GATEWAY = "10.207.78.0/24", "10.207.78.1"
MASTER, WORKER = "master-1", "worker-1"
CERTIFICATE_NAME = "192.0.2.200"  # as of a load balancer
ETCD = f"etcd-v{RELEASES[DEFAULT].etcd}-linux-amd64"
MINUTES = 15  # four on a busy machine, more where its disk is slow
UNUSED = ("crictl", "runc", "containerd", "nerdctl")  # the machines have a container engine: nothing is unpacked
CONTAINERD = containerd_toml(RELEASES[DEFAULT].pause, REPOSITORY)
PREPARE = """
for name in node master; do ctr -n k8s.io images import /usr/share/slipway/images/$name.tar >/dev/null; done
systemctl restart containerd
"""
# A machine of the sandbox shares the host's kernel, disks and name resolution, and the lab has these images alone.
OF_THE_SANDBOX = {
    "deploy_container_engine": False,
    "download_container": False,
    "download_retries": 1,
    "etcd_image_repo": f"{REPOSITORY}/etcd",
    "etcd_image_tag": f"{RELEASES[DEFAULT].etcd}-0",
    "etcd_version": RELEASES[DEFAULT].etcd,
    "coredns_image_repo": f"{REPOSITORY}/coredns",
    "enable_dns_autoscaler": False,
    "enable_nodelocaldns": False,
    "loadbalancer_apiserver_localhost": False,
    "kube_proxy_mode": "iptables",
    "kube_proxy_conntrack_max_per_core": 0,
    "kube_proxy_conntrack_min": 0,
    "kubeadm_ignore_preflight_errors": ["SystemVerification"],
    "kubelet_fail_swap_on": False,
    "resolvconf_mode": "none",
    "sysctl_ignore_unknown_keys": True,
}


@pytest.fixture
async def machines(
    driver: SandboxDriver, connection: VimConnection, kubernetes_engines: Engines, operations: EngineOperations
) -> list[FoundMachine]:
    """Two, with the lab's images in their containerd, and with the one program of Debian's that they lack."""
    wanted = one_machine(cidr=CIDR)
    network = wanted.networks[0].id
    both = tuple(
        Machine(id=f"real-{name}", name=name, vdu="node", image="kubernetes",
                ports=(Port(id=f"real-{name}-p", name="CP1", network=network),))
        for name in (MASTER, WORKER)
    )  # fmt: skip
    found = await reached(driver, connection, msgspec.structs.replace(wanted, machines=both))
    no_modules = b"#!/bin/sh\nexit 1\n"  # what modinfo says of a module that is built into the kernel
    files = {"etc/containerd/config.toml": (CONTAINERD.encode(), 0o644), "usr/sbin/modinfo": (no_modules, 0o755)}
    for machine in found.machines:
        operations.engine.put(machine.resource_id, archive(files))
        code, said = operations.engine.execute(machine.resource_id, ["sh", "-ec", PREPARE])
        assert code == 0, said
    return sorted(found.machines, key=lambda machine: machine.name)


@pytest.fixture
def server(machines: list[FoundMachine], operations: EngineOperations, tmp_path: Path) -> Iterator[Server]:
    """What kubespray would download, as far as the lab has it."""
    cache = ProgramCache(default_cache() / "kubernetes", print)
    web = tmp_path / "web"
    web.mkdir()
    for name, program in cache.kubernetes(RELEASES[DEFAULT]).files.items():
        if name in ("kubeadm", "kubelet", "kubectl"):
            (web / name).symlink_to(program)
    etcdctl = cache.built(programs.etcdctl(RELEASES[DEFAULT].etcd)).read_bytes()
    # The lab has no etcdutl: kubespray installs it, and does not call it here.
    (web / "etcd").write_bytes(archive({f"{ETCD}/{name}": (etcdctl, 0o755) for name in ("etcdctl", "etcdutl")}))
    (web / "cni").write_bytes(archive({"none": (b"", 0o644)}))  # the machines have the plugins
    for name in UNUSED:
        (web / name).write_bytes(archive({"none": (b"", 0o644)}))
    with serving(GATEWAY, web, {}) as server:
        yield server


def archive(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """Of contents and modes."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz", compresslevel=1) as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def offline(server: Server) -> dict[str, str]:
    """Where the programs are, and their checksums: those of the lab's are its own."""
    checksums = {name: f"{name}_binary_checksum" for name in ("kubeadm", "kubelet", "kubectl", "cni", "crictl", "runc")}
    checksums |= {"etcd": "etcd_binary_checksum", "containerd": "containerd_checksum"}
    checksums |= {"nerdctl": "nerdctl_archive_checksum"}
    found = {}
    for name, checksum in checksums.items():
        digest = hashlib.sha256((server.directory / name).read_bytes()).hexdigest()
        found[f"{name}_download_url"] = f"http://{GATEWAY}:{server.server_address[1]}/{name}"
        found[checksum] = f"sha256:{digest}"
    return {**found, "etcd_digest_checksum": found["etcd_binary_checksum"]}


@pytest.fixture
def inventory(machines: list[FoundMachine], server: Server, engines: Engines, tmp_path: Path) -> Path:
    hosts = [host(machine) for machine in machines]
    variables = cluster_variables(
        networks=NETWORKS, version=DEFAULT, plugin="cni", image_repository=REPOSITORY,
        certificate_names=[CERTIFICATE_NAME],
    )  # fmt: skip
    directory = tmp_path / "inventory"
    key = login_variables(password=None, key_file=str(engines.paths.key))
    files = {
        "hosts.yaml": hosts_yaml(hosts),
        "known_hosts": known_hosts(hosts),
        "group_vars/all/slipway.yml": as_yaml(variables),
        "group_vars/all/zz-offline.yml": as_yaml({**OF_THE_SANDBOX, **offline(server)}),
        **{f"host_vars/{one.name}/slipway-secrets.yml": as_yaml(key) for one in hosts},
    }
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def host(machine: FoundMachine) -> InventoryHost:
    address = machine.ports[0].address
    assert address is not None
    login = SshLogin(username="slipway")
    node = Node(machine=machine.id, slot=machine.name, name=machine.name, master=machine.name == MASTER, ssh="CP1",
                nic="CP1", login=login)  # fmt: skip
    return InventoryHost(node=node, address=address, ip=address, host_key=machine.host_key)


def kubectl(operations: EngineOperations, master: FoundMachine, *words: str) -> dict[str, Any]:
    command = ["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", *words, "--output=json"]
    code, said = operations.engine.execute(master.resource_id, command)
    assert code == 0, said
    found: dict[str, Any] = json.loads(said)
    return found


def test_the_real_one_builds_a_cluster_from_what_slipway_tells_it(
    kubespray: Path, inventory: Path, machines: list[FoundMachine], server: Server, operations: EngineOperations
) -> None:
    command = run_script(
        "playbook_run", str(kubespray), str(inventory), "offline", "cluster.yml", "--skip-tags=system-packages",
        folder=SCRIPTS,
    )  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 * MINUTES)
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-3000:]
    assert "TASK [kubernetes-apps/ansible : Kubernetes Apps | CoreDNS]" in ended.stdout  # the last one
    assert {"/kubeadm", "/kubelet", "/kubectl", "/etcd"} <= set(server.asked)
    nodes = {node["metadata"]["name"]: node for node in kubectl(operations, machines[0], "get", "nodes")["items"]}
    assert sorted(nodes) == [MASTER, WORKER]
    for node in nodes.values():
        assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{DEFAULT}"
        assert node["status"]["capacity"]["pods"] == str(NETWORKS.max_pods)
        assert node["spec"]["podCIDR"].startswith("10.233.")
    assert "node-role.kubernetes.io/control-plane" in {taint["key"] for taint in nodes[MASTER]["spec"]["taints"]}
    names = ["openssl", "x509", "-in", "/etc/kubernetes/ssl/apiserver.crt", "-noout", "-ext", "subjectAltName"]
    assert CERTIFICATE_NAME in operations.engine.execute(machines[0].resource_id, names)[1]
    corefile = kubectl(operations, machines[0], "get", "configmap", "coredns", "--namespace=kube-system")
    assert "cluster.local" in corefile["data"]["Corefile"]
    # Here it stops: no node becomes Ready without a network of pods, whose images the lab doesn't have.
    assert not any(ready(node) for node in nodes.values())


def ready(node: dict[str, Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])
