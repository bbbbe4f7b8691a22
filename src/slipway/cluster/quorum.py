"""Which masters may leave, in which order, and from which one to work meanwhile: decided before anything is touched.

etcd changes its members only while more than half of them are there. Whoever removes a member without asking may end
with a cluster that nobody can write to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it may be done, and why, in words for a person."""

    allowed: bool
    reason: str


class EtcdState(msgspec.Struct, frozen=True, kw_only=True):
    """Members by node name, as etcd lists them, and those of them that answer."""

    members: tuple[str, ...]
    healthy: frozenset[str]
    leader: str | None = None

    @property
    def answering(self) -> tuple[str, ...]:
        return tuple(name for name in self.members if name in self.healthy)

    @property
    def has_quorum(self) -> bool:
        return len(self.answering) >= quorum(len(self.members))

    def without(self, name: str) -> EtcdState:
        return EtcdState(
            members=tuple(one for one in self.members if one != name), healthy=self.healthy - {name}, leader=self.leader
        )

    def joined_by(self, name: str) -> EtcdState:
        return EtcdState(members=(*self.members, name), healthy=self.healthy | {name}, leader=self.leader)


LOST_CURE = (
    "start one of the dead masters and retry; or end this operation and heal the whole VNF (leave vnfcInstanceId out), "
    "which builds the cluster anew: what etcd held is lost, unless there is a backup of it"
)


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


def judge_removal(state: EtcdState, leaving: Collection[str]) -> Verdict:
    """Members that leave for good, one after another. The dead go first: each of them that goes makes it safer."""
    if not state.members or not set(state.members) - set(leaving):
        return Verdict(allowed=False, reason="No master would be left. Terminate the VNF instead.")
    for name in _dead_first(state, leaving):
        verdict = _judge_one(state, name)
        if not verdict.allowed:
            return verdict
        state = state.without(name)
    return Verdict(allowed=True, reason=f"{_counted(state)}; {quorum(len(state.members))} are needed.")


def judge_heal(state: EtcdState, healing: Collection[str]) -> Verdict:
    """Masters that are made anew, one after another: each leaves and is back before the next one leaves."""
    if len(state.members) == 1 and state.members[0] in healing:
        reason = (
            "A single master holds all of the cluster's state, so it can't be healed as a node. Heal the whole VNF."
        )
        return Verdict(allowed=False, reason=reason)
    for name in heal_order(state, healing):
        verdict = _judge_one(state, name)
        if not verdict.allowed:
            return verdict
        state = state.without(name).joined_by(name)
    return Verdict(allowed=True, reason=f"{_counted(state)} after it; {quorum(len(state.members))} are needed.")


def heal_order(state: EtcdState, healing: Collection[str]) -> tuple[str, ...]:
    """The dead first, since nothing is lost with them; the leader last, so that it changes once."""
    order = _dead_first(state, healing)
    return tuple(sorted(order, key=lambda name: name == state.leader and name in state.healthy))


def survivor(state: EtcdState, leaving: Collection[str], reachable: Sequence[str]) -> str | None:
    """The master to work from: one that stays, answers and can be reached; the leader, when it is one of them."""
    staying = [name for name in state.answering if name not in leaving and name in reachable]
    if state.leader in staying:
        return state.leader
    return min(staying, key=list(reachable).index, default=None)


def _judge_one(state: EtcdState, name: str) -> Verdict:
    """Both must hold: etcd agrees to the change now, and what remains is a majority of what remains."""
    if not state.has_quorum:
        reason = (
            f"etcd has lost its quorum already: {_counted(state)}, and {quorum(len(state.members))} are needed to "
            "change members. Bring a master back, or heal the whole VNF."
        )
        return Verdict(allowed=False, reason=reason)
    if name not in state.members:
        return Verdict(allowed=True, reason=f"{name} is no member of etcd.")
    rest = state.without(name)
    if not rest.members or not rest.has_quorum:
        reason = (
            f"Without {name} etcd would lose its quorum: {_counted(rest)}, and {quorum(len(rest.members))} would be "
            f"needed. Heal {_names(set(state.members) - state.healthy) or 'another master'} first."
        )
        return Verdict(allowed=False, reason=reason)
    return Verdict(allowed=True, reason=f"Without {name} {_counted(rest)}.")


def _dead_first(state: EtcdState, names: Collection[str]) -> list[str]:
    """Those that left already, then the dead, then those that answer; otherwise in etcd's own order."""
    gone = sorted(name for name in names if name not in state.members)
    there = [name for name in state.members if name in names]
    return [*gone, *sorted(there, key=lambda name: name in state.healthy)]


def _counted(state: EtcdState) -> str:
    return f"{len(state.answering)} of {len(state.members)} members answer"


def _names(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
