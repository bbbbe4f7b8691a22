"""What the steps of a cluster rely on in the world around them: machines by `RemoteHost`, a cluster's API by `KubeApi`.

One master and one worker, made once, go through all checks in their order, on real machines as on simulated ones. What
differs between the two is a fault of the simulation, unless slipway.simulator.cluster says that it is meant.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from slipway.cluster.naming import node_name
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.spec import ClusterSpec, Node, SshLogin
from slipway.cluster.steps.dependencies import Connector, Dependencies, RemoteHost
from slipway.kube.interface import KubeApi
from slipway.model.action import VimConnection
from slipway.model.errors import StepError
from slipway.model.machine import FoundMachine, FoundPort, Machine, Network, Outcome, Port, Volume, Wanted
from slipway.model.package_content import PackageContent

INSTANCE = "5f0c3e8a-0000-4000-8000-000000000001"
CIDR = "10.14.0.0/24"
POINT = "CP1"


@dataclass
class WorldContext:
    """A StepContext without an engine."""

    vim: VimConnection
    machines: dict[str, FoundMachine]
    instance_id: str = INSTANCE
    operation_id: str = "operation-1"
    cancelled: bool = False

    async def connection(self) -> VimConnection:
        return self.vim

    async def machine(self, machine_id: str) -> FoundMachine:
        return self.machines[machine_id]

    async def port(self, name: str) -> FoundPort:
        raise StepError(f"No port {name}: here are machines only.")

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        raise StepError(f"No file {path}: here is no package.")

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        raise StepError(f"No file {path}: here is no package.")

    async def decrypt_secrets(self, document: Any) -> Any:
        return document

    def arguments(self, step_id: str) -> dict[str, Any]:
        raise StepError(f"No step {step_id}: here is no plan.")

    def outcome(self, step_id: str) -> Outcome | None:
        return None

    def progress(self, text: str) -> None:
        pass


@dataclass
class Stage:
    """`patience`: seconds that a cluster may take for what it does in the background."""

    connector: Connector
    ctx: WorldContext
    cluster: ClusterSpec
    master: Node
    worker: Node
    patience: float

    @property
    def world(self) -> Dependencies:
        """Nothing of it is for packages or VIMs."""
        return Dependencies(self.connector, None, None)  # type: ignore[arg-type]

    async def host(self, node: Node) -> RemoteHost:
        return await self.connector.host(node, self.ctx)

    @asynccontextmanager
    async def api(self) -> AsyncIterator[KubeApi]:
        async with self.connector.api(self.cluster, self.ctx) as api:
            yield api

    async def until(self, look: Callable[[], Awaitable[bool]], what: str) -> None:
        end = asyncio.get_running_loop().time() + self.patience
        while not await look():
            assert asyncio.get_running_loop().time() < end, f"not within {self.patience:g} s: {what}"
            await asyncio.sleep(0.2)


Check = Callable[[Stage], Awaitable[None]]


async def keep_contract(stage: Stage, checks: tuple[Check, ...]) -> None:
    for check in checks:
        try:
            await check(stage)
        except (AssertionError, StepError) as error:
            said = error.detail if isinstance(error, StepError) else str(error)
            said = said or str(traceback.extract_tb(error.__traceback__)[-1].line)
            raise AssertionError(f"{check.__name__.replace('_', ' ')}: {said}") from error


async def refused(call: Awaitable[Any], *words: str, temporary: bool = False) -> StepError:
    with pytest.raises(StepError) as caught:
        await call
    for word in words:
        assert word in caught.value.detail, f"no {word!r} in: {caught.value.detail}"
    assert caught.value.temporary is temporary, caught.value.detail
    return caught.value


def wanted_machines(image: str | None) -> Wanted:
    """Two machines on a network of their own."""
    network = Network(id=f"{INSTANCE}-net", name="net", cidr=CIDR)
    machines = tuple(
        Machine(
            id=f"{INSTANCE}-{slot}",
            name=slot,
            vdu=slot.partition("-")[0],
            image=image,
            ports=(Port(id=f"{INSTANCE}-{slot}-port", name=POINT, network=network.id),),
            volumes=(Volume(id=f"{INSTANCE}-{slot}-data", name="data", size_bytes=1 << 28),),
        )
        for slot in ("masterNode-0", "workerNode-0")
    )
    return Wanted(instance_id=INSTANCE, networks=(network,), machines=machines)


def stage_on(
    connector: Connector,
    vim: VimConnection,
    found: tuple[FoundMachine, ...],
    login: SshLogin,
    repository: str | None,
    patience: float,
) -> Stage:
    master, worker = (_node(machine, login) for machine in sorted(found, key=lambda machine: machine.name))
    networks = ClusterNetworks(pods="192.168.0.0/16", services="10.96.0.0/12", nodes=CIDR, node_prefix=24)
    cluster = ClusterSpec(instance=INSTANCE, masters=(master,), networks=networks, image_repository=repository)
    return Stage(
        connector, WorldContext(vim, {machine.id: machine for machine in found}), cluster, master, worker, patience
    )


def _node(machine: FoundMachine, login: SshLogin) -> Node:
    return Node(
        machine=machine.id,
        slot=machine.name,
        name=node_name(INSTANCE, machine.name),
        master=machine.vdu == "masterNode",
        ssh=POINT,
        nic=POINT,
        login=login,
    )
