"""Credentials of a workload cluster: fetched from its management cluster, sent to a receiver, registered as a VIM."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from slipway.cluster.cluster_api.parameters import CLIENT_CERTIFICATE, SERVICE_ACCOUNT_TOKEN
from slipway.cluster.cluster_api.steps import (
    KEY,
    SENT,
    RegisterWorkloadCluster,
    SendCredentials,
    UnregisterWorkloadCluster,
    WorkloadSteps,
)
from slipway.cluster.steps.dependencies import ClientCertificate
from slipway.kube.account import ServiceAccountToken
from slipway.lcm.script_data import WorkloadKubeconfigs
from slipway.model.errors import StepError
from slipway.model.vim import SIMULATED
from tests.unit.cluster.workload_world import CLUSTER, INSTANCE, OPERATION, World, a_world, vnf
from tests.unit.vim.authority import Authority
from tests.unit.vim.loopback import Asked, Reply, serving


@dataclass
class WebServer:
    """The user's receiver: answers one status after the other, the last for ever."""

    url: str = ""
    authority: Authority = field(default_factory=Authority)
    statuses: list[int] = field(default_factory=lambda: [204])
    token: str | None = None  # that its token endpoint gives
    heard: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> Reply:
        if asked.path == "/token":
            known = asked.form == {"grant_type": "client_credentials"} and self.token is not None
            return Reply(200, {"access_token": self.token}) if known else Reply(401, {})
        self.heard.append(asked)
        return Reply(self.statuses[min(len(self.heard), len(self.statuses)) - 1])

    def parameters(self, **more: Any) -> dict[str, Any]:
        return {"url": f"{self.url}/credentials?tenant=query-secret", "ca_certificate": self.authority.pem, **more}


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        yield world


@pytest.fixture
def web() -> Iterator[WebServer]:
    with a_web_server() as web:
        yield web


@contextmanager
def a_web_server() -> Iterator[WebServer]:
    web = WebServer()
    with serving(web.answer, web.authority.server_context("127.0.0.1")) as url:
        web.url = url
        yield web


async def send(world: World, web: WebServer, sent: str | None = None, **more: Any) -> str:
    """The digest that is recorded."""
    args = SendCredentials(receiver=web.parameters(**more), sent=sent)
    outcome = await WorkloadSteps(world.dependencies()).send(args, world.context())
    digest = outcome.instance["instantiatedVnfInfo"]["metadata"][SENT]
    assert isinstance(digest, str)
    return digest


async def test_the_receiver_is_told_all_that_it_needs_to_register_the_cluster(world: World, web: WebServer) -> None:
    digest = await send(world, web)
    [asked] = web.heard
    said = asked.document
    assert (asked.method, asked.path, asked.query) == ("POST", "/credentials", {"tenant": "query-secret"})
    assert (said["vnfInstanceId"], said["vnfLcmOpOccId"]) == (INSTANCE, OPERATION)
    assert said["cluster"] == {"name": "demo", "namespace": "edge"}
    assert (said["server"], said["certificateAuthority"]) == (world.url, world.authority.pem)
    assert said["clientCertificate"].startswith("-----BEGIN CERT")
    assert said["clientKey"].startswith("-----BEGIN PRIVATE")
    assert "client-key-data" in said["kubeconfig"]
    assert said["credentialsId"] == asked.headers["idempotency-key"] == digest


async def test_what_a_receiver_has_is_not_sent_again_and_what_changed_is(world: World, web: WebServer) -> None:
    first = await send(world, web)
    assert await send(world, web, sent=first) == first
    assert len(web.heard) == 1
    world.give(world.kubeconfig("renewed"))
    assert await send(world, web, sent=first) != first
    with a_web_server() as other:
        await send(world, other, sent=first)
        assert [len(web.heard), len(other.heard)] == [2, 1]


@pytest.mark.parametrize(
    ("login", "expected"),
    [
        ({"username": "vnfm", "password": "word"}, "Basic dm5mbTp3b3Jk"),
        ({"bearer_token": "a-token"}, "Bearer a-token"),
        ({"oauth2": {"client_id": "vnfm", "client_secret": "s"}}, "Bearer fetched"),
    ],
)
async def test_it_logs_in_as_asked(world: World, web: WebServer, login: dict[str, Any], expected: str) -> None:
    web.token = "fetched"
    if "oauth2" in login:
        login["oauth2"]["token_url"] = f"{web.url}/token"
    await send(world, web, **login)
    assert web.heard[0].headers["authorization"] == expected


async def test_a_receiver_that_is_busy_is_asked_again(world: World, web: WebServer) -> None:
    web.statuses = [503, 429, 201]
    await send(world, web)
    assert len(web.heard) == 3
    assert len({asked.headers["idempotency-key"] for asked in web.heard}) == 1


