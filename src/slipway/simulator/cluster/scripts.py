"""What our scripts do on a simulated host. One that is not known here is not found, as the shell would say."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from slipway.remote.output import Result
from slipway.simulator.cluster import (
    ansible_server,
    etcd,
    haproxy,
    kubeadm,
    kubespray,
    node_script,
    registry,
    sources,
    storage,
)
from slipway.simulator.cluster.addresses import HAPROXY, api_server_at, prefix_at, virtual_address
from slipway.simulator.cluster.cluster import find_cluster, has_quorum
from slipway.simulator.cluster.host import VERSIONS, SimulatedHost

CONTAINERD = "2.1.4"
DONE = Result(0, b"", b"")
NOT_FOUND = 127
BESIDE = re.compile("/opt/kubernetes/(.+)/bin/kubeadm")


@dataclass(frozen=True)
class Run:
    """A script on its way: where, with what."""

    db: sqlite3.Connection
    host: SimulatedHost
    arguments: Sequence[str]
    stdin: bytes


def script_of(argv: Sequence[str]) -> str:
    """The script's name, or else the program's: what rules and counters go by."""
    if len(argv) > 3 and argv[:2] == ["sh", "-c"]:
        return argv[3].removeprefix("slipway-")
    return argv[0] if argv else ""


def run(db: sqlite3.Connection, host: SimulatedHost, argv: Sequence[str], stdin: bytes) -> Result:
    name = script_of(argv)
    ours = len(argv) > 3 and argv[3] == f"slipway-{name}"
    program = SCRIPTS.get(name) if ours else PROGRAMS.get(name)
    if program is None:
        return Result(NOT_FOUND, b"", f"sh: 1: {name}: not found (this host is simulated)\n".encode())
    return program(Run(db, host, argv[4:] if ours else argv[1:], stdin))


def _facts(run: Run) -> Result:
    (address,) = run.arguments
    lines = ["machine x86_64", f"kubeadm v{run.host.version}", f"containerd v{CONTAINERD}"]
    lines += [f"version {version}" for version in VERSIONS]
    lines += [f"version {found[1]}" for path in run.host.files if (found := BESIDE.fullmatch(path))]
    if (prefix := prefix_at(run.db, run.host.machine, address)) is not None:
        lines.append(f"interface eth0 {prefix}")
    return _printed(lines)


def _install_files(run: Run) -> Result:
    modified = []
    with tarfile.open(fileobj=io.BytesIO(run.stdin)) as archive:
        for entry in archive:
            file = archive.extractfile(entry)
            path = f"/{entry.name}"
            if file is not None and run.host.write(path, file.read(), entry.mode):
                modified.append(path)
    return _printed(modified)


def _prepare(run: Run) -> Result:
    version, _restart = run.arguments
    if version and version in VERSIONS:
        run.host.version = version
    if "/etc/containerd/config.toml" not in run.host.files:
        return Result(1, b"", b"containerd does not answer\n")
    run.host.prepared = True
    return DONE


def _import_images(run: Run) -> Result:
    return DONE if run.host.prepared else Result(1, b"", b"ctr: cannot access socket: no such file or directory\n")


def _balance(run: Run) -> Result:
    vip = virtual_address(run.host)
    if HAPROXY not in run.host.files or vip is None:
        return Result(1, b"", f"[ALERT] (1) : Could not open configuration file {HAPROXY}\n".encode())
    run.host.vip = vip
    return DONE


def _certificates(run: Run) -> Result:
    """Always as if they were new."""
    if not run.host.is_master:
        return Result(1, b"", b"failure loading ca certificate: open /etc/kubernetes/pki/ca.crt: no such file\n")
    ends = (datetime.now(UTC) + timedelta(days=365)).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"certificates": [{"name": name, "expirationDate": ends} for name in ("admin.conf", "apiserver")]}
    return Result(0, json.dumps(told).encode(), b"")


def _curl(run: Run) -> Result:
    """As far as that: whether an API server is ready behind an address, and what a registry says."""
    if "--config" in run.arguments:
        return registry.curl(run.db, run.host, run.stdin.decode())
    place = re.fullmatch(r"https://([^/]+)/readyz", run.arguments[-1])
    master = api_server_at(run.db, run.host.machine, place[1]) if place else None
    cluster = find_cluster(run.db, master.cluster) if master else None
    if cluster is None or not has_quorum(run.db, cluster):
        return Result(7, b"", b"curl: (7) Failed to connect\n")
    return DONE


def _host_name(host: SimulatedHost, name: str) -> Result:
    host.write("/etc/hostname", name)
    return DONE


def _helm_version(run: Run) -> Result:
    """A program is a text here: Helm's is its version."""
    helm = run.host.files.get(node_script.HELM)
    return Result(0, helm.content, b"") if helm else Result(NOT_FOUND, b"", b"there is no helm\n")


