"""A package's own node script on a simulated host: it does with kubeadm what its options say.

So that it can also fail, `exit N` in its text ends it with that code, after its lines `echo ...` and nothing else.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
from typing import Any

import yaml

from slipway.cluster.naming import API_PORT, BALANCED_API_PORT, host_and_port
from slipway.remote.output import Result
from slipway.simulator.cluster import haproxy, kubeadm
from slipway.simulator.cluster.addresses import HAPROXY, prefix_at
from slipway.simulator.cluster.api import controllers
from slipway.simulator.cluster.api.kinds import DAEMON_SET
from slipway.simulator.cluster.api.nodes import CNI
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.host import SimulatedHost, save_host

CONFIG = "/etc/kubernetes/own.yaml"
HELM = "/usr/local/bin/helm"


def run(db: sqlite3.Connection, host: SimulatedHost, directory: str) -> Result:
    text = host.files[f"{directory}/script"].content.decode()
    given = host.files[f"{directory}/given"].content.decode()
    if early := re.search(r"^exit (\d+)$", text, re.MULTILINE):
        said = "".join(f"{line}\n" for line in re.findall(r"^echo (.*)$", text, re.MULTILINE))
        return Result(int(early[1]), said.encode(), b"")
    if "helm" in text:
        host.write(HELM, "v3.19.0", 0o755)
        return Result(0, b"", b"")
    if (balanced := haproxy.own_script(host, given)) is not None:
        return balanced
    host.prepared = True
    return _work(db, host, _options(given), balanced="ha_flag='True'" in given)


def remove(host: SimulatedHost, directory: str) -> Result:
    for path in [path for path in host.files if path.startswith(f"{directory}/")]:
        del host.files[path]
    return Result(0, b"", b"")


def _work(db: sqlite3.Connection, host: SimulatedHost, options: dict[str, str], *, balanced: bool) -> Result:
    masters = options.get("-m", "").split(",")
    own = options.get("-w") or next(one for one in masters if prefix_at(db, host.machine, one) is not None)
    name = host.files["/etc/hostname"].content.decode()
    node = {"name": name, "kubeletExtraArgs": {"node-ip": own}}
    local = {"localAPIEndpoint": {"advertiseAddress": own}}
    place = host_and_port(options["-i"], BALANCED_API_PORT if balanced else API_PORT)
    if balanced and "-m" in options:
        host.vip = options["-i"]
        host.write(HAPROXY, "".join(f"server {one} {host_and_port(one, API_PORT)}\n" for one in masters))
        save_host(db, host)
    if "-m" in options and own == masters[0]:
        cluster = {"controlPlaneEndpoint": place, "kubernetesVersion": f"v{host.version}"}
        _write(host, {"kind": "InitConfiguration", "nodeRegistration": node, **local},
               {"kind": "ClusterConfiguration", **cluster})  # fmt: skip
        begun = kubeadm.init(db, host, CONFIG)
        set_up_network(db, host)
        return begun
    bootstrap = {"token": options["-t"], "apiServerEndpoint": place, "caCertHashes": [f"sha256:{options['-s']}"]}
    document = {"kind": "JoinConfiguration", "nodeRegistration": node, "discovery": {"bootstrapToken": bootstrap}}
    if "-m" in options:
        document["controlPlane"] = {"certificateKey": options["-k"], **local}
    _write(host, document)
    return kubeadm.join(db, host, CONFIG)


def set_up_network(db: sqlite3.Connection, host: SimulatedHost) -> None:
    """The pods' network is the script's own affair."""
    if host.cluster is None:
        return
    labels = {"app": "network"}
    pod = {"hostNetwork": True, "tolerations": [{"operator": "Exists"}],
           "volumes": [{"name": "cni", "hostPath": {"path": CNI}}]}  # fmt: skip
    manifest = {
        "metadata": {"name": "network", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
    store = ObjectStore(db, host.cluster)
    controllers.reconcile(db, store, host.cluster, DAEMON_SET, store.add(DAEMON_SET, manifest))


def _options(given: str) -> dict[str, str]:
    words = shlex.split(next(line for line in given.splitlines() if line.startswith("set --")))[2:]
    return dict(zip(words[::2], words[1::2], strict=True))


def _write(host: SimulatedHost, *documents: dict[str, Any]) -> None:
    host.write(CONFIG, yaml.safe_dump_all(documents))