async def test_attempts_have_an_end_and_the_error_says_what_came_back(world: World, web: WebServer) -> None:
    web.statuses = [500]
    with pytest.raises(StepError, match=r"/credentials answered 500 instead of 2xx \(3 attempts\)") as caught:
        await send(world, web, attempts=3)
    assert len(web.heard) == 3
    assert "query-secret" not in caught.value.detail


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
async def test_what_will_not_change_is_not_tried_again(world: World, web: WebServer, status: int) -> None:
    web.statuses = [status]
    with pytest.raises(StepError, match=f"answered {status}"):
        await send(world, web)
    assert len(web.heard) == 1


async def test_a_receiver_with_another_certificate_hears_nothing(world: World, web: WebServer) -> None:
    with pytest.raises(StepError, match="CERTIFICATE_VERIFY_FAILED"):
        await send(world, web, ca_certificate=Authority().pem, attempts=1)
    assert web.heard == []


async def test_a_token_endpoint_that_refuses_is_named(world: World, web: WebServer) -> None:
    oauth2 = {"client_id": "vnfm", "client_secret": "s", "token_url": f"{web.url}/token"}
    with pytest.raises(StepError, match=r"token endpoint .*/token answered 401"):
        await send(world, web, oauth2=oauth2)
    assert web.heard == []


async def test_nothing_of_the_credentials_is_logged(
    world: World, web: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    web.statuses = [500, 204]
    await send(world, web, bearer_token="a-token")
    said = web.heard[0].document
    key = said["clientKey"].splitlines()[1]
    assert key not in caplog.text
    assert "a-token" not in caplog.text
    assert key not in repr(await world.dependencies().cluster(world.context()))


async def test_the_kubeconfig_is_waited_for_and_a_timeout_names_the_secret(world: World) -> None:
    world.secrets.clear()
    with pytest.raises(StepError, match=r"timed out after 0\.1 s .*demo \(Secret demo-kubeconfig\)"):
        await world.dependencies(0.1).cluster(world.context())


@pytest.mark.parametrize(("objects", "why"), [((), "has no workload cluster"), ((CLUSTER, CLUSTER), "several")])
async def test_a_vnf_is_one_workload_cluster(world: World, objects: tuple[Any, ...], why: str) -> None:
    world.objects = objects
    with pytest.raises(StepError, match=why):
        await world.dependencies().cluster(world.context())


async def test_its_vim_must_be_a_management_cluster(world: World) -> None:
    with pytest.raises(StepError, match="is no management cluster"):
        await world.dependencies().cluster(world.context(SIMULATED))


async def test_a_script_in_the_senders_place_is_given_the_kubeconfig_and_may_not_repeat_its_key(world: World) -> None:
    scripts = WorkloadKubeconfigs(world.dependencies().clusters)
    found = await scripts(vnf(CLUSTER), world.context())
    assert found is not None
    assert (found.given["name"], found.given["namespace"]) == ("demo", "edge")
    key = yaml.safe_load(found.given["kubeconfig"])["users"][0]["user"]["client-key-data"]
    assert key in found.secrets
    assert key not in repr(found)
    assert await scripts(vnf(), world.context()) is None


async def register(world: World, access: str) -> dict[str, Any]:
    args = RegisterWorkloadCluster(vim_name="edge-1", access=access)
    return (await WorkloadSteps(world.dependencies()).register(args, world.context())).instance


async def test_it_is_registered_by_the_certificate_that_cluster_api_made(world: World) -> None:
    patch = await register(world, CLIENT_CERTIFICATE)
    vim = world.registered[INSTANCE]
    assert (vim.name, vim.endpoint, vim.ca) == ("edge-1", world.url, world.authority.pem)
    assert isinstance(vim.access, ClientCertificate)
    assert patch["vimConnectionInfo"][KEY]["vimId"] == "vim-id"
    assert patch["instantiatedVnfInfo"]["metadata"]["kubernetesVersion"] == "1.34.4"
    assert "kubernetes-admin" in {asked.client for asked in world.asked}


async def test_it_is_registered_by_a_token_of_an_account_made_in_it(world: World) -> None:
    await register(world, SERVICE_ACCOUNT_TOKEN)
    access = world.registered[INSTANCE].access
    assert isinstance(access, ServiceAccountToken)
    assert access.value == "made-token"


async def test_an_api_server_that_does_not_tell_its_version_will_do(world: World) -> None:
    """That of the in-memory provider does not."""
    world.version = None
    assert "instantiatedVnfInfo" not in await register(world, CLIENT_CERTIFICATE)


async def test_a_rollback_takes_back_a_registration_that_it_made_and_no_other(world: World) -> None:
    steps = WorkloadSteps(world.dependencies())
    await register(world, CLIENT_CERTIFICATE)
    args = RegisterWorkloadCluster(vim_name="edge-1", access=CLIENT_CERTIFICATE, anew=False)
    await steps.undo_register(args, world.context())
    assert INSTANCE in world.registered
    await steps.unregister(UnregisterWorkloadCluster(), world.context())
    assert world.registered == {}
