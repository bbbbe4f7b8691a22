"""Liveness of machines, checked while a step runs, so that no step waits for a dead one.

No single source is trusted. A machine is dead when it does not answer by SSH, its kubelet does not answer through the
API, and either its VIM says that it does not run, or this has lasted for a while. A step that waits for such a machine,
or for masters too few of which are left for etcd, ends with an error that trying again would not help.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from slipway.cluster.quorum import LOST_CURE, has_no_power, lost_quorum, quorum
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.unreachable import NoMasterAnswers
from slipway.kube.nodes import kubelet_answers
from slipway.model.action import StepContext, VimConnection
from slipway.model.errors import SlipwayError, StepError
from slipway.model.machine import Found
from slipway.remote.errors import LoginRefused
from slipway.waiting import Backoff

if TYPE_CHECKING:
    from slipway.cluster.steps.dependencies import Connector

log = logging.getLogger(__name__)

T = TypeVar("T")
MASTERS_EVERY = 3  # looks: who waits for a node asks after the masters less often
SAMPLE = 5  # nodes that a look asks in their turn, and as many again of those that did not answer before
MOST = 10_000  # machines of which it is remembered since when they are unreachable


@dataclass(frozen=True)
class LivenessLimits:
    """How long things may take, in seconds."""

    between: float = 5.0  # two looks at a machine that a step waits for
    answer: float = 5.0  # for one question
    confirm: float = 2.0  # before a machine that is off, says its VIM, is asked once more
    unreachable: float = 40.0  # without any answer, when the VIM does not say that it is off
    boot: float = 600.0  # of a machine that was just made, until it answers by SSH
    accounts: float = 60.0  # then, until it knows the user: cloud-init may set a password after sshd has started
    forget: float = 60.0  # a machine that nobody has looked at for so long counts as unreachable from now on only
    health: float = 4.0  # for all that is asked when a person looks at a cluster
    token: float = 10.0  # for one that a person waits for, most of it for a master that answers
    inside: float = 1.5  # of `health`, for what one part of the cluster asks of another: a kubelet, an etcd


class Finder(Protocol):
    async def find(self, connection: VimConnection, instance_id: str, inventory: Found) -> Found: ...


class Vims(Protocol):
    """Where drivers of VIMs are found: slipway.vim.drivers.Drivers."""

    def for_type(self, vim_type: str) -> Finder: ...


@dataclass(frozen=True)
class Waiting:
    """What a step waits for: `nodes` that must live, and `masters` of which etcd needs more than half."""

    ctx: StepContext
    nodes: tuple[Node, ...] = ()
    masters: tuple[Node, ...] = ()
    cluster: ClusterSpec | None = None  # None: there is no API yet


class DeadMachine(StepError):
    """A machine that a step needs has no power, or has not answered for a while."""


@dataclass(frozen=True)
class Dead:
    node: Node
    off: bool  # says the VIM


@dataclass
class _UnreachableSince:
    since: float
    last: float


class Liveness:
    """`vims` None: whether a machine has power is not known."""

    def __init__(self, connector: Connector, vims: Vims | None = None, limits: LivenessLimits | None = None) -> None:
        self._connector = connector
        self._vims = vims
        self._limits = limits or LivenessLimits()
        self._unreachable: dict[str, _UnreachableSince] = {}  # by machine id

    async def run_while_alive(self, work: Coroutine[Any, Any, T], wait: Waiting) -> T:
        """The work's result. StepError as soon as one of the nodes is dead, or too many of the masters."""
        task, watch = asyncio.create_task(work), asyncio.create_task(self._watch_until_hopeless(wait))
        try:
            await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise watch.result()
            try:
                return task.result()
            except StepError as error:
                unanswered = error.temporary or isinstance(error, NoMasterAnswers)
                if reason := await self._check_once(wait, masters=unanswered):
                    raise reason from error
                raise
        finally:
            task.cancel()
            watch.cancel()
            await asyncio.gather(task, watch, return_exceptions=True)

    async def wait_for_boot(self, node: Node, ctx: StepContext) -> None:
        """Until a machine lets us in that we never met: its VIM calls it ready when its power is on."""
        if (await ctx.machine(node.machine)).host_key or await self._connector.host_key(node, ctx):
            return
        backoff = Backoff(0.5 * self._limits.confirm, self._limits.between, timeout=self._limits.boot)
        off, refused_since = set[str](), math.inf
        while (error := await self._why_not_in(node, ctx)) is not None:
            if not error.temporary:
                refused_since = min(refused_since, time.monotonic())
                if not isinstance(error, LoginRefused) or time.monotonic() - refused_since >= self._limits.accounts:
                    raise error
            before, off = off, await self.off(ctx)
            if node.machine in off & before:
                dead = [Dead(node, off=True)]
                raise StepError(_describe(dead), cure=_heal_cure(dead, ctx.instance_id))
            if not await backoff.pause():
                raise StepError(
                    f"{node.slot} has not answered by SSH in the {self._limits.boot:g} s since it was made: "
                    f"{error.detail.rstrip('.')}.",
                    cure="see on its console whether it boots, and that SSH is let through to it (security groups, "
                    "routes, ssh_cp_name); then retry.",
                )

    async def _why_not_in(self, node: Node, ctx: StepContext) -> StepError | None:
        try:
            await (await self._connector.host(node, ctx)).run(["true"], check=False)
        except StepError as error:
            return error
        return None

    async def _watch_until_hopeless(self, wait: Waiting) -> StepError:
        """Why there is nothing to wait for any more; no end while there is."""
        looks = 0
        while True:
            await asyncio.sleep(self._limits.between)
            looks += 1
            some = replace(wait, nodes=self._sample(wait.nodes, looks))
            if reason := await self._check_once(some, masters=looks % MASTERS_EVERY == 0):
                return reason

    def _sample(self, nodes: tuple[Node, ...], looks: int) -> tuple[Node, ...]:
        """A few of many nodes, so that a watch costs the same in a large cluster: in turn; unreachable ones always."""
        if len(nodes) <= 2 * SAMPLE:
            return nodes
        unreachable = [node for node in nodes if node.machine in self._unreachable][:SAMPLE]
        first = (looks - 1) * SAMPLE
        turn = [nodes[number % len(nodes)] for number in range(first, first + SAMPLE)]
        return (*unreachable, *(node for node in turn if node not in unreachable))

    async def _check_once(self, wait: Waiting, *, masters: bool) -> StepError | None:
        """As `_why_hopeless`. A check that fails, as while the database restarts, says nothing of the machines."""
        try:
            return await self._why_hopeless(wait, masters=masters)
        except Exception as error:  # noqa: BLE001 - an edge: the watch must never end the work
            what = f"{type(error).__name__}: {error}"
            log.warning("whether machines of VNF instance %s live is not known: %s", wait.ctx.instance_id, what)
            return None

    async def answers(
        self, node: Node, cluster: ClusterSpec | None, ctx: StepContext, limit: float | None = None
    ) -> bool:
        """By SSH, or else its kubelet through the API."""
        limit = limit or self._limits.answer
        return await self._by_ssh(node, ctx, limit) or await self._by_kubelet(node, cluster, ctx, limit)

    async def off(self, ctx: StepContext) -> set[str]:
        """Machines of the instance that do not run, says the VIM. One that it leaves out of its list may."""
        if self._vims is None:
            return set()
        try:
            async with asyncio.timeout(self._limits.answer):
                connection = await ctx.connection()
                found = await self._vims.for_type(connection.vim_type).find(connection, ctx.instance_id, Found())
        except (SlipwayError, TimeoutError):
            return set()
        return {machine.id for machine in found.machines if not machine.ready}

    async def _why_hopeless(self, wait: Waiting, *, masters: bool) -> StepError | None:
        if dead := await self._dead(wait.nodes, wait):
            return DeadMachine(_describe(dead), cure=_heal_cure(dead, wait.ctx.instance_id))
        if not masters or wait.cluster is None:
            return None
        dead = await self._dead(wait.masters, wait)
        left = len(wait.masters) - len(dead)
        if left >= quorum(len(wait.masters)) or await self._api_answers(wait.cluster, wait.ctx):
            return None
        return StepError(_lost(wait.masters, dead), cure=f"{LOST_CURE}.")

    async def _dead(self, nodes: Sequence[Node], wait: Waiting) -> list[Dead]:
        unreachable = await self._unreachable_among(nodes, wait)
        if not unreachable:
            return []
        off = await self.off(wait.ctx)
        if any(node.machine in off for node in unreachable):
            await asyncio.sleep(self._limits.confirm)
            unreachable = await self._unreachable_among(unreachable, wait)
            off &= await self.off(wait.ctx)
        return [
            Dead(node, off=node.machine in off)
            for node in unreachable
            if node.machine in off or self._unreachable_for(node) >= self._limits.unreachable
        ]

    async def _unreachable_among(self, nodes: Sequence[Node], wait: Waiting) -> list[Node]:
        found = await asyncio.gather(*(self.answers(node, wait.cluster, wait.ctx) for node in nodes))
        now = time.monotonic()
        unreachable = [node for node, answered in zip(nodes, found, strict=True) if not answered]
        for node, answered in zip(nodes, found, strict=True):
            if answered:
                self._unreachable.pop(node.machine, None)
        if len(self._unreachable) >= MOST:
            self._unreachable.clear()
        for node in unreachable:
            before = self._unreachable.get(node.machine)
            if before is None or now - before.last > self._limits.forget:
                self._unreachable[node.machine] = _UnreachableSince(now, now)
            else:
                before.last = now
        return unreachable

    def _unreachable_for(self, node: Node) -> float:
        """Another step may have had an answer of it meanwhile."""
        unreachable = self._unreachable.get(node.machine)
        return time.monotonic() - unreachable.since if unreachable else 0.0

    async def _by_ssh(self, node: Node, ctx: StepContext, limit: float) -> bool:
        """A machine that refuses us is there."""
        try:
            async with asyncio.timeout(limit):
                await (await self._connector.host(node, ctx)).run(["true"], check=False)
                return True
        except StepError as error:
            return not error.temporary
        except TimeoutError:
            return False

    async def _by_kubelet(self, node: Node, cluster: ClusterSpec | None, ctx: StepContext, limit: float) -> bool:
        if cluster is None:
            return False
        try:
            async with asyncio.timeout(limit), self._connector.api(cluster, ctx) as api:
                return await kubelet_answers(api, node.name, limit)
        except (StepError, TimeoutError):
            return False

    async def _api_answers(self, cluster: ClusterSpec, ctx: StepContext) -> bool:
        try:
            async with asyncio.timeout(self._limits.answer), self._connector.api(cluster, ctx):
                return True
        except (StepError, TimeoutError):
            return False


def _lost(masters: Sequence[Node], dead: Sequence[Dead]) -> str:
    gone = {one.node.machine for one in dead}
    left = [node.slot for node in masters if node.machine not in gone]
    return f"{lost_quorum(len(masters), left, 'can be reached')} {_describe(dead)}"


def _describe(dead: Sequence[Dead]) -> str:
    off, unreachable = [one.node.slot for one in dead if one.off], [one.node.slot for one in dead if not one.off]
    sentences = []
    if off:
        sentences.append(f"{has_no_power(off)}, says the VIM, and neither SSH nor a kubelet answers.")
    if unreachable:
        sentences.append(f"{' and '.join(unreachable)} {_does(unreachable)} not answer, neither SSH nor the kubelet.")
    return " ".join(sentences)


def _does(names: Sequence[str]) -> str:
    return "does" if len(names) == 1 else "do"


def _heal_cure(dead: Sequence[Dead], instance_id: str) -> str:
    chosen = " ".join(f"--vnfc {one.node.slot}" for one in dead)
    return (
        "start the machine and retry; or end this operation by rollback or fail, and heal the VNFC: "
        f"slipway vnf heal {instance_id} {chosen}"
    )