def _printed(lines: Sequence[str]) -> Result:
    return Result(0, "".join(f"{line}\n" for line in lines).encode(), b"")


PROGRAMS: dict[str, Callable[[Run], Result]] = {"curl": _curl}
SCRIPTS: dict[str, Callable[[Run], Result]] = {
    "facts": _facts,
    "install_files": _install_files,
    "prepare": _prepare,
    "import_images": _import_images,
    "balance": _balance,
    "certificates": _certificates,
    "init": lambda run: kubeadm.init(run.db, run.host, *run.arguments),
    "join": lambda run: kubeadm.join(run.db, run.host, *run.arguments),
    "upload_certificates": lambda run: kubeadm.upload_certificates(run.db, run.host, *run.arguments),
    "upgrade": lambda run: kubeadm.upgrade(run.db, run.host, *run.arguments),
    "restart_kubelet": lambda run: kubeadm.restart_kubelet(run.db, run.host, *run.arguments),
    "etcd": lambda run: etcd.ask(run.db, run.host, *run.arguments),
    "distribution": lambda run: _printed(["debian"]),
    "packages": lambda run: sources.packages(run.host, *run.arguments),
    "absent_files": lambda run: sources.absent(run.host, run.arguments),
    "receive": lambda run: sources.receive(run.host, run.arguments[0], run.arguments[1], run.stdin),
    "install_programs": lambda run: sources.install_programs(run.host, run.arguments),
    "import_file": lambda run: sources.import_file(run.host, *run.arguments),
    "host_name": lambda run: _host_name(run.host, *run.arguments),
    "private_directory": lambda run: DONE,
    "remove_directory": lambda run: node_script.remove(run.host, *run.arguments),
    "own_script": lambda run: node_script.run(run.db, run.host, run.arguments[0]),
    "mount_volume": lambda run: storage.mount_volume(run.db, run.host, *run.arguments),
    "nfs_facts": lambda run: storage.facts(run.host, *run.arguments),
    "apt_install": lambda run: storage.apt_install(run.host, run.arguments),
    "nfs_server": lambda run: storage.nfs_server(run.host, *run.arguments),
    "helm_version": _helm_version,
    "registries": lambda run: registry.apply_registries(run.host, run.arguments),
    "pull": lambda run: registry.pull(run.db, run.host, *run.arguments),
    "received": lambda run: registry.received(run.host, *run.arguments),
    "has_registry": lambda run: _printed(["yes"] if registry.PROGRAM in run.host.files else []),
    "install_package": lambda run: registry.install_package(run.host, *run.arguments),
    "install_engine": lambda run: DONE,
    "install_image": lambda run: registry.install_image(run.host, *run.arguments),
    "write_users": lambda run: registry.write_users(run.host, run.stdin),
    "serve": lambda run: registry.serve(run.host, *run.arguments),
    "archive_listing": lambda run: registry.listing(run.host, *run.arguments),
    "archive_member": lambda run: registry.member(run.host, *run.arguments),
    "registry_login": lambda run: DONE,
    "forget_archive": lambda run: registry.forget(run.host, *run.arguments),
    "push_blob": lambda run: registry.push_blob(run.host, *run.arguments),
    "push_manifest": lambda run: registry.push_manifest(run.db, run.host, *run.arguments),
    "ansible_server": lambda run: ansible_server.facts(run.host, *run.arguments),
    "inventory_claim": lambda run: ansible_server.claim(run.host, *run.arguments),
    "inventory_write": lambda run: ansible_server.write(run.host, run.arguments[0], run.arguments[1], run.stdin),
    "inventory_remove": lambda run: ansible_server.remove(run.host, *run.arguments),
    "runs_list": lambda run: _printed(ansible_server.runs(run.host, *run.arguments)),
    "events_follow": lambda run: ansible_server.follow(run.host, *run.arguments),
    "events_last": lambda run: ansible_server.last(run.host, *run.arguments),
    "playbook_run": lambda run: kubespray.play(run.db, run.host, *run.arguments),
    "install_haproxy": lambda run: haproxy.install(run.host),
    "fence": lambda run: haproxy.fence(run.host, *run.arguments),
    "apply_haproxy": lambda run: haproxy.apply(run.host, run.arguments, run.stdin),
    "etcd_health": lambda run: etcd.healthy(run.db, run.host, list(run.arguments[1:])),
}
