"""A Slipway process beside the lab's OpenStack, and the cluster of the sample package that it builds there."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncssh

from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.build import cached_image
from slipway.vim.sandbox.image.engine_images import cached_recipe
from slipway.vim.sandbox.image.recipes import KUBERNETES
from tests.functional.processes import Process
from tests.lab.openstack.openstack_lab import OpenStackLab, run_lab
from tests.lab.slipway_lab import SlipwayLab

SAMPLE = Path(__file__).parents[3] / "samples" / "cluster-openstack"
POINTS = ("masterNode_CP1", "workerNode_CP1")
LOGIN = {"username": "ubuntu", "password": "ubuntu"}
REPOSITORY = "registry.slipway.test"


class OpenStackVnf(SlipwayLab):
    network = "mgmt"  # of the cloud, shared

    def __init__(self, directory: Path, cloud: OpenStackLab, sample: Path, **settings: object) -> None:
        self.cloud, self.settings = cloud, settings
        super().__init__(directory, sample, {"name": "lab", **cloud.vim})

    def start(self) -> None:
        self.process = Process("serve", self.directory, lease_seconds=10, **self.settings)
        self.http = self.process.client()

    def connected(self, *points: str) -> list[dict[str, Any]]:
        """All of them to one network, with whatever address it gives."""
        any_address = {"cpConfig": {"any": {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}}}
        points_of_it = [{"cpdId": point, **any_address} for point in points]
        return [{"id": "link", "resourceId": self.cloud.network_id(self.network), "extCps": points_of_it}]

    def server(self, slot: str) -> Any:
        """As Nova has it."""
        return self.cloud.user.compute.get_server(self.machines()[slot]["computeResource"]["resourceId"])

    def inside(self, slot: str, *command: str) -> str:
        """What a command prints on a server, by root."""

        async def printed() -> str:
            # A server that was made anew has another key.
            async with asyncssh.connect(self.address(slot), known_hosts=None, config=None, **LOGIN) as ssh:
                done = await ssh.run(f"sudo {shlex.join(command)}")
                assert done.exit_status == 0, done.stderr
                return str(done.stdout)

        return asyncio.run(printed())


class OpenStackCluster(OpenStackVnf):
    outside = ""  # a network that floating IPs are of

    def cluster_kubeconfig(self) -> str:
        """Floating IPs lead nowhere in this lab: with the addresses behind them."""
        text = super().cluster_kubeconfig()
        for one in self.cloud.user.network.ips():
            text = text.replace(f"//{one.floating_ip_address}:", f"//{one.fixed_ip_address}:")
        return text

    def request(
        self, flavour: str = "simple", *, points: tuple[str, ...] = POINTS, **parameters: Any
    ) -> dict[str, Any]:
        own = {"master_node": parameters.pop("master_node", {})}
        roles = zip(("master_node", "worker_node"), POINTS, strict=True)
        nodes = {role: {"ssh_cp_name": point, **LOGIN, **own.get(role, {})} for role, point in roles}
        return {
            "flavourId": flavour,
            "extVirtualLinks": self.connected(*points),
            "additionalParams": {"k8s_cluster_installation_param": {**nodes, **parameters}},
        }


def ensure_kubernetes_image(engines: Engines) -> None:
    """In the lab's Glance, made from that of the sandbox."""
    cache = engines.paths.cache
    run_lab("kubernetes-image", cached_image(cache, cached_recipe(cache, KUBERNETES)))


@contextmanager
def a_cluster(
    directory: Path, lab: OpenStackLab, engines: Engines, project: str, sample: Path = SAMPLE
) -> Iterator[OpenStackCluster]:
    """In a project of its own, of which nothing may be left."""
    ensure_kubernetes_image(engines)
    cloud = lab.project(project)
    with cloud.nothing_left():
        cluster = OpenStackCluster(directory, cloud, sample)
        try:
            yield cluster
        finally:
            cluster.kill()
