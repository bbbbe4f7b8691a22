"""How a cluster does, asked now: its nodes, etcd, the virtual address, versions, certificates; what is wrong first.

A person waits for the answer. So everything is asked at the same time, and nothing for longer than a few seconds: what
has not answered by then is reported as not answering.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from slipway.cluster.naming import BALANCED_API_PORT, etcd_member_name, host_and_port
from slipway.cluster.quorum import lost_quorum, quorum
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps import etcd
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import address_of, run
from slipway.cluster.steps.template_addresses import with_template_addresses
from slipway.kube import paths
from slipway.kube.interface import Object
from slipway.kube.nodes import kubelet_answers, node_is_ready
from slipway.model.action import StepContext
from slipway.model.errors import StepError

T = TypeVar("T")
SOON = timedelta(days=30)


class NodeHealth(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`ready` None: the API does not know the node, or no master answered. `etcd` None: not asked, or no master."""

    name: str
    node: str
    role: str
    address: str | None = None
    has_power: bool = True  # False: it does not run, says the VIM
    ready: bool | None = None
    answers: bool | None = None  # its kubelet, asked now; of a master when no API server answered, the machine itself
    version: str | None = None
    cordoned: bool = False
    etcd: bool | None = None
    certificates_end: datetime | None = None


class ClusterHealth(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    problems: tuple[str, ...]
    nodes: tuple[NodeHealth, ...]
    version: str | None = None
    virtual_address: str | None = None
    virtual_address_answers: bool | None = None


class _ApiView(msgspec.Struct, frozen=True):
    """By the API: nodes by name, those whose kubelet does not answer, and the version of the control plane."""

    nodes: dict[str, Object] = {}
    unreachable: frozenset[str] = frozenset()
    version: str | None = None


async def health_of(deps: Dependencies, cluster: ClusterSpec, nodes: Iterable[Node], ctx: StepContext) -> ClusterHealth:
    """Whatever can't be asked is a problem among others, not an error."""
    members, known = tuple(nodes), _Problems(deps.limits.health)
    control = [node for node in members if node.master]
    try:
        cluster = await with_template_addresses(cluster, ctx)
    except StepError as error:
        known.add(error.detail)
    seen, members_answering, answers, off, machines = await asyncio.gather(
        known.asked("the API", _ask_api(deps, cluster, ctx), _ApiView()),
        known.asked("etcd", _etcd_members(deps, cluster, ctx), None),
        known.asked("the virtual address", _vip_answers(deps, cluster, ctx), None),
        known.asked("the VIM", deps.liveness.off(ctx), set[str]()),
        asyncio.gather(*(_machine(deps, node, ctx) for node in control)),
    )
    ends = {node.name: end for node, (_, end) in zip(control, machines, strict=True)}
    unreached = {node.name for node, (answered, _) in zip(control, machines, strict=True) if not answered}
    reports = [await _describe(node, seen, off, members_answering, ends, unreached, ctx) for node in members]
    left = [one.name for one in reports if one.role == "master" and one.has_power and one.answers is not False]
    if members_answering is None and len(left) < quorum(len(control)):
        known.found.insert(0, lost_quorum(len(control), left, "answers"))
    for one in reports:
        known.add(*_node_problems(one, seen.version, api_answers=bool(seen.nodes), reached=one.node not in unreached))
    stale = sorted(seen.nodes.keys() - {node.name for node in members})
    known.add(*(f"The cluster has a node {name} that is no machine of this VNF." for name in stale))
    strangers = sorted((members_answering or {}).keys() - {etcd_member_name(node.name) for node in control})
    known.add(*(f"etcd has a member {name or '(without a name)'} that is no master." for name in strangers))
    if answers is False:
        known.add(f"The virtual address {cluster.vip} does not answer.")
    return ClusterHealth(
        problems=tuple(known.found),
        nodes=tuple(reports),
        version=seen.version,
        virtual_address=cluster.vip,
        virtual_address_answers=answers,
    )


class _Problems:
    def __init__(self, seconds: float) -> None:
        self.found: list[str] = []
        self._seconds = seconds

    def add(self, *problems: str) -> None:
        self.found += problems

    async def asked(self, whom: str, question: Awaitable[T], otherwise: T) -> T:
        try:
            async with asyncio.timeout(self._seconds):
                return await question
        except StepError as error:
            self.add(error.detail)
        except TimeoutError:
            self.add(f"No answer from {whom} within {self._seconds:g} s.")
        return otherwise


async def _ask_api(deps: Dependencies, cluster: ClusterSpec, ctx: StepContext) -> _ApiView:
    began = time.monotonic()
    async with deps.connector.api(cluster, ctx) as api:
        listed, answer = await asyncio.gather(api.list(paths.NODES), api.get("/version"))
        nodes = {node["metadata"]["name"]: node for node in listed}
        # All the time there is: while etcd elects another leader, API servers pass questions on slowly.
        limit = max(deps.limits.inside, deps.limits.health - (time.monotonic() - began) - 0.5)
        answers = await asyncio.gather(*(kubelet_answers(api, name, limit) for name in nodes))
    unreachable = frozenset(name for name, answered in zip(nodes, answers, strict=True) if not answered)
    return _ApiView(nodes, unreachable, answer.get("gitVersion"))


async def _etcd_members(deps: Dependencies, cluster: ClusterSpec, ctx: StepContext) -> dict[str, bool] | None:
    """Members of etcd, and whether they answer."""
    host = await etcd.reachable_master(deps, cluster, ctx)
    members = await etcd.members_of(host)
    healthy = await etcd.answering(host, members, deps.limits.inside)
    return {member.name: member.id in healthy for member in members}


async def _machine(deps: Dependencies, node: Node, ctx: StepContext) -> tuple[bool, datetime | None]:
    """Whether a master can be reached, and when its certificates end if it tells in time."""
    reached, limit = False, deps.limits.health
    try:
        async with asyncio.timeout(limit):
            host = await deps.connector.host(node, ctx)
            await host.run(["true"], check=False)
            reached = True
            answer = json.loads((await run(host, "certificates", limit=limit)).stdout)
        dates = [
            datetime.fromisoformat(one["expirationDate"]) for one in answer["certificates"] if not one.get("missing")
        ]
    except StepError as error:
        return reached or not error.temporary, None
    except (TimeoutError, ValueError, KeyError, TypeError):
        return reached, None
    return True, min(dates, default=None)


async def _vip_answers(deps: Dependencies, cluster: ClusterSpec, ctx: StepContext) -> bool | None:
    """Whether the virtual address leads to an API server, as seen from a master."""
    if cluster.vip is None:
        return None
    url = f"https://{host_and_port(cluster.vip, BALANCED_API_PORT)}/readyz"
    limit = f"{deps.limits.inside:g}"
    command = ["curl", "--silent", "--insecure", "--fail", "--max-time", limit, "--output", "/dev/null", url]

    async def ask(node: Node) -> bool:
        return (await (await deps.connector.host(node, ctx)).run(command, check=False)).ok

    return await deps.unreachable.first_to_answer(
        cluster.masters, ask, "No master can be asked after the virtual address"
    )


async def _describe(
    node: Node,
    seen: _ApiView,
    off: set[str],
    members_answering: dict[str, bool] | None,
    ends: dict[str, datetime | None],
    unreached: set[str],
    ctx: StepContext,
) -> NodeHealth:
    found: dict[str, Any] = seen.nodes.get(node.name, {})
    try:
        address = await address_of(node, ctx)
    except StepError:
        address = None
    by_machine = (node.name not in unreached) if node.master and not seen.nodes else None
    return NodeHealth(
        name=node.slot,
        node=node.name,
        role="master" if node.master else "worker",
        address=address,
        has_power=node.machine not in off,
        ready=node_is_ready(found) if found else None,
        answers=node.name not in seen.unreachable if found else by_machine,
        version=found.get("status", {}).get("nodeInfo", {}).get("kubeletVersion"),
        cordoned=bool(found.get("spec", {}).get("unschedulable")),
        etcd=members_answering.get(etcd_member_name(node.name), False)
        if node.master and members_answering is not None
        else None,
        certificates_end=ends.get(node.name),
    )


def _node_problems(node: NodeHealth, version: str | None, *, api_answers: bool, reached: bool) -> Iterable[str]:
    """The first of each kind of cause: of a machine without power it is not said that it does not answer."""
    if not node.has_power:
        yield f"{node.name} has no power."
        return
    if node.ready is None and api_answers:
        yield f"{node.name} is no node of the cluster."
    elif node.ready is False:
        yield f"{node.name} is not ready."
    elif node.answers is False:
        yield f"{node.name} does not answer."
    elif not reached:
        yield f"{node.name} does not answer by SSH."
    if node.etcd is False:
        yield f"{node.name}: its etcd does not answer."
    if node.cordoned:
        yield f"{node.name} takes no pods: it is cordoned."
    if version and node.version and node.version != version:
        yield f"{node.name} runs {node.version}, the cluster {version}."
    if node.certificates_end and node.certificates_end - datetime.now(UTC) < SOON:
        yield f"{node.name}: a certificate ends on {node.certificates_end:%Y-%m-%d}."
