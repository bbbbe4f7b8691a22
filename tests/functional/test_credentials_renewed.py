"""Credentials that Cluster API renews between two operations reach the receiver without another operation."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.cluster.cluster_api.credentials import WorkloadClusters
from slipway.cluster.cluster_api.steps import SENT
from slipway.cluster_access.token_renewal import ClusterTokens
from slipway.cluster_access.workload_clusters import WorkloadAccess
from slipway.model.instance import Instance, VimConnectionInfo
from slipway.model.operation import OperationType, State
from slipway.model.requests import TerminateRequest, TerminationType
from slipway.model.vim import KUBERNETES
from slipway.outgoing.guard import Guard
from slipway.store import instances, operations
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.functional.rig import Rig, rig_in, settings_in
from tests.unit.cluster.test_workload_credentials import WebServer, a_web_server
from tests.unit.cluster.workload_world import World, a_world, vnf

pytestmark = pytest.mark.sqlite_suffices
TOKEN = "canary-1c84"


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        yield world


@pytest.fixture
def web() -> Iterator[WebServer]:
    with a_web_server() as web:
        yield web


@dataclass
class Told:
    """A VNF whose receiver was told credentials by its instantiation, and no registered VIM."""

    rig: Rig
    access: WorkloadAccess
    vnf_id: str

    async def instance(self) -> Instance:
        return await self.rig.instance(self.vnf_id)

    async def sent(self) -> Any:
        info = (await self.instance()).vnf.instantiated_vnf_info
        return info.metadata.get(SENT) if info else None


@asynccontextmanager
async def told(
    directory: Path, world: World, web: WebServer, sent: str | None = "of former ones"
) -> AsyncIterator[Told]:
    async with rig_in(settings_in(directory), working=False) as rig:
        slipway, id_ = rig.slipway, await rig.create()

        def place(connection: Any) -> None:
            instance = instances.get(connection, id_)
            secrets = slipway.vault.encrypt_secrets
            receiver = web.parameters(bearer_token=TOKEN, attempts=10)
            parameters = secrets(connection, id_, {"cluster_api": {"credentials_receiver": receiver}}, ())
            access = secrets(connection, id_, {"bearer_token": "management"}, ())
            interface = {"endpoint": world.url, "ssl_ca_cert": world.authority.pem}
            vim = VimConnectionInfo(vim_type=KUBERNETES, interface_info=interface, access_info=access)
            made = vnf(*world.objects)
            info = made.instantiated_vnf_info
            assert info is not None
            known = {SENT: sent} if sent else {}
            record = replace(
                instance.vnf,
                instantiation_state=made.instantiation_state,
                instantiated_vnf_info=replace(info, metadata=info.metadata | known),
                vim_connection_info={"vim": vim},
            )
            instances.update(connection, replace(instance, vnf=record, parameters=parameters))

        await slipway.database.write(place)
        guard = Guard(loopback=True)
        clusters = WorkloadClusters(KubernetesVimDriver(guard=guard).api)
        yield Told(rig, WorkloadAccess(slipway.database, slipway.vault, clusters, guard), id_)


async def test_what_changed_is_sent_once_and_recorded(tmp_path: Path, world: World, web: WebServer) -> None:
    async with told(tmp_path, world, web) as one:
        await one.access.send_changed()
        await one.access.send_changed()
        [asked] = web.heard
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"
        assert asked.document["credentialsId"] == asked.headers["idempotency-key"] == await one.sent()
        assert (asked.document["vnfInstanceId"], "vnfLcmOpOccId" in asked.document) == (one.vnf_id, False)
        world.give(world.kubeconfig("renewed"))
        await one.access.send_changed()
        assert len({said.document["clientCertificate"] for said in web.heard}) == 2
        assert web.heard[-1].document["credentialsId"] == await one.sent()


async def test_it_is_part_of_the_look_at_logins_that_end(tmp_path: Path, world: World, web: WebServer) -> None:
    async with told(tmp_path, world, web) as one:
        slipway = one.rig.slipway
        tokens = ClusterTokens(slipway.database, slipway.vims, slipway.clusters, one.access)
        tokens.shut_down()
        await tokens.look_once()
        assert len(web.heard) == 1


async def test_a_receiver_that_is_away_is_told_at_the_next_look_and_nothing_of_it_is_logged(
    tmp_path: Path, world: World, web: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    web.statuses = [503, 204]
    async with told(tmp_path, world, web) as one:
        with caplog.at_level(logging.DEBUG):
            await one.access.send_changed()
            assert len(web.heard) == 1, "one attempt for each look"
            assert await one.sent() == "of former ones"
            await one.access.send_changed()
        assert [asked.document["credentialsId"] for asked in web.heard] == [await one.sent()] * 2
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warned) == 1
    assert one.vnf_id in warned[0]
    assert "answered 503" in warned[0]
    assert "tried again at the next look" in warned[0]
    assert "query-secret" not in warned[0]
    key = web.heard[0].document["clientKey"].splitlines()[1]
    assert not [secret for secret in (TOKEN, key, "client-key-data") if secret in caplog.text]


async def test_a_vnf_whose_receiver_was_never_told_or_that_an_operation_holds_is_left_alone(
    tmp_path: Path, world: World, web: WebServer
) -> None:
    async with told(tmp_path / "never", world, web, sent=None) as one:
        await one.access.send_changed()
    async with told(tmp_path / "held", world, web) as one:
        request = TerminateRequest(termination_type=TerminationType.FORCEFUL)
        begun = await one.rig.slipway.lcm.start_operation(OperationType.TERMINATE, one.vnf_id, request)
        assert begun.operation_state in (State.STARTING, State.PROCESSING)
        await one.access.send_changed()
    assert web.heard == []


async def test_the_record_is_left_to_an_operation_that_began_meanwhile(
    tmp_path: Path, world: World, web: WebServer
) -> None:
    """It is planned with the record as it is; at the worst the receiver hears the same credentialsId once more."""
    async with told(tmp_path, world, web) as one:
        slipway = one.rig.slipway
        request = TerminateRequest(termination_type=TerminationType.FORCEFUL)
        await slipway.lcm.start_operation(OperationType.TERMINATE, one.vnf_id, request)
        assert await slipway.database.read(operations.held_by, one.vnf_id)
        before = await one.instance()
        await one.access.tell(one.vnf_id)
        assert len(web.heard) == 1
        assert await one.instance() == before
