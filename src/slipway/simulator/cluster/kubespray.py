"""kubespray's playbooks on simulated hosts: what they do to the cluster, and the rules that a real one keeps.

A host that has no power fails the run, unless the limit leaves it out. The first master must stand; workers join by
scale.yml, masters by cluster.yml; a removal must be confirmed, and is none of the first master. With a limit the facts
of all other hosts must be in the cache beside the inventory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tomli_w
import yaml

from slipway.cluster.containerd_config import CERTIFICATES, CONTAINERD
from slipway.cluster.naming import API_PORT, host_and_port
from slipway.remote.output import Result
from slipway.simulator.cluster import etcd, kubeadm, node_script
from slipway.simulator.cluster.ansible_server import owner
from slipway.simulator.cluster.api import controllers
from slipway.simulator.cluster.api.kinds import CONFIG_MAP, NODE
from slipway.simulator.cluster.api.nodes import has_network
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.cluster import Cluster, find_cluster, has_quorum, save_cluster
from slipway.simulator.cluster.host import VERSIONS, SimulatedHost, find_host, is_running, save_host

CONFIG = "/etc/kubernetes/kubespray.yaml"
CONTAINERD_TOML = f"""version = 4
[plugins."io.containerd.cri.v1.images".registry]
config_path = "{CERTIFICATES}"
"""
FAILED, UNREACHABLE = 2, 4  # exit codes of ansible-playbook
_MACHINE_AT = (
    "SELECT machine.id FROM port JOIN machine ON machine.id = port.machine_id"
    " WHERE port.address = ? AND machine.instance_id = ?"
)


class TaskError(Exception):
    """A task that failed on a host, as Ansible would report it."""

    def __init__(self, host: str, task: str, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.host, self.task, self.message, self.code = host, task, message, code


@dataclass
class Run:
    """A run on its way: the inventory, what was asked for, and what it has reported."""

    db: sqlite3.Connection
    instance: str
    hosts: dict[str, dict[str, Any]]
    groups: dict[str, list[str]]
    variables: dict[str, Any]
    limit: set[str]
    server: SimulatedHost
    cache: str
    events: list[dict[str, Any]] = field(default_factory=list)

    def task(self, name: str, hosts: Sequence[str]) -> None:
        self.events.append({"event": "task", "name": name})
        for host in hosts:
            if not self.runs(host):
                why = f"Failed to connect to the host via ssh: {self.hosts[host]['ansible_host']} port 22: timed out"
                raise TaskError(host, name, why, UNREACHABLE)
            self.events.append({"event": "ok", "host": host, "changed": True})

    def gather_facts(self, hosts: Sequence[str]) -> None:
        self.task("Gather minimal facts", hosts)
        for name in hosts:
            self.server.write(f"{self.cache}/{name}", "{}")

    def check_cache(self) -> None:
        if unknown := [name for name in self.hosts if f"{self.cache}/{name}" not in self.server.files]:
            task = "kubernetes/preinstall : Stop if any host not in '--limit' does not have a fact cache"
            raise TaskError(self.masters[0], task, f"The following excluded hosts are not cached: {unknown}")

    def machine(self, name: str) -> str | None:
        row = self.db.execute(_MACHINE_AT, (self.hosts[name]["ip"], self.instance)).fetchone()
        return None if row is None else str(row[0])

    def runs(self, name: str) -> bool:
        machine = self.machine(name)
        return machine is not None and is_running(self.db, machine)

    def host(self, name: str) -> SimulatedHost:
        return find_host(self.db, self.machine(name) or name)

    def limited(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self.limit]

    @property
    def masters(self) -> list[str]:
        return self.groups["kube_control_plane"]

    @property
    def workers(self) -> list[str]:
        return [name for name in self.groups["kube_node"] if name not in self.masters]

    def cluster(self) -> Cluster:
        """That of the first master, with which every playbook begins."""
        cluster = find_cluster(self.db, self.host(self.masters[0]).cluster)
        if cluster is None or not has_quorum(self.db, cluster):
            raise TaskError(self.masters[0], "kubernetes : get nodes", "The connection to the server was refused")
        return cluster


def play(db: sqlite3.Connection, server: SimulatedHost, *arguments: str) -> Result:
    _root, inventory, name, playbook, *options = arguments
    run = _read(db, server, inventory, options)
    code, failures = 0, dict.fromkeys(run.hosts, 0)
    try:
        PLAYBOOKS[playbook](run)
    except (TaskError, kubeadm.JoinError) as error:
        known = error if isinstance(error, TaskError) else TaskError(run.masters[0], "kubeadm", str(error))
        kind = "unreachable" if known.code == UNREACHABLE else "failed"
        run.events.append({"event": kind, "host": known.host, "task": known.task, "message": known.message})
        code, failures[known.host] = known.code, 1
    stats = {host: {"failures": count, "unreachable": 0, "rescued": 0} for host, count in failures.items()}
    run.events.append({"event": "stats", "hosts": stats})
    server.write(f"{inventory}/runs/{name}.events", "".join(f"{json.dumps(event)}\n" for event in run.events))
    return Result(code, b"PLAY RECAP\n", b"")


def _read(db: sqlite3.Connection, server: SimulatedHost, inventory: str, options: Sequence[str]) -> Run:
    document = yaml.safe_load(server.files[f"{inventory}/hosts.yaml"].content)["all"]
    variables: dict[str, Any] = {}
    for name in ("slipway.yml", "slipway-secrets.yml"):
        said = server.files[f"{inventory}/group_vars/all/{name}"].content
        variables |= yaml.load(said, Loader=_Loader) or {}  # noqa: S506 - it is a safe one
    if "--extra-vars" in options:
        variables |= json.loads(options[options.index("--extra-vars") + 1])
    hosts = document["hosts"]
    groups = {name: list(group.get("hosts") or ()) for name, group in document["children"].items()}
    limit = next((one.removeprefix("--limit=") for one in options if one.startswith("--limit=")), "all")
    chosen = _limit(limit, hosts, groups)
    return Run(db, owner(server, inventory) or "", hosts, groups, variables, chosen, server, f"{inventory}/facts")


def _limit(pattern: str, hosts: dict[str, Any], groups: dict[str, list[str]]) -> set[str]:
    chosen: set[str] = set()
    for part in pattern.replace(",", ":").split(":"):
        if part.startswith("!"):
            chosen.discard(part[1:])
        else:
            chosen |= set(hosts) if part == "all" else set(groups.get(part, [part]))
    return chosen


def _cluster(run: Run) -> None:
    run.task("bootstrap_os : Check connection", run.limited(list(run.hosts)))
    run.gather_facts(run.limited(list(run.hosts)))
    run.check_cache()
    _configure_containerd(run, run.limited(list(run.hosts)))
    first = run.host(run.masters[0])
    if find_cluster(run.db, first.cluster) is None:
        if any(run.host(name).cluster for name in run.masters[1:]):
            raise TaskError(run.masters[0], "kubernetes/control-plane", "adding the first master is not supported")
        _begin(run, run.masters[0], first)
    cluster = run.cluster()
    for name in run.limited([*run.masters[1:], *run.workers]):
        _add(run, name, cluster)
    if not has_network(ObjectStore(run.db, cluster.id)):
        node_script.set_up_network(run.db, run.host(run.masters[0]))
    run.task("kubernetes-apps : Wait for nodes", run.limited(run.masters))


def _scale(run: Run) -> None:
    run.task("bootstrap_os : Check connection", run.limited(run.workers))
    run.gather_facts(run.limited(run.workers))
    run.check_cache()
    _configure_containerd(run, run.limited(run.workers))
    cluster = run.cluster()
    for name in run.limited(run.workers):
        _add(run, name, cluster)


def _facts(run: Run) -> None:
    run.gather_facts(run.limited(list(run.hosts)))


def _remove(run: Run) -> None:
    names = str(run.variables.get("node", "")).split(",")
    if not run.variables.get("skip_confirmation"):
        raise TaskError(names[0], "Confirm Execution", "Delete nodes confirmation failed")
    reset = run.variables.get("reset_nodes", True)
    if reset:
        _facts(run)
    cluster = run.cluster()
    for name in names:
        if name == run.masters[0]:
            raise TaskError(name, "remove-node/remove-etcd-node", "the first master can't be removed")
        run.task("Remove-node | Delete node", [run.masters[0]])
        _leave(run, name, cluster.id, reset=bool(reset))


def _leave(run: Run, name: str, cluster_id: str, *, reset: bool) -> None:
    host = run.host(name)
    cluster = find_cluster(run.db, cluster_id)
    if cluster is not None and (member := cluster.member_on(host.machine)) and etcd.may_leave(run.db, cluster, member):
        cluster.members.remove(member)
        save_cluster(run.db, cluster)
    if reset and host.cluster:
        kubeadm.reset(run.db, host)
        save_host(run.db, host)
    store = ObjectStore(run.db, cluster_id)
    if node := store.find(NODE, "", name):
        controllers.remove(run.db, store, cluster_id, NODE, node, 0)


def _upgrade(run: Run) -> None:
    _facts(run)
    run.check_cache()
    wanted = str(run.variables["kube_version"])
    for at, name in enumerate([*run.masters, *run.workers]):
        _configure_containerd(run, [name])
        host = run.host(name)
        for ended in (
            kubeadm.upgrade(run.db, host, wanted, "apply" if at == 0 else "node", "image"),
            kubeadm.restart_kubelet(run.db, host, wanted, "image"),
        ):
            if not ended.ok:
                raise TaskError(name, "kubernetes/control-plane : kubeadm | Upgrade", ended.stderr.decode())
        save_host(run.db, host)
        run.task("upgrade/post-upgrade : Uncordon node", [name])


def _begin(run: Run, name: str, host: SimulatedHost) -> None:
    """kubeadm init, with an etcd of its own."""
    _install(run, host)
    ip = run.hosts[name]["ip"]
    documents: list[dict[str, Any]] = [
        {"kind": "InitConfiguration", "localAPIEndpoint": {"advertiseAddress": ip}, **_registration(run, name)},
        {
            "kind": "ClusterConfiguration",
            "controlPlaneEndpoint": host_and_port(ip, API_PORT),
            "kubernetesVersion": f"v{host.version}",
        },
    ]
    host.write(CONFIG, yaml.safe_dump_all(documents))
    ended = kubeadm.init(run.db, host, CONFIG)
    if not ended.ok:
        raise TaskError(name, "kubernetes/control-plane : Kubeadm | Initialize first control plane", str(ended.stderr))
    save_host(run.db, host)


def _add(run: Run, name: str, cluster: Cluster) -> None:
    host = run.host(name)
    if host.cluster == cluster.id:
        return
    _install(run, host)
    ip, now = run.hosts[name]["ip"], find_cluster(run.db, cluster.id) or cluster
    if name in run.masters:
        _check_endpoint(run, name, cluster)
    control = {"localAPIEndpoint": {"advertiseAddress": ip}} if name in run.masters else None
    run.task("kubernetes/kubeadm : Join to cluster", [name])
    kubeadm.add_node(run.db, host, now, _registration(run, name)["nodeRegistration"], control)
    save_host(run.db, host)


def _check_endpoint(run: Run, name: str, cluster: Cluster) -> None:
    """A master that joins asks the API at the endpoint that kubeadm-config names, where nobody may be any more."""
    stored = ObjectStore(run.db, cluster.id).find(CONFIG_MAP, "kube-system", "kubeadm-config") or {}
    endpoint = yaml.safe_load(stored["data"]["ClusterConfiguration"])["controlPlaneEndpoint"]
    there = [one for one in run.masters if run.runs(one) and run.host(one).cluster == cluster.id]
    if endpoint not in {host_and_port(run.hosts[one]["ip"], API_PORT) for one in there}:
        raise TaskError(name, "Joining control plane node to the cluster.", f"dial tcp {endpoint}: i/o timeout")


def _registration(run: Run, name: str) -> dict[str, Any]:
    """Taints as kubeadm has them. Its own for masters, unless the inventory has them among the workers, too."""
    taints = [_taint(one) for one in run.hosts[name].get("node_taints", ())]
    open_ = name in run.masters and name in run.groups["kube_node"]
    more = {"taints": taints} if taints or open_ else {}
    extra = {"node-ip": run.hosts[name]["ip"]}
    return {"nodeRegistration": {"name": name, "kubeletExtraArgs": extra, **more}}


def _taint(text: str) -> dict[str, str]:
    key, _, rest = text.partition("=")
    value, _, effect = rest.rpartition(":")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def _install(run: Run, host: SimulatedHost) -> None:
    wanted = run.variables.get("kube_version")
    host.prepared = True
    if wanted in VERSIONS:
        host.version = str(wanted)


def _configure_containerd(run: Run, names: Sequence[str]) -> None:
    """Whatever others wrote in containerd's configuration is gone; in certs.d it stays, beside what is known here."""
    for name in names:
        host = run.host(name)
        host.write(CONTAINERD, CONTAINERD_TOML, mode=0o640)
        for registry in run.variables.get("containerd_registries_mirrors", ()):
            mirrors = {one["host"]: {"skip_verify": one["skip_verify"]} for one in registry["mirrors"]}
            told = tomli_w.dumps({"server": registry["server"], "host": mirrors})
            host.write(f"{CERTIFICATES}/{registry['prefix']}/hosts.toml", told, mode=0o640)
        save_host(run.db, host)


class _Loader(yaml.SafeLoader):
    """Text may be marked as no template."""

    def marked(self, node: yaml.ScalarNode) -> str:
        return str(self.construct_scalar(node))


_Loader.add_constructor("!unsafe", _Loader.marked)

PLAYBOOKS: dict[str, Callable[[Run], None]] = {
    "cluster.yml": _cluster,
    "scale.yml": _scale,
    "remove-node.yml": _remove,
    "upgrade-cluster.yml": _upgrade,
    "playbooks/facts.yml": _facts,
}
