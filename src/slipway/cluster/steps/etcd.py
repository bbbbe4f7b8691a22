"""etcd's members, asked on a master itself: that works even while the API server does not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from slipway.cluster.naming import ETCD_PEER_PORT, etcd_member_name, host_and_port
from slipway.cluster.quorum import EtcdState, refuse_removal
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.arguments import CheckQuorum, LeaveEtcd
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import address_of, run
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome


@dataclass(frozen=True)
class EtcdMember:
    """One that never started has no name yet, only the address that its peers know."""

    id: str
    name: str
    peers: tuple[str, ...]
    clients: tuple[str, ...]


async def check_quorum(deps: Dependencies, args: CheckQuorum, ctx: StepContext) -> Outcome:
    await _check_quorum(deps, args.node, args.cluster, ctx)
    return Outcome()


async def leave_etcd(deps: Dependencies, args: LeaveEtcd, ctx: StepContext) -> Outcome:
    """Checked again: another member may have died meanwhile."""
    host, own = await _check_quorum(deps, args.node, args.cluster, ctx)
    if own is not None:
        await _remove(host, own)
    return Outcome()


async def _check_quorum(
    deps: Dependencies, node: Node, cluster: ClusterSpec, ctx: StepContext
) -> tuple[RemoteHost, EtcdMember | None]:
    """The node's member, if it is one. StepError with the reason when etcd would lose its quorum without it."""
    host = await reachable_master(deps, cluster, ctx)
    members = await members_of(host)
    own = await _own(members, node, ctx)
    if own is not None and (reason := refuse_removal(await _state(host, members), own.name or own.id)):
        raise StepError(reason)
    return host, own


async def remove_member(deps: Dependencies, node: Node, cluster: ClusterSpec, ctx: StepContext) -> None:
    """Whatever etcd knows of the node, if it does."""
    host = await reachable_master(deps, cluster, ctx)
    if own := await _own(await members_of(host), node, ctx):
        await _remove(host, own)


async def reachable_master(deps: Dependencies, cluster: ClusterSpec, ctx: StepContext) -> RemoteHost:
    """The first whose etcd answers."""

    async def ask(node: Node) -> RemoteHost:
        host = await deps.connector.host(node, ctx)
        await members_of(host)
        return host

    return await deps.unreachable.first_to_answer(cluster.masters, ask, "No master answers for etcd")


async def members_of(host: RemoteHost) -> list[EtcdMember]:
    answer = await _ask(host, "cluster/member/list", {"linearizable": True})
    return [
        EtcdMember(
            id=str(entry["ID"]),
            name=entry.get("name", ""),
            peers=tuple(entry.get("peerURLs", ())),
            clients=tuple(entry.get("clientURLs", ())),
        )
        for entry in answer.get("members", [])
    ]


async def answering(host: RemoteHost, members: list[EtcdMember], limit: float = 5.0) -> set[str]:
    """The ids of those that say they are healthy, within `limit` seconds."""
    urls = {url: member.id for member in members for url in member.clients}
    printed = await run(host, "etcd_health", f"{limit:g}", *urls) if urls else None
    return {urls[line] for line in printed.text.splitlines() if line in urls} if printed else set()


async def _state(host: RemoteHost, members: list[EtcdMember]) -> EtcdState:
    healthy = await answering(host, members)
    names = {member.id: member.name or member.id for member in members}
    return EtcdState(members=tuple(names.values()), healthy=frozenset(names[id_] for id_ in healthy))


async def _own(members: list[EtcdMember], node: Node, ctx: StepContext) -> EtcdMember | None:
    peer = f"https://{host_and_port(await address_of(node, ctx), ETCD_PEER_PORT)}"
    wanted = etcd_member_name(node.name)
    return next((one for one in members if one.name == wanted or (not one.name and peer in one.peers)), None)


async def _remove(host: RemoteHost, member: EtcdMember) -> None:
    await _ask(host, "cluster/member/remove", {"ID": member.id})


async def _ask(host: RemoteHost, call: str, body: dict[str, Any]) -> dict[str, Any]:
    printed = await run(host, "etcd", call, json.dumps(body))
    try:
        answer = json.loads(printed.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise StepError(f"etcd gave no JSON to {call}.")
    return answer
