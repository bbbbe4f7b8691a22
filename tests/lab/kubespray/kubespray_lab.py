"""A Slipway process, machines of the sandbox, and an Ansible server with kubespray's stand-in: this host, by SSH."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slipway.model.vim import SANDBOX
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.paths import default_cache
from tests.functional.remote_sshd import ME, OWN_KEY, Sshd, running_sshd
from tests.lab.cluster_lab import PARAMETERS, PASSWORD, ClusterLab, clear, parameters
from tests.lab.slipway_lab import SlipwayLab

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "samples" / "cluster-kubespray-sandbox"
BALANCER = {"ssh_cp_name": "externalLB_CP1", "ssh_username": "slipway", "ssh_password": PASSWORD}


def ansible_server(sshd: Sshd, inventory: Path) -> dict[str, Any]:
    """As a request names it: this host, with kubespray's stand-in."""
    return {
        "ip_address": "127.0.0.1",
        "ssh_port": sshd.port,
        "username": ME,
        "private_key": OWN_KEY.export_private_key().decode(),
        "host_key": sshd.host_key,
        "kubespray_root_path": str(stand_in()),
        "transferring_inventory_path": str(inventory),
    }


def stand_in() -> Path:
    """kubespray's stand-in with an Ansible of its own, which stays in the cache between runs."""
    place = default_cache() / "kubespray-stand-in"
    subprocess.run([ROOT / "lab" / "kubespray-stand-in" / "install", place], check=True, timeout=900)
    return place


class KubesprayLab(ClusterLab):
    def __init__(self, directory: Path, engines: Engines, sshd: Sshd) -> None:
        self.engines, self.sshd = engines, sshd
        self.inventory = directory / "inventory"
        access = {"interfaceInfo": {"endpoint": LOCAL}, "accessInfo": {"password": PASSWORD}}
        SlipwayLab.__init__(self, directory, SAMPLE, {"name": "box", "vimType": SANDBOX, **access})

    def asked(self, **more: Any) -> dict[str, Any]:
        found = parameters(ansible=ansible_server(self.sshd, self.inventory), external_lb_param=BALANCER)
        found[PARAMETERS] |= more
        return found

    def routes(self) -> str:
        return self.inside("externalLB-0", "cat", "/etc/haproxy/haproxy.cfg")


@contextmanager
def a_kubespray_lab(directory: Path, engines: Engines) -> Iterator[KubesprayLab]:
    """Whatever comes of it, no machine is left."""
    with running_sshd(directory / "sshd") as sshd:
        lab = KubesprayLab(directory, engines, sshd)
        try:
            yield lab
        finally:
            lab.kill()
            clear(engines.operations(LOCAL))
