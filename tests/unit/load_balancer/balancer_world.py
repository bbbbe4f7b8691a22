"""A cluster with a load balancer and CNFs on it, as its steps see them: a real database, machines in memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from slipway.cluster.spec import ClusterSpec, Node, Server, SshLogin
from slipway.cluster.steps.dependencies import Dependencies
from slipway.kube.errors import KubeError
from slipway.load_balancer.arguments import SetUp
from slipway.load_balancer.balancer import Balancer
from slipway.load_balancer.cluster_context import ClusterContexts
from slipway.load_balancer.cnf_steps import CnfSteps
from slipway.load_balancer.records import BalancerRecord, BalancerRecords
from slipway.load_balancer.steps import BalancerSteps
from slipway.model.action import StepContext, VimConnection
from slipway.model.errors import StepError
from slipway.model.instance import Instance, InstantiatedVnfInfo, InstantiationState, VimConnectionInfo, VnfInstance
from slipway.model.machine import Address, FoundMachine, FoundObject, FoundPort, Outcome
from slipway.model.operation import Operation, OperationType, State
from slipway.model.vim import KUBERNETES, SIMULATED
from slipway.remote.output import Result
from slipway.simulator.cluster import haproxy as simulated
from slipway.simulator.cluster.host import SimulatedHost
from slipway.store import instances, operations, workers
from slipway.store.database import Database
from slipway.store.migrate import upgrade
from slipway.store.secrets import Vault
from slipway.store.tables import operations as operations_table
from slipway.vim_registry.names import vim_id_of
from tests.unit.cluster.cluster_situations import UNUSED

HAPROXY = "/etc/haproxy/haproxy.cfg"
LOGIN = {"ssh_cp_name": "externalLB_CP1", "ssh_username": "ubuntu", "ssh_password": "hills"}


def node(slot: str, *, master: bool = False, machine: str | None = None, point: str = "CP1") -> Node:
    return Node(
        machine=machine or f"id-{slot}",
        slot=slot,
        name=slot.lower(),
        master=master,
        ssh=point,
        nic=point,
        login=SshLogin(username="ubuntu", password="hills"),
    )


MASTER, WORKER, OTHER = node("master-0", master=True), node("worker-0"), node("worker-1")
BALANCER = node("externalLB-0", point="externalLB_CP1")


@dataclass
class Host:
    """Scripts as the simulator knows them. `before` is run before each, `fails` by the name of a script.

    `logins` has who came, `machines` to which of the VIM's.
    """

    files: SimulatedHost = field(default_factory=lambda: SimulatedHost("lb"))
    ran: list[tuple[str, ...]] = field(default_factory=list)
    fails: dict[str, str] = field(default_factory=dict)
    before: Callable[[str], Any] | None = None
    logins: list[str] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)

    @property
    def config(self) -> str:
        return self.files.files[HAPROXY].content.decode() if HAPROXY in self.files.files else ""

    async def run(
        self,
        argv: Sequence[str],
        *,
        sudo: bool = False,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limit: float | None = None,
        check: bool = True,
        description: str | None = None,
    ) -> Result:
        name, arguments = (argv[3].removeprefix("slipway-"), argv[4:]) if len(argv) > 3 else (argv[0], [])
        await asyncio.sleep(0)
        self.ran.append((name, *arguments))
        if self.before and (waiting := self.before(name)):
            await waiting
        if name in self.fails:
            raise StepError(self.fails[name], temporary="can't be reached" in self.fails[name])
        result = self._script(name, arguments, stdin or b"")
        if check and not result.ok:
            raise StepError(f"'{description}' on lb failed: {result.stderr.decode()}")
        return result

    def _script(self, name: str, arguments: Sequence[str], stdin: bytes) -> Result:
        if name == "install_haproxy":
            return simulated.install(self.files)
        if name == "apply_haproxy":
            return simulated.apply(self.files, arguments, stdin)
        if name == "fence":
            return simulated.fence(self.files, *arguments)
        if name == "install_files":
            self.files.write("/archive", stdin)
        return Result(0, b"", b"")

    async def run_job(self, name: str, argv: Sequence[str], **more: Any) -> Result:
        return await self.run(argv)

    async def remove_job(self, name: str, *, sudo: bool = False, kill: bool = False) -> None:
        pass

    async def put(self, path: str, content: bytes | str, *, mode: int = 0o600, sudo: bool = False) -> None:
        raise NotImplementedError

    async def get(self, path: str, *, sudo: bool = False) -> bytes | None:
        return None


@dataclass
class Context:
    """`vim`: of the instance, `machines` that the operation sees."""

    instance_id: str
    operation_id: str
    vim: VimConnection
    machines: dict[str, FoundMachine]
    cancelled: bool = False

    async def connection(self) -> VimConnection:
        return self.vim

    async def machine(self, machine_id: str) -> FoundMachine:
        if machine_id not in self.machines:
            raise StepError(f"There is no machine {machine_id}.")
        return self.machines[machine_id]

    async def decrypt_secrets(self, document: Any) -> Any:
        return document

    def progress(self, text: str) -> None:
        pass

    async def port(self, name: str) -> FoundPort:
        raise NotImplementedError

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        raise NotImplementedError

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> Any:
        raise NotImplementedError

    def arguments(self, step_id: str) -> dict[str, Any]:
        return {}

    def outcome(self, step_id: str) -> Outcome | None:
        return None


def machine(one: Node, address: str) -> FoundMachine:
    port = FoundPort(id="p", name=one.nic, resource_id="p", addresses=(Address(ip=address),))
    return FoundMachine(
        id=one.machine, name=one.slot, vdu="v", resource_id="r", ready=True, ports=(port,), host_key="known"
    )


@dataclass(frozen=True)
class Connector:
    """The way to the one machine there is."""

    machine: Host

    async def host(self, one: Node, ctx: StepContext) -> Host:
        await ctx.machine(one.machine)
        login = await ctx.decrypt_secrets({"password": one.login.password})
        self.machine.machines.append(one.machine)
        self.machine.logins.append(f"{one.login.username}:{login['password']}")
        return self.machine

    async def host_key(self, one: Node, ctx: StepContext) -> str | None:
        return "known"

    async def host_at(self, server: Server, ctx: StepContext) -> Host:
        raise NotImplementedError

    async def host_key_at(self, server: Server, ctx: StepContext) -> str | None:
        raise NotImplementedError

    def api(self, cluster: ClusterSpec, ctx: StepContext, within: float | None = None) -> Any:
        raise NotImplementedError


@dataclass
class World:
    database: Database
    vault: Vault
    cluster_id: str
    host: Host = field(default_factory=Host)
    services: dict[str, dict[str, Any]] = field(default_factory=dict)  # spec by "namespace/name"
    owned: dict[str, list[str]] = field(default_factory=dict)  # "namespace/name" by instance
    machines: dict[str, FoundMachine] = field(default_factory=dict)
    wait: float = 5.0

    def __post_init__(self) -> None:
        for at, one in enumerate((MASTER, WORKER, OTHER, BALANCER)):
            self.machines[one.machine] = machine(one, f"10.0.0.{at + 1}")
        self.records = BalancerRecords(self.database, self.wait)
        deps = Dependencies(Connector(self.host), UNUSED, self)
        self.steps = BalancerSteps(deps, self.records)
        contexts = ClusterContexts(self.database, self.vault)
        self.cnf = CnfSteps(deps, self.records, contexts, self, self.kube)

    # Files of the package
    async def read(self, instance_id: str, path: str, vnfd_id: str | None = None) -> bytes:
        return f"#!/bin/sh\n# {path} of {instance_id}\n".encode()

    def pieces(self, instance_id: str, path: str, vnfd_id: str | None = None) -> AsyncIterator[bytes]:
        raise NotImplementedError

    # The API of the cluster, for CNFs
    @asynccontextmanager
    async def kube(self, connection: VimConnection) -> AsyncIterator[Any]:
        yield self

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        namespace, name = path.split("/")[-3], path.split("/")[-1]
        spec = self.services.get(f"{namespace}/{name}")
        if spec is None:
            raise KubeError("there is none", status=404)
        return {"spec": spec}

    async def instance(self, operation_id: str, *, ahead: bool) -> VnfInstance:
        operation = await self.database.read(operations.get, operation_id)
        owner = operation.vnf_instance_id
        found = [
            FoundObject(id=one, kind="Service", api_version="v1", namespace=namespace, name=name)
            for one in self.owned.get(owner, [])
            for namespace, name in [one.split("/")]
        ]
        return vnf(owner, metadata={"objects": msgspec.to_builtins(found)})

    def expose(self, owner: str, service: str, *ports: int, protocol: str = "TCP") -> None:
        """The VNF has a Service with these NodePorts."""
        listed = [{"port": 80, "nodePort": port, "protocol": protocol} for port in ports]
        self.services[service] = {"type": "NodePort", "ports": listed}
        self.owned[owner] = [*(one for one in self.owned.get(owner, []) if one != service), service]

    def balancer(self, script: str | None = None, one: Node = BALANCER) -> Balancer:
        return Balancer(cluster=self.cluster_id, node=one, script=script)

    def operation(self, instance_id: str | None = None, *, worker: str = "worker", project: str = "default") -> Context:
        """One under way, of the cluster or of another instance."""
        owner, id_ = instance_id or self.cluster_id, str(uuid4())
        self.database.write_now(_run, id_, owner, worker, project)
        vim = VimConnection(SIMULATED, {}, {}, {}, vim_id="simulated", project=project)
        if owner != self.cluster_id:
            vim = VimConnection(KUBERNETES, {}, {}, {}, vim_id=vim_id_of(self.cluster_id), project=project)
        return Context(owner, id_, vim, self.machines if owner == self.cluster_id else {})

    def new_instance(self, project: str = "default") -> str:
        return self.database.write_now(_instance, project, {})

    async def record(self) -> BalancerRecord:
        found = await self.records.get(self.cluster_id)
        assert found is not None
        return found


def new_world(directory: Path, **more: Any) -> World:
    database = Database(f"sqlite:///{directory / 'slipway.db'}")
    upgrade(database)
    stored = {"k8s_cluster_installation_param": {"external_lb_param": LOGIN}}
    cluster_id = database.write_now(_instance, "default", stored)
    database.write_now(workers.renew_lease, "worker", 600.0)
    return World(database, Vault(directory / "key"), cluster_id, **more)


async def set_up(world: World, *, script: str | None = None) -> None:
    args = SetUp(balancer=world.balancer(script), nodes=(MASTER, WORKER))
    await world.steps.set_up(args, world.operation())


def front_ends(world: World) -> list[str]:
    return re.findall(r"^frontend (.*)$", world.host.config, re.MULTILINE)


def vnf(instance_id: str, **info: Any) -> VnfInstance:
    return VnfInstance(
        id=instance_id,
        vnfd_id="vnfd",
        vnf_provider="p",
        vnf_product_name="n",
        vnf_software_version="1",
        vnfd_version="1",
        instantiation_state=InstantiationState.INSTANTIATED,
        instantiated_vnf_info=InstantiatedVnfInfo(flavour_id="simple", vnf_state="STARTED", **info),
    )


def _instance(connection: Any, project: str, parameters: dict[str, Any]) -> str:
    made = vnf(str(uuid4()))
    now = datetime.now(UTC)
    instances.insert(connection, Instance(vnf=made, project=project, created_at=now, parameters=parameters))
    return made.id


def _run(connection: Any, operation_id: str, owner: str, worker: str, project: str) -> None:
    table, now = operations_table, datetime.now(UTC)
    connection.execute(table.update().where(table.c.instance_id == owner).values(state=State.COMPLETED.value))
    operation = Operation(
        id=operation_id,
        operation_state=State.PROCESSING,
        state_entered_time=now,
        start_time=now,
        vnf_instance_id=owner,
        operation=OperationType.SCALE,
        is_automatic_invocation=False,
        operation_params={},
        is_cancel_pending=False,
    )
    operations.accept(connection, operation, VimConnectionInfo(vim_id="simulated"), project)
    connection.execute(table.update().where(table.c.id == operation_id).values(worker_id=worker))
