"""Which VNFCs must be together or apart: affinity rules, and the placement groups they may name."""

from __future__ import annotations

from collections.abc import Iterator

from slipway.model.descriptor import PlacementRule
from slipway.package.tosca.topology import Policy, Topology

_APART = {"AffinityRule": False, "AntiAffinityRule": True}


def read_placement(topology: Topology) -> tuple[PlacementRule, ...]:
    groups = {name: section.words("members") for name, section in topology.section.sections("groups")}
    return tuple(
        PlacementRule(
            name=policy.name,
            apart=_APART[policy.kind],
            scope=policy.properties.text("scope") or "nfvi_node",
            targets=tuple(dict.fromkeys(_members(policy, topology, groups))),
        )
        for policy in topology.policies
        if policy.kind in _APART
    )


def _members(policy: Policy, topology: Topology, groups: dict[str, tuple[str, ...]]) -> Iterator[str]:
    for target in dict.fromkeys(policy.section.words("targets")):
        for name in groups.get(target, (target,)):
            if name not in topology.nodes:
                raise policy.section.error(
                    f"The policy {policy.name!r} is for {name!r}, which is neither declared nor a placement group.",
                    "name VDUs, virtual links or placement groups.",
                    "targets",
                )
            yield name
