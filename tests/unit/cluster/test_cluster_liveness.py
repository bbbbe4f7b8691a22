"""The watch beside a step: it ends the step when a machine is dead, and for no other reason."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from slipway.cluster.spec import ClusterSpec, Node, Server, SshLogin
from slipway.cluster.steps.dependencies import RemoteHost
from slipway.cluster.steps.liveness import Liveness, LivenessLimits, Waiting
from slipway.kube.interface import KubeApi
from slipway.model.action import StepContext, VimConnection
from slipway.model.errors import StepError
from slipway.model.machine import Found, FoundMachine, FoundPort, Outcome
from slipway.model.package_content import PackageContent
from slipway.remote.errors import LoginRefused
from slipway.remote.output import Result

QUICK = LivenessLimits(between=0.01, answer=1.0, confirm=0.01, unreachable=0.05, boot=30, accounts=0.1)
SILENT = StepError("no answer", temporary=True)
RESTARTING = OperationalError("SELECT 1", {}, Exception("the database system is starting up"))


def a_node(number: int) -> Node:
    slot = f"workerNode-{number}"
    return Node(machine=slot, slot=slot, name=slot, master=False, ssh="CP1", nic="CP1", login=SshLogin(username="root"))


class Shells:
    """Machines that answer, unless `answer` raises what they do instead."""

    def __init__(self, answer: Callable[[Node], None]) -> None:
        self.asked: Counter[str] = Counter()
        self.most_at_once = 0
        self._open = 0
        self._answer = answer

    async def host(self, node: Node, ctx: StepContext) -> Any:
        self.asked[node.slot] += 1
        self._answer(node)
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        return self

    async def run(self, argv: Sequence[str], **_: Any) -> Result:
        await asyncio.sleep(0.001)
        self._open -= 1
        return Result(0, b"", b"")

    async def host_at(self, server: Server, ctx: StepContext) -> RemoteHost:
        raise NotImplementedError

    async def host_key_at(self, server: Server, ctx: StepContext) -> str | None:
        raise NotImplementedError

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        return None

    def api(
        self, cluster: ClusterSpec, ctx: StepContext, within: float | None = None
    ) -> AbstractAsyncContextManager[KubeApi]:
        raise NotImplementedError  # there is no cluster here


class Anywhere:
    operation_id = "operation"
    instance_id = "instance"
    cancelled = False

    async def connection(self) -> VimConnection:
        raise NotImplementedError

    async def machine(self, machine_id: str) -> FoundMachine:
        raise NotImplementedError

    async def port(self, name: str) -> FoundPort:
        raise NotImplementedError

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


def waiting(*nodes: Node) -> Waiting:
    return Waiting(Anywhere(), nodes)


async def test_a_look_that_fails_itself_does_not_end_the_work(caplog: pytest.LogCaptureFixture) -> None:
    """The database is away while it restarts: the step beside it does not need it."""
    looked = asyncio.Event()

    def answer(node: Node) -> None:
        if shells.asked[node.slot] >= 3:
            looked.set()
        raise RESTARTING

    async def work() -> str:
        async with asyncio.timeout(5):
            await looked.wait()
        return "done"

    shells = Shells(answer)
    with caplog.at_level(logging.WARNING):
        assert await Liveness(shells, limits=QUICK).run_while_alive(work(), waiting(a_node(1))) == "done"
    assert "OperationalError" in caplog.text


async def test_a_look_that_fails_itself_does_not_hide_why_the_work_failed() -> None:
    async def work() -> None:
        raise StepError("the work's own reason")

    def answer(node: Node) -> None:
        raise RESTARTING

    with pytest.raises(StepError, match="the work's own reason"):
        await Liveness(Shells(answer), limits=QUICK).run_while_alive(work(), waiting(a_node(1)))


async def test_after_looks_that_failed_a_dead_machine_is_still_found() -> None:
    def answer(node: Node) -> None:
        raise SILENT if shells.asked[node.slot] > 2 else RESTARTING

    shells = Shells(answer)
    with pytest.raises(StepError, match="workerNode-1 does not answer"):
        await Liveness(shells, limits=QUICK).run_while_alive(asyncio.sleep(5), waiting(a_node(1)))


MANY = tuple(a_node(number) for number in range(100))


async def test_what_a_watch_costs_does_not_follow_the_cluster() -> None:
    """Of many nodes some are asked in each look, and all of them in turn."""
    everybody = asyncio.Event()

    def answer(_: Node) -> None:
        if len(shells.asked) == len(MANY):
            everybody.set()

    shells = Shells(answer)
    async with asyncio.timeout(20):
        await Liveness(shells, limits=QUICK).run_while_alive(everybody.wait(), waiting(*MANY))
    assert shells.most_at_once <= 10


async def test_a_dead_machine_among_many_is_found() -> None:
    def answer(node: Node) -> None:
        if node == MANY[37]:
            raise SILENT

    async with asyncio.timeout(20):
        with pytest.raises(StepError, match=r"^workerNode-37 does not answer"):
            await Liveness(Shells(answer), limits=QUICK).run_while_alive(asyncio.sleep(30), waiting(*MANY))


def a_machine(id_: str, *, ready: bool = True, host_key: str | None = None) -> FoundMachine:
    return FoundMachine(id=id_, name=id_, vdu="workerNode", resource_id=id_, ready=ready, host_key=host_key)


class Made(Anywhere):
    """A machine that the VIM has just made. `host_key`: known of one that was met before."""

    def __init__(self, host_key: str | None = None) -> None:
        self._host_key = host_key

    async def connection(self) -> VimConnection:
        return VimConnection("made", {}, {}, {})

    async def machine(self, machine_id: str) -> FoundMachine:
        return a_machine(machine_id, host_key=self._host_key)


class Powerless:
    """A VIM whose machines do not run."""

    def for_type(self, vim_type: str) -> Powerless:
        return self

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found) -> Found:
        return Found(machines=(a_machine("workerNode-1", ready=False),))


async def test_a_machine_that_boots_is_waited_for() -> None:
    """Longer than one that was there and does not answer any more; it may refuse a user that it does not know yet."""

    def answer(node: Node) -> None:
        if shells.asked[node.slot] < 15:
            raise SILENT
        if shells.asked[node.slot] < 18:
            raise LoginRefused("no such user yet")

    shells = Shells(answer)
    await Liveness(shells, limits=QUICK).wait_for_boot(a_node(1), Made())
    assert shells.asked["workerNode-1"] == 18


async def test_a_machine_that_was_met_before_is_not_waited_for() -> None:
    shells = Shells(lambda node: None)
    await Liveness(shells, limits=QUICK).wait_for_boot(a_node(1), Made("ssh-ed25519 AAAA"))
    assert not shells.asked


@pytest.mark.parametrize(
    ("error", "vims", "boot", "told"),
    [
        (SILENT, None, 0.1, r"has not answered by SSH in the 0\.1 s since it was made: no answer\. Cure: "),
        (SILENT, Powerless(), 30, "workerNode-1 has no power, says the VIM"),
        (LoginRefused("wrong password"), None, 30, "wrong password"),
        (StepError("no common algorithm"), None, 30, "no common algorithm"),
    ],
)
async def test_a_machine_that_never_lets_us_in_is_named(
    error: StepError, vims: Powerless | None, boot: float, told: str
) -> None:
    def answer(node: Node) -> None:
        raise error

    with pytest.raises(StepError, match=told) as caught:
        await Liveness(Shells(answer), vims, replace(QUICK, boot=boot)).wait_for_boot(a_node(1), Made())
    assert not caught.value.temporary
