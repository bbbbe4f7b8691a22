"""A Slipway process, machines of the sandbox, and an Ansible server with kubespray's stand-in: this host, by SSH."""

from __future__ import annotations

import shutil
import subprocess
import time
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
SAMPLE, WEB = ROOT / "samples" / "cluster-kubespray-sandbox", ROOT / "samples" / "web-sandbox"
CNF_HOOKS = ("instantiate_end", "scale_end", "heal_end", "terminate_start")
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

    def balancer(self) -> str:
        """The address at which the API is registered."""
        endpoint = str(self.shown()["vimConnectionInfo"]["kubernetes"]["interfaceInfo"]["endpoint"])
        return endpoint.removeprefix("https://").removesuffix(":8383")

    def until_task(self, word: str, within: float = 300) -> None:
        """A run has reported a task whose name has the word."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            if any(word in file.read_text() for file in self.inventory.glob("runs/*.events")):
                return
            time.sleep(0.2)
        raise AssertionError(f"no run came to {word}")

    @contextmanager
    def on_the_cluster(self, tree: Path) -> Iterator[None]:
        """While this is open, the VNF that is spoken of is another one, on the cluster as VIM."""
        vim = self.shown()["vimConnectionInfo"]["kubernetes"]
        mine = self.vnf, self.vnfd
        self.vnfd = self.onboard(tree)
        try:
            self.create()
            on_it = {"vim": {"vimId": vim["vimId"], "vimType": vim["vimType"]}}
            self.run("instantiate", {"flavourId": "simple", "vimConnectionInfo": on_it})
            cnf, self.vnf = self.vnf, mine[0]
            yield
            self.vnf = cnf
            self.run("terminate", {"terminationType": "GRACEFUL"})
        finally:
            self.vnf, self.vnfd = mine


def balanced_cnf(directory: Path) -> Path:
    """The tree of a package: the sample's web servers, with the hooks that lead the load balancer to them."""
    tree = directory / "balanced-cnf"
    shutil.copytree(WEB, tree)
    flavour = tree / "Definitions" / "web_df_simple.yaml"
    described = "        flavour_description: Two to five web servers\n"
    hooks = "".join(f"          {name}: {{ implementation: mgmt-drivers-cnf-nodeport }}\n" for name in CNF_HOOKS)
    before = flavour.read_text()
    flavour.write_text(before.replace(described, f"{described}      interfaces:\n        Vnflcm:\n{hooks}"))
    assert flavour.read_text() != before
    return tree


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
