"""The watch beside a step: it ends the step when a machine is dead, and for no other reason."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from slipway.cluster.spec import ClusterSpec, Node, SshLogin
from slipway.cluster.steps.liveness import Liveness, LivenessLimits, Waiting
from slipway.kube.interface import KubeApi
from slipway.model.action import StepContext, VimConnection
from slipway.model.errors import StepError
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.package_content import PackageContent
from slipway.remote.output import Result

QUICK = LivenessLimits(between=0.01, answer=1.0, confirm=0.01, unreachable=0.05)
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

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        return None

    def api(
        self, cluster: ClusterSpec, ctx: StepContext, within: float | None = None
    ) -> AbstractAsyncContextManager[KubeApi]:
        raise NotImplementedError  # there is no cluster here


class Anywhere:
    operation_id = "operation"
    instance_id = "instance"

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
