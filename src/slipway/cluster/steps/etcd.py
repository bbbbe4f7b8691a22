"""etcd's members, asked on a master itself: that works even while the API server does not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from slipway.cluster.naming import ETCD_PEER_PORT, etcd_member_name, host_and_port
from slipway.cluster.quorum import EtcdState, judge_heal
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.arguments import Leave, Permit
from slipway.cluster.steps.machine import address_of, run
from slipway.cluster.steps.world import Hands, World
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome


@dataclass(frozen=True)
class Member:
    """One that never started has no name yet, only the address that its peers know."""

    id: str
    name: str
    peers: tuple[str, ...]
    clients: tuple[str, ...]


async def permit(world: World, args: Permit, ctx: StepContext) -> Outcome:
    await _judged(world, args.node, args.site, ctx)
    return Outcome()


async def leave(world: World, args: Leave, ctx: StepContext) -> Outcome:
    """Judged again: a member may have died since it was permitted."""
    hands, own = await _judged(world, args.node, args.site, ctx)
    if own is not None:
        await _remove(hands, own)
    return Outcome()


async def _judged(world: World, node: Node, site: Site, ctx: StepContext) -> tuple[Hands, Member | None]:
    """The node's member, if it is one. StepError with the reason when etcd would lose its quorum without it."""
    hands = await living_master(world, site, ctx)
    members = await members_of(hands)
    own = await _own(members, node, ctx)
    if own is not None:
        verdict = judge_heal(await _state(hands, members), {own.name or own.id})
        if not verdict.allowed:
            raise StepError(verdict.reason)
    return hands, own


async def remove_member(world: World, node: Node, site: Site, ctx: StepContext) -> None:
    """Whatever etcd knows of the node, if it does."""
    hands = await living_master(world, site, ctx)
    if own := await _own(await members_of(hands), node, ctx):
        await _remove(hands, own)


async def living_master(world: World, site: Site, ctx: StepContext) -> Hands:
    """The first whose etcd answers."""

    async def ask(node: Node) -> Hands:
        hands = await world.reach.hands(node, ctx)
        await members_of(hands)
        return hands

    return await world.silence.first_to_answer(site.masters, ask, "No master answers for etcd")


async def members_of(hands: Hands) -> list[Member]:
    answer = await _ask(hands, "cluster/member/list", {"linearizable": True})
    return [
        Member(
            id=str(entry["ID"]),
            name=entry.get("name", ""),
            peers=tuple(entry.get("peerURLs", ())),
            clients=tuple(entry.get("clientURLs", ())),
        )
        for entry in answer.get("members", [])
    ]


async def answering(hands: Hands, members: list[Member], limit: float = 5.0) -> set[str]:
    """The ids of those that say they are healthy, within `limit` seconds."""
    urls = {url: member.id for member in members for url in member.clients}
    printed = await run(hands, "etcd_health", f"{limit:g}", *urls) if urls else None
    return {urls[line] for line in printed.text.splitlines() if line in urls} if printed else set()


async def _state(hands: Hands, members: list[Member]) -> EtcdState:
    healthy = await answering(hands, members)
    names = {member.id: member.name or member.id for member in members}
    return EtcdState(members=tuple(names.values()), healthy=frozenset(names[id_] for id_ in healthy))


async def _own(members: list[Member], node: Node, ctx: StepContext) -> Member | None:
    peer = f"https://{host_and_port(await address_of(node, ctx), ETCD_PEER_PORT)}"
    wanted = etcd_member_name(node.name)
    return next((one for one in members if one.name == wanted or (not one.name and peer in one.peers)), None)


async def _remove(hands: Hands, member: Member) -> None:
    await _ask(hands, "cluster/member/remove", {"ID": member.id})


async def _ask(hands: Hands, call: str, body: dict[str, Any]) -> dict[str, Any]:
    printed = await run(hands, "etcd", call, json.dumps(body))
    try:
        answer = json.loads(printed.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise StepError(f"etcd gave no JSON to {call}.")
    return answer
