"""How a run is followed, and what is told of it, on a server that does not mean well."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.spec import ClusterSpec, Node, Server, SshLogin
from slipway.cluster.steps.dependencies import Dependencies
from slipway.kubespray.arguments import AnsibleServer, RunPlaybook
from slipway.kubespray.events import RunReport
from slipway.kubespray.steps.playbook import LONGEST_LINE, Followed, run_to_end
from slipway.model.errors import StepError
from slipway.remote.output import Result

UNUSED: Any = None
PASSWORD = 'open "sesame"'
NODE = Node(machine="m", slot="workerNode-0", name="worker", master=False, ssh="CP", nic="CP",
            login=SshLogin(username="root", password=PASSWORD))  # fmt: skip
ANSIBLE = AnsibleServer(
    server=Server(address="192.0.2.10", login=SshLogin(username="a")), root="/k", inventory="/i", instance="i"
)
ARGS = RunPlaybook(
    ansible=ANSIBLE,
    playbook="cluster.yml",
    run="cluster.yml",
    cluster=ClusterSpec(
        instance="i", masters=(), networks=ClusterNetworks(pods="10.0.0.0/16", services="10.1.0.0/16", node_prefix=24)
    ),
    nodes=(NODE,),
    seconds=60,
)


class Context:
    operation_id, instance_id, cancelled = "0123456789", "i", False

    async def decrypt_secrets(self, document: Any) -> Any:
        return document

    def outcome(self, step_id: str) -> None:
        return None

    def progress(self, text: str) -> None:
        pass


class Host:
    """Its jobs end with an error."""

    def __init__(self, error: StepError) -> None:
        self.error = error

    async def run(self, argv: Sequence[str], **_: Any) -> Result:
        return Result(0, b"", b"")

    async def get(self, path: str, **_: Any) -> None:
        return None

    async def run_job(self, name: str, argv: Sequence[str], **_: Any) -> Result:
        raise self.error


class Connector:
    def __init__(self, host: Host) -> None:
        self.host = host

    async def host_at(self, server: Server, ctx: Any) -> Host:
        return self.host


@pytest.mark.parametrize("temporary", [True, False])
@pytest.mark.parametrize("printed", [PASSWORD, json.dumps(PASSWORD)])
def test_no_password_is_in_the_last_words_of_a_run(temporary: bool, printed: str) -> None:
    said = StepError(f"was killed. Last on stdout: {printed}", temporary=temporary)
    deps = Dependencies(Connector(Host(said)), UNUSED, UNUSED)  # type: ignore[arg-type]
    with pytest.raises(StepError) as error:
        asyncio.run(run_to_end(deps, ARGS, "cluster.yml", [], Context()))  # type: ignore[arg-type]
    assert "was killed" in error.value.detail
    assert "sesame" not in error.value.detail
    assert error.value.temporary is temporary


@pytest.mark.parametrize("login", ["gate:open%20sesame", "sesame-token"])
def test_no_login_of_a_proxy_is_told(login: str) -> None:
    """Some have a token in place of a name and a password."""
    said = StepError(f"fetch failed: proxy http://{login}@192.0.2.9:3128 answered 407")
    deps = Dependencies(Connector(Host(said)), UNUSED, UNUSED)  # type: ignore[arg-type]
    args = replace(ARGS, setup={"proxy": {"http_proxy": f"http://{login}@192.0.2.9:3128"}})
    with pytest.raises(StepError, match=r"@192\.0\.2\.9:3128 answered 407") as error:
        asyncio.run(run_to_end(deps, args, "cluster.yml", [], Context()))  # type: ignore[arg-type]
    assert "sesame" not in error.value.detail


def test_events_that_come_in_pieces_are_counted_once() -> None:
    report = RunReport()
    followed = Followed(report)
    written = b"".join(json.dumps({"event": "ok", "host": f"h{n}"}).encode() + b"\n" for n in range(1000))
    while piece := written[followed.known :][:777]:
        followed.read(piece)
    assert report.ok == 1000


def test_a_line_without_end_is_not_kept() -> None:
    report = RunReport()
    followed = Followed(report)
    for _ in range(100):
        followed.read(b"x" * (LONGEST_LINE // 10))
    assert len(followed.rest) <= LONGEST_LINE
    followed.read(b'\n{"event": "ok", "host": "a"}\n')
    assert report.ok == 1
