from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from slipway.kube.api import Api
from slipway.kube.credentials import Credentials
from slipway.kube.errors import KubeError
from slipway.model.action import VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.model.vim import KUBERNETES
from slipway.outgoing.guard import Guard
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.unit.outgoing.certificates import Authority
from tests.unit.outgoing.guards import answering, tls_of
from tests.unit.outgoing.loopback_server import Answer, document, serving


@pytest.mark.parametrize(
    "where", ["https://169.254.169.254", "https://[::ffff:169.254.169.254]:6443", "https://127.0.0.1"]
)
async def test_a_vim_is_not_looked_for_where_nobody_may_send_us(where: str) -> None:
    info = {"endpoint": where, "ssl_ca_cert": Authority().certificate}
    with pytest.raises(VimError, match="allowed") as caught:
        await KubernetesVimDriver(guard=Guard()).check(VimConnection(KUBERNETES, info, {"bearer_token": "secret"}, {}))
    assert caught.value.fault is VimFault.PERMANENT


async def test_a_cluster_is_asked_by_its_name_at_the_address_that_was_judged(tmp_path: Path) -> None:
    authority = Authority()
    guard = Guard(loopback=True, resolver=answering(cluster_example=["127.0.0.1"]))
    context = tls_of(authority.vouch_for("cluster.example"), tmp_path)
    async with serving(lambda asked: document({"gitVersion": "v1.34.4"}), tls=context) as server:
        credentials = Credentials(
            server=server.url(host="cluster.example"), ca=authority.certificate, token="secret", server_name=None
        )
        async with Api(credentials, guard=guard) as api:
            for _ in range(3):
                assert (await api.get("/version"))["gitVersion"] == "v1.34.4"
    assert server.connections == 1
    assert server.asked[0].headers["authorization"] == "Bearer secret"


async def test_a_cluster_that_never_answers_costs_a_bounded_time_and_no_connection(tmp_path: Path) -> None:
    authority = Authority()
    released = asyncio.Event()

    async def later(_: object) -> Answer:
        await released.wait()
        return Answer()

    context = tls_of(authority.vouch_for("127.0.0.1"), tmp_path)
    async with serving(later, tls=context) as server:
        credentials = Credentials(server=server.url(), ca=authority.certificate, token="secret")
        async with Api(credentials, guard=Guard(loopback=True), timeout=0.3) as api:
            for _ in range(12):  # more than may be under way at once
                with pytest.raises(KubeError, match="not answered within"):
                    await api.get("/version")
        released.set()
