"""Whether etcd keeps its quorum: asked before a master is drained, and again before its member is removed.

etcd changes its members only while more than half of them are there. Whoever removes a member without asking may end
with a cluster that can't be written to.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

LOST_CURE = (
    "start one of the dead masters and retry; or end this operation and heal the whole VNF (leave vnfcInstanceId out), "
    "which builds the cluster anew: what etcd held is lost, unless there is a backup of it"
)


class EtcdState(msgspec.Struct, frozen=True, kw_only=True):
    """Members by node name, as etcd lists them, and those of them that answer."""

    members: tuple[str, ...]
    healthy: frozenset[str]

    @property
    def has_quorum(self) -> bool:
        return len(self.healthy) >= quorum(len(self.members))

    @property
    def count(self) -> str:
        return f"{len(self.healthy)} of {len(self.members)} members answer"

    def without(self, name: str) -> EtcdState:
        return EtcdState(members=tuple(one for one in self.members if one != name), healthy=self.healthy - {name})


def lost_quorum(masters: int, left: Sequence[str], how: str) -> str:
    """`left` are the masters that run, or can be reached: `how` says which."""
    if masters == 1:
        return "The cluster's only master is dead."
    only = f"only {', '.join(left)} {how}" if left else f"none {how}"
    return f"etcd has lost its quorum: of {masters} masters {quorum(masters)} are needed, and {only}."


def has_no_power(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} no power"


def quorum(members: int) -> int:
    return members // 2 + 1


def refuse_removal(state: EtcdState, name: str) -> str | None:
    """Why a member can't be removed: etcd must agree to it now, and keep its quorum without it. None: it can."""
    if state.members == (name,):
        return "A single master holds all of the cluster's state, so it can't be healed as a node. Heal the whole VNF."
    if not state.has_quorum:
        return (
            f"etcd has lost its quorum already: {state.count}, and {quorum(len(state.members))} are needed to "
            "change members. Bring a master back, or heal the whole VNF."
        )
    rest = state.without(name)
    if name in state.members and not rest.has_quorum:
        dead = ", ".join(sorted(set(state.members) - state.healthy))
        return (
            f"Without {name} etcd would lose its quorum: {rest.count}, and {quorum(len(rest.members))} would be "
            f"needed. Heal {dead or 'another master'} first."
        )
    return None
