"""A package's own node script on a simulated host: it does with kubeadm what its options say.

So that it can also fail, `exit N` in its text ends it with that code, after its lines `echo ...` and nothing else.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
from typing import Any

import yaml

from slipway.cluster.naming import API_PORT, host_and_port
from slipway.cluster.simulated import kubeadm
from slipway.cluster.simulated.host import Host
from slipway.cluster.simulated.wires import prefix_at
from slipway.remote.output import Result

CONFIG = "/etc/kubernetes/own.yaml"
HELM = "/usr/local/bin/helm"


def run(db: sqlite3.Connection, host: Host, directory: str) -> Result:
    text = host.files[f"{directory}/script"].content.decode()
    given = host.files[f"{directory}/given"].content.decode()
    if early := re.search(r"^exit (\d+)$", text, re.MULTILINE):
        said = "".join(f"{line}\n" for line in re.findall(r"^echo (.*)$", text, re.MULTILINE))
        return Result(int(early[1]), said.encode(), b"")
    if "helm" in text:
        host.write(HELM, "v3.19.0", 0o755)
        return Result(0, b"", b"")
    host.prepared = True
    return _work(db, host, _options(given))


def remove(host: Host, directory: str) -> Result:
    for path in [path for path in host.files if path.startswith(f"{directory}/")]:
        del host.files[path]
    return Result(0, b"", b"")


def _work(db: sqlite3.Connection, host: Host, options: dict[str, str]) -> Result:
    masters = options.get("-m", "").split(",")
    own = options.get("-w") or next(one for one in masters if prefix_at(db, host.machine, one) is not None)
    name = host.files["/etc/hostname"].content.decode()
    node = {"name": name, "kubeletExtraArgs": {"node-ip": own}}
    local = {"localAPIEndpoint": {"advertiseAddress": own}}
    place = host_and_port(options["-i"] if "-w" in options else masters[0], API_PORT)
    if "-m" in options and own == masters[0]:
        cluster = {"controlPlaneEndpoint": place, "kubernetesVersion": f"v{host.version}"}
        _write(host, {"kind": "InitConfiguration", "nodeRegistration": node, **local},
               {"kind": "ClusterConfiguration", **cluster})  # fmt: skip
        return kubeadm.init(db, host, CONFIG)
    ticket = {"token": options["-t"], "apiServerEndpoint": place, "caCertHashes": [f"sha256:{options['-s']}"]}
    document = {"kind": "JoinConfiguration", "nodeRegistration": node, "discovery": {"bootstrapToken": ticket}}
    if "-m" in options:
        document["controlPlane"] = {"certificateKey": options["-k"], **local}
    _write(host, document)
    return kubeadm.join(db, host, CONFIG)


def _options(given: str) -> dict[str, str]:
    words = shlex.split(next(line for line in given.splitlines() if line.startswith("set --")))[2:]
    return dict(zip(words[::2], words[1::2], strict=True))


def _write(host: Host, *documents: dict[str, Any]) -> None:
    host.write(CONFIG, yaml.safe_dump_all(documents))
