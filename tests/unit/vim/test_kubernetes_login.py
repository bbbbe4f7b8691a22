"""The ways to log in to a Kubernetes VIM, and what a login says."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest, VimError, VimFault
from slipway.model.vim import KUBERNETES
from slipway.outgoing.guard import Guard
from slipway.outgoing.oauth2 import EARLY
from slipway.vim import trust
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.kubernetes.oidc import IdTokens, OidcAccount
from tests.unit.kube.pem import SLOW_KEY
from tests.unit.vim.authority import Authority
from tests.unit.vim.cluster_standin import Cluster, TokenEndpoint, a_cluster, a_token_endpoint

driver = KubernetesVimDriver()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with a_cluster() as cluster:
        yield cluster


@pytest.fixture
def endpoint(cluster: Cluster) -> Iterator[TokenEndpoint]:
    with a_token_endpoint(cluster) as endpoint:
        yield endpoint


def to(cluster: Cluster, access: dict[str, Any], **interface: Any) -> VimConnection:
    return VimConnection(
        KUBERNETES, {"endpoint": cluster.url, "ssl_ca_cert": cluster.authority.pem, **interface}, access, {}
    )


def by_oidc(endpoint: TokenEndpoint, **changes: Any) -> dict[str, Any]:
    return {
        "oidc_token_url": endpoint.url,
        "username": "operator",
        "password": "oidc-password",
        "client_id": "slipway",
        "client_secret": "oidc-secret",
        **changes,
    }


async def fails(connection: VimConnection, fault: VimFault) -> str:
    with pytest.raises(VimError) as caught:
        await KubernetesVimDriver().check(connection)
    assert caught.value.fault is fault, caught.value.detail
    for secret in ("good-token", "bad-token", "oidc-password", "oidc-secret"):
        assert secret not in caught.value.detail
    return caught.value.detail


async def test_a_server_that_does_not_tell_its_version_is_no_reason_to_refuse_it(cluster: Cluster) -> None:
    cluster.tells_version = False
    said = await driver.check(to(cluster, {"bearer_token": "good-token"}))
    assert said == "Kubernetes of no known version: 2 nodes, 2 namespaces."


async def test_a_token_logs_in_and_says_what_is_there(cluster: Cluster) -> None:
    seen = await driver.inspect(to(cluster, {"bearer_token": "good-token"}))
    assert seen.detail == "Kubernetes v1.31.2: 2 nodes, 2 namespaces."
    assert seen.regions == ("default", "kube-system")
    assert "401" in await fails(to(cluster, {"bearer_token": "bad-token"}), VimFault.AUTH)


async def test_a_client_certificate_logs_in(cluster: Cluster) -> None:
    certificate, key = cluster.authority.issued("kubernetes-admin")
    said = await driver.check(to(cluster, {"client_certificate": certificate, "client_key": key}))
    assert said.startswith("Kubernetes v1.31.2: 2 nodes")


async def test_a_password_logs_in_where_somebody_looks_at_it(cluster: Cluster) -> None:
    access = {"username": "me", "password": "oidc-password"}
    assert "knows; Kubernetes itself has no passwords" in await fails(to(cluster, access), VimFault.AUTH)
    cluster.passwords = {"me": "oidc-password"}
    assert (await driver.check(to(cluster, access))).startswith("Kubernetes v1.31.2")


async def test_a_user_of_one_namespace_need_not_see_all(cluster: Cluster) -> None:
    cluster.forbidden = frozenset({"nodes", "namespaces"})
    seen = await driver.inspect(to(cluster, {"bearer_token": "good-token", "namespace": "mine"}))
    assert "its nodes are not for this user to see" in seen.detail
    assert seen.regions == ("mine",)


async def test_a_namespace_that_is_not_there_is_said(cluster: Cluster) -> None:
    said = await driver.check(to(cluster, {"bearer_token": "good-token", "namespace": "mine"}))
    assert said.endswith("There is no namespace mine yet.")


async def test_only_a_certificate_of_the_given_ca_is_believed(cluster: Cluster) -> None:
    token = {"bearer_token": "good-token"}
    for wrong in (Authority().pem, None):
        said = await fails(to(cluster, token, ssl_ca_cert=wrong), VimFault.PERMANENT)
        assert "certificate was not accepted" in said
    assert not cluster.asked
    assert await driver.check(to(cluster, token, ssl_ca_cert=None, skipCertificateVerification=True))
    assert await driver.check(to(cluster, token, tls_server_name="kubernetes"))
    assert "certificate" in await fails(to(cluster, token, tls_server_name="another"), VimFault.PERMANENT)


async def test_the_guard_is_asked_before_anybody_else(cluster: Cluster, endpoint: TokenEndpoint) -> None:
    guarded = KubernetesVimDriver(guard=Guard())
    for access in ({"bearer_token": "good-token"}, by_oidc(endpoint)):
        with pytest.raises(VimError, match="loopback"):
            await guarded.check(to(cluster, access))
    assert not cluster.asked
    assert not endpoint.asked


async def test_a_password_is_exchanged_for_a_token(cluster: Cluster, endpoint: TokenEndpoint) -> None:
    assert (await driver.check(to(cluster, by_oidc(endpoint)))).startswith("Kubernetes v1.31.2: 2 nodes")
    assert endpoint.asked[0].form == {
        "grant_type": "password",
        "scope": "openid",
        "username": "operator",
        "password": "oidc-password",
        "client_id": "slipway",
        "client_secret": "oidc-secret",
    }
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("change", "fault", "words"),
    [
        (
            {"password": "bad-token"},
            VimFault.AUTH,
            "401: Invalid user credentials. Cure: correct the password of operator",
        ),
        ({"client_secret": "bad-token"}, VimFault.AUTH, "401: Invalid client credentials. Cure: correct client_id"),
    ],
)
async def test_a_token_that_is_refused_has_a_cure(
    cluster: Cluster, endpoint: TokenEndpoint, change: dict[str, Any], fault: VimFault, words: str
) -> None:
    assert words in await fails(to(cluster, by_oidc(endpoint, **change)), fault)
    assert not cluster.asked


@pytest.mark.parametrize("ends", [10**400, -(10**400)])
async def test_a_token_whose_end_no_clock_shows_is_used_for_a_while(
    cluster: Cluster, endpoint: TokenEndpoint, ends: int
) -> None:
    endpoint.ends = ends
    await KubernetesVimDriver().check(to(cluster, by_oidc(endpoint)))


def test_tokens_are_not_shared_by_projects_nor_by_what_is_trusted() -> None:
    one = OidcAccount("https://tokens.example", "c", "u", "p")
    others = (replace(one, project="other"), replace(one, trusted="all"), replace(one, password="q"))
    assert len({account.credential for account in (one, *others)}) == 4


async def test_an_endpoint_without_id_tokens_is_named(cluster: Cluster, endpoint: TokenEndpoint) -> None:
    endpoint.without_id_token = True
    assert "gave no id_token. Cure: " in await fails(to(cluster, by_oidc(endpoint)), VimFault.PERMANENT)


async def test_a_token_is_kept_until_shortly_before_its_end(cluster: Cluster, endpoint: TokenEndpoint) -> None:
    now = [1000.0]
    endpoint.ends = 2000.0
    driver = KubernetesVimDriver(IdTokens(clock=lambda: now[0]))
    async with driver.api(to(cluster, by_oidc(endpoint))) as api:
        await asyncio.gather(*(api.get("/version") for _ in range(5)))
        now[0] = 2000.0 - EARLY - 1
        await api.get("/version")
        assert endpoint.grants == ["password"]
        now[0], endpoint.ends = 2000.0, 3000.0
        await api.get("/version")
        assert endpoint.grants == ["password", "refresh_token"]
        now[0], endpoint.ends, endpoint.refreshes = 3000.0, 4000.0, False
        await api.get("/version")
    assert endpoint.grants == ["password", "refresh_token", "refresh_token", "password"]


async def test_logins_that_fail_leave_nothing_behind(cluster: Cluster, endpoint: TokenEndpoint) -> None:
    tokens = IdTokens()
    driver = KubernetesVimDriver(tokens)
    for number in range(5):
        with pytest.raises(VimError, match="Invalid user credentials"):
            await driver.check(to(cluster, by_oidc(endpoint, password=f"guess {number}")))
    gc.collect()
    assert not len(tokens._tokens._locks)


async def test_a_check_asks_for_a_new_token_even_if_one_is_kept(cluster: Cluster, endpoint: TokenEndpoint) -> None:
    driver = KubernetesVimDriver()
    await driver.check(to(cluster, by_oidc(endpoint)))
    endpoint.password = "changed"
    with pytest.raises(VimError, match="Invalid user credentials"):
        await driver.check(to(cluster, by_oidc(endpoint)))


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ({}, "it does not say how to log in"),
        ({"username": "me"}, "it does not say how to log in"),
        ({"client_key": "k"}, "client_certificate, client_key: one goes"),
        ({"client_certificate": "c", "client_key": "canary"}, "does not go with its key"),
        ({"bearer_token": 7}, r"accessInfo\.bearer_token: must be a string"),
        ({"bearer_token": "two words"}, "give it without spaces"),
        ({"oidc_token_url": "https://k/token", "username": "u", "password": "p"}, r"accessInfo\.client_id: is missing"),
        (
            {"oidc_token_url": "file:///etc/shadow", "username": "u", "password": "p", "client_id": "c"},
            r"accessInfo\.oidc_token_url",
        ),
    ],
)
def test_what_is_no_login_is_refused_without_repeating_it(access: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words) as caught:
        driver.validate(VimConnection(KUBERNETES, {"endpoint": "https://k:6443"}, access, {}))
    assert "canary" not in caught.value.detail


def test_an_address_without_tls_is_refused() -> None:
    for endpoint in ("http://k:8080", "", None):
        with pytest.raises(BadRequest, match="https://host:port"):
            driver.validate(VimConnection(KUBERNETES, {"endpoint": endpoint}, {"bearer_token": "t"}, {}))


@pytest.mark.parametrize(
    "interface",
    [
        {"endpoint": "https://xn--ü:6443"},
        {"endpoint": "https://k:6443/\x7f"},
        {"endpoint": "https://k:6443/#part"},
        {"endpoint": "https://k:6443", "tls_server_name": ".k"},
    ],
)
def test_an_address_that_can_not_be_asked_is_refused_before_it_is_kept(interface: dict[str, str]) -> None:
    with pytest.raises(BadRequest, match=r"The (address|name) of the Kubernetes API"):
        driver.validate(VimConnection(KUBERNETES, interface, {"bearer_token": "t"}, {}))


@pytest.mark.parametrize("many", [101, 11_000])
def test_a_ca_of_too_many_certificates_is_refused_before_it_is_read(cluster: Cluster, many: int) -> None:
    began = time.process_time()
    with pytest.raises(BadRequest, match=r"interfaceInfo\.ssl_ca_cert: it (has more than 100|is larger than 64 KiB)"):
        driver.validate(to(cluster, {"bearer_token": "good-token"}, ssl_ca_cert=cluster.authority.pem * many))
    assert time.process_time() - began < 1
    with pytest.raises(BadRequest, match=r"interfaceInfo\.ssl_ca_cert"):
        trust.context({"ssl_ca_cert": cluster.authority.pem * many})


def test_an_encrypted_client_key_is_a_bad_request(cluster: Cluster) -> None:
    certificate, _ = cluster.authority.issued("me")
    with pytest.raises(BadRequest, match=r"client_key: .*without a passphrase"):
        driver.validate(to(cluster, {"client_certificate": certificate, "client_key": SLOW_KEY}))


@pytest.mark.parametrize(("many", "why"), [(2_000_000, "4194304 bytes"), (300_000, "250000 values")])
async def test_an_answer_of_very_many_values_is_not_taken(cluster: Cluster, many: int, why: str) -> None:
    cluster.items = [{}] * many
    with pytest.raises(VimError, match=f"/api/v1/nodes .*larger than {why}"):
        await KubernetesVimDriver(guard=Guard(loopback=True)).check(to(cluster, {"bearer_token": "good-token"}))


async def test_what_is_kept_of_a_cluster_is_bounded(cluster: Cluster) -> None:
    names = [f"n{number}" for number in range(12_000)]
    cluster.items = [{"metadata": {"name": name}} for name in ("x" * 64, *names)]
    seen = await KubernetesVimDriver(guard=Guard(loopback=True)).inspect(to(cluster, {"bearer_token": "good-token"}))
    assert "10000 or more nodes" in seen.detail
    assert seen.regions == tuple(names[:1000])


async def test_pages_without_end_are_not_followed_for_ever(cluster: Cluster) -> None:
    cluster.metadata = {"continue": "again"}
    await KubernetesVimDriver(guard=Guard(loopback=True)).check(to(cluster, {"bearer_token": "good-token"}))
    assert len(cluster.asked) == 1 + 2 * 100


async def test_answers_are_asked_for_uncompressed(cluster: Cluster) -> None:
    await driver.check(to(cluster, {"bearer_token": "good-token"}))
    assert {asked.headers["accept-encoding"] for asked in cluster.asked} == {"identity"}
