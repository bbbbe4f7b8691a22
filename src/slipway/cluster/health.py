"""How a cluster does, asked now: its nodes, etcd, the virtual address, versions, certificates; what is wrong first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from slipway.cluster.naming import BALANCED_API_PORT, etcd_member_name, host_and_port
from slipway.cluster.site import Node, Site
from slipway.cluster.steps import etcd
from slipway.cluster.steps.machine import address_of, run
from slipway.cluster.steps.world import World
from slipway.kube import paths
from slipway.kube.nodes import kubelet_answers, node_is_ready
from slipway.kube.seam import Object
from slipway.model.action import StepContext
from slipway.model.errors import StepError

T = TypeVar("T")
PATIENCE = 40.0  # seconds for each question: a person waits for the answer
SOON = timedelta(days=30)


class NodeHealth(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`ready` None: the API does not know the node. `etcd` None: not asked, or no master."""

    name: str
    node: str
    role: str
    address: str | None = None
    ready: bool | None = None
    answers: bool | None = None  # its kubelet, asked now
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


async def health_of(world: World, site: Site, nodes: Iterable[Node], ctx: StepContext) -> ClusterHealth:
    """Whatever can't be asked is a problem among others, not an error."""
    members, known = tuple(nodes), _Problems()
    seen, silent, version = await known.asked(
        "which nodes there are", _seen(world, site, ctx), (dict[str, Object](), set[str](), None)
    )
    control = [node for node in members if node.master]
    (voters, ends), answers = await asyncio.gather(
        _masters(world, site, control, ctx, known), _vip_answers(world, site, ctx, known)
    )
    told = [await _told(node, seen, silent, voters, ends, ctx) for node in members]
    for one in told:
        known.add(*_node_problems(one, version, api_answers=bool(seen)))
    stale = sorted(seen.keys() - {node.name for node in members})
    known.add(*(f"The cluster has a node {name} that is no machine of this VNF." for name in stale))
    strangers = sorted((voters or {}).keys() - {etcd_member_name(node.name) for node in control})
    known.add(*(f"etcd has a member {name or '(without a name)'} that is no master." for name in strangers))
    if answers is False:
        known.add(f"The virtual address {site.vip} does not answer.")
    return ClusterHealth(
        problems=tuple(known.found),
        nodes=tuple(told),
        version=version,
        virtual_address=site.vip,
        virtual_address_answers=answers,
    )


class _Problems:
    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, *problems: str) -> None:
        self.found += problems

    async def asked(self, what: str, question: Awaitable[T], otherwise: T) -> T:
        try:
            async with asyncio.timeout(PATIENCE):
                return await question
        except StepError as error:
            self.add(error.detail)
        except TimeoutError:
            self.add(f"Nobody told within {PATIENCE:g} s {what}.")
        return otherwise


async def _seen(world: World, site: Site, ctx: StepContext) -> tuple[dict[str, Object], set[str], str | None]:
    """Nodes by name, those of them whose kubelet is silent, and the version of the control plane."""
    async with world.reach.api(site, ctx) as api:
        nodes = {node["metadata"]["name"]: node for node in await api.list(paths.NODES)}
        version = (await api.get("/version")).get("gitVersion")
        answers = await asyncio.gather(*(kubelet_answers(api, name) for name in nodes))
    return nodes, {name for name, answered in zip(nodes, answers, strict=True) if not answered}, version


async def _masters(
    world: World, site: Site, control: list[Node], ctx: StepContext, known: _Problems
) -> tuple[dict[str, bool] | None, dict[str, datetime | None]]:
    """Members of etcd and whether they answer; when each master's certificates end."""
    ends = asyncio.gather(
        *(known.asked(f"when {node.slot}'s certificates end", _certificates_end(world, node, ctx), None)
          for node in control)
    )  # fmt: skip
    members, dates = await asyncio.gather(known.asked("who is in etcd", _voters(world, site, ctx), None), ends)
    return members, {node.name: date for node, date in zip(control, dates, strict=True)}


async def _voters(world: World, site: Site, ctx: StepContext) -> dict[str, bool] | None:
    hands = await etcd.living_master(world, site, ctx)
    members = await etcd.members_of(hands)
    healthy = await etcd.answering(hands, members)
    return {member.name: member.id in healthy for member in members}


async def _certificates_end(world: World, node: Node, ctx: StepContext) -> datetime | None:
    """The first to end of those that kubeadm renews."""
    hands = await world.reach.hands(node, ctx)
    try:
        told = json.loads((await run(hands, "certificates", limit=PATIENCE)).stdout)
        dates = [
            datetime.fromisoformat(one["expirationDate"]) for one in told["certificates"] if not one.get("missing")
        ]
    except (ValueError, KeyError, TypeError):
        raise StepError(f"kubeadm on {node.slot} does not tell when its certificates end.") from None
    return min(dates, default=None)


async def _vip_answers(world: World, site: Site, ctx: StepContext, known: _Problems) -> bool | None:
    """Whether the virtual address leads to an API server, as seen from a master."""
    if site.vip is None:
        return None
    url = f"https://{host_and_port(site.vip, BALANCED_API_PORT)}/readyz"
    command = ["curl", "--silent", "--insecure", "--fail", "--max-time", "5", "--output", "/dev/null", url]

    async def ask() -> bool:
        hands = await etcd.living_master(world, site, ctx)
        return (await hands.run(command, check=False)).ok

    return await known.asked("whether the virtual address answers", ask(), None)


async def _told(
    node: Node,
    seen: dict[str, Object],
    silent: set[str],
    voters: dict[str, bool] | None,
    ends: dict[str, datetime | None],
    ctx: StepContext,
) -> NodeHealth:
    found: dict[str, Any] = seen.get(node.name, {})
    try:
        address = await address_of(node, ctx)
    except StepError:
        address = None
    return NodeHealth(
        name=node.slot,
        node=node.name,
        role="master" if node.master else "worker",
        address=address,
        ready=node_is_ready(found) if found else None,
        answers=node.name not in silent if found else None,
        version=found.get("status", {}).get("nodeInfo", {}).get("kubeletVersion"),
        cordoned=bool(found.get("spec", {}).get("unschedulable")),
        etcd=voters.get(etcd_member_name(node.name), False) if node.master and voters is not None else None,
        certificates_end=ends.get(node.name),
    )


def _node_problems(node: NodeHealth, version: str | None, *, api_answers: bool) -> Iterable[str]:
    if node.ready is None and api_answers:
        yield f"{node.name} is no node of the cluster."
    elif node.ready is False:
        yield f"{node.name} is not ready."
    elif node.answers is False:
        yield f"{node.name} does not answer."
    if node.etcd is False:
        yield f"{node.name}: its etcd does not answer."
    if node.cordoned:
        yield f"{node.name} takes no pods: it is cordoned."
    if version and node.version and node.version != version:
        yield f"{node.name} runs {node.version}, the cluster {version}."
    if node.certificates_end and node.certificates_end - datetime.now(UTC) < SOON:
        yield f"{node.name}: a certificate ends on {node.certificates_end:%Y-%m-%d}."
