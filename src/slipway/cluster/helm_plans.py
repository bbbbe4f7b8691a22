"""Helm in a cluster's plans: on every master that has just become ready, whenever that is."""

from __future__ import annotations

from typing import Any

from slipway.cluster.planning import step
from slipway.cluster.roster import Roster, masters
from slipway.cluster.steps.actions import action_name
from slipway.cluster.steps.arguments import Helm, Prepare, Ready
from slipway.model.plan import Plan


def with_helm(plan: Plan, roster: Roster) -> Plan:
    wanted, path = roster.parameters.helm, roster.parameters.helm_installation_script_path
    if path is None and (wanted is None or not wanted.install):
        return plan
    given = (
        {"url": wanted.url, "path": wanted.path, "sha256": wanted.sha256, "version": wanted.version} if wanted else {}
    )
    setup: dict[str, Any] = next(
        (one.args.get("setup", {}) for one in plan.steps if one.action == action_name(Prepare)), {}
    )
    ready = {node: one.id for one in plan.steps if one.action == action_name(Ready) for node in one.nodes}
    site = roster.site(masters(roster.after))
    added = [
        step(f"helm {node.slot}", Helm(node=node, site=site, given=_said(given), path=path, setup=setup),
             node=node, after=[ready[node.slot]])
        for node in site.masters
        if node.slot in ready
    ]  # fmt: skip
    return Plan((*plan.steps, *added))


def _said(given: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in given.items() if value is not None}
