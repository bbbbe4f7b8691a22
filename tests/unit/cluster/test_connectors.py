"""What is remembered of a cluster's API must be that of the cluster that is there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from slipway.cluster.connectors import SshConnector
from slipway.cluster.spec import Node as ClusterNode
from slipway.cluster.spec import Server, SshLogin
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi
from slipway.model.action import StepContext
from slipway.model.machine import Address, FoundMachine, FoundPort


class Node:
    machine = "machine-1"
    slot = "masterNode-0"


class ApiServer:
    """It knows one administrator, as long as the cluster lives."""

    def __init__(self) -> None:
        self.administrator = "of the first cluster"
        self.status: int | None = None

    async def text(self, path: str, given: str) -> str:
        if self.status is not None:
            raise KubeError("busy", status=self.status, temporary=True)
        if given != self.administrator:
            raise KubeError("the server's certificate was not accepted")
        return "ok"


class Connector(SshConnector):
    """The real one, but that the API server is here and the administrator's credentials are a name."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__()
        self.server, self.reads = server, 0

    @asynccontextmanager
    async def _through(self, node: Any, ctx: Any) -> AsyncIterator[KubeApi]:
        known = cast("dict[str, Any]", self._known)
        if node.machine not in known:
            known[node.machine] = self.server.administrator
            self.reads += 1
        server, given = self.server, known[node.machine]

        class Api:
            async def text(self, path: str) -> str:
                return await server.text(path, given)

        yield cast("KubeApi", Api())


async def ready(connector: Connector) -> None:
    _, stack = await connector._ready(cast("Any", Node()), cast("StepContext", None))
    await stack.aclose()


async def test_credentials_are_read_once() -> None:
    connector = Connector(ApiServer())
    await ready(connector)
    await ready(connector)
    assert connector.reads == 1


async def test_those_of_a_cluster_that_is_gone_are_read_again() -> None:
    """An instantiation that was rolled back and tried again makes other machines with the same ids."""
    server = ApiServer()
    connector = Connector(server)
    await ready(connector)
    server.administrator = "of the second cluster"
    await ready(connector)
    assert connector.reads == 2


async def test_a_server_that_is_busy_keeps_them() -> None:
    server = ApiServer()
    connector = Connector(server)
    await ready(connector)
    server.status = 503
    with pytest.raises(KubeError, match="busy"):
        await ready(connector)
    assert connector.reads == 1


LOGIN = SshLogin(username="root", password="hills")


class Machines:
    """All that a VIM tells of machines: it may be anything."""

    async def machine(self, machine_id: str) -> FoundMachine:
        port = FoundPort(id="p", name="CP1", resource_id="p", addresses=(Address(ip="192.0.2.7"),))
        return FoundMachine(
            id=machine_id, name="masterNode-0", vdu="v", resource_id="192.0.2.10", ready=True, ports=(port,)
        )

    async def decrypt_secrets(self, document: Any) -> Any:
        return document


async def test_what_a_vim_calls_a_machine_is_no_other_machines_host_key() -> None:
    connector, ctx = SshConnector(), cast("StepContext", Machines())
    nodes = [
        ClusterNode(machine=one, slot="masterNode-0", name="m", master=True, ssh="CP1", nic="CP1", login=LOGIN)
        for one in ("one", "another")
    ]
    server = await connector.host_at(Server(address="192.0.2.10", login=LOGIN), ctx)
    names = {server.target.known_as, *[(await connector.host(node, ctx)).target.known_as for node in nodes]}
    assert len(names) == 3
