"""The management driver `kubernetes`: what the hooks of a cluster's VNFD mean, and what is refused before it begins."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from slipway.cluster import plans, upgrade
from slipway.cluster.checks import refuse_master_count
from slipway.cluster.helm_plans import with_helm
from slipway.cluster.package_files import check_files
from slipway.cluster.parameters import NAME, PATH
from slipway.cluster.points import points_in_use
from slipway.cluster.quorum import has_no_power, lost_quorum, quorum
from slipway.cluster.recorded import recorded_version
from slipway.cluster.roster import Roster, checked_of, masters, nodes_of, parameters_of, roster_of
from slipway.cluster.scripted import scripted
from slipway.cluster.steps import actions
from slipway.cluster.steps.world import World
from slipway.cluster.unsupported import refuse_unsupported
from slipway.model.action import Action
from slipway.model.connectivity import connected, links_of, moved_points
from slipway.model.errors import BadRequest, RequestError, Unprocessable
from slipway.model.hooks import Edges, HookPlan
from slipway.model.instance import InstantiatedVnfInfo
from slipway.model.requests import (
    ChangeExtConnRequest,
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
)
from slipway.model.situation import Situation

SINGLE = (
    "the only master holds all of the cluster's state, so it can't be healed as a node; "
    "heal the whole VNF: leave vnfcInstanceId out."
)
ALL_MASTERS = (
    "without any of its masters the cluster is lost, and its workers with it; "
    "heal fewer masters at once, or the whole VNF: leave vnfcInstanceId out."
)


class KubernetesDriver:
    name = "kubernetes"
    aliases = ("mgmt-drivers-kubernetes", "mgmt_drivers_kubernetes")

    def __init__(self, world: World) -> None:
        self.actions: tuple[Action[Any], ...] = actions.all_of(world)

    def check(self, situation: Situation) -> None:
        request = situation.request
        if isinstance(request, InstantiateRequest | ScaleRequest | HealRequest | ChangePackageRequest):
            parameters = parameters_of(situation)
            refuse_unsupported(parameters)
            checked_of(situation, parameters)
            check_files(parameters, situation.files)
        upgrade.wanted_version(situation)
        if isinstance(request, ScaleRequest | HealRequest):
            _check_version(situation, request)
        if isinstance(request, ScaleRequest):
            _check_scale(situation, request)
        if isinstance(request, HealRequest) and request.vnfc_instance_id:
            _check_heal(situation, request)
        if isinstance(request, ChangeExtConnRequest):
            _check_connectivity(situation, request)

    def vim_name(self, situation: Situation) -> tuple[str, str] | None:
        """Clusters are registered when they are made, and made again."""
        if not isinstance(situation.request, InstantiateRequest | HealRequest):
            return None
        return f"{PATH}.vim_name", parameters_of(situation).vim_name_for(situation.instance.vnf.id)

    def plan(self, operation: str, edges: Edges, situation: Situation) -> HookPlan:
        if operation == "terminate":
            return _unregistered(situation, edges)
        planner = {
            "instantiate": _instantiate,
            "scale": plans.scaled,
            "heal": _heal,
            "change_current_package": upgrade.upgraded,
        }.get(operation)
        if planner is None:
            return HookPlan()
        roster = roster_of(situation)
        _check_quorum(roster)
        hooked = planner(roster, edges)
        return dataclasses.replace(hooked, end=scripted(with_helm(hooked.end, roster), roster))


def _unregistered(situation: Situation, edges: Edges) -> HookPlan:
    """A termination is never refused: without words about its nodes the cluster is not asked to remove its account."""
    if "start" not in edges:
        return HookPlan(end=plans.unregistered(situation.instance.vnf.id, None))
    site = None
    with contextlib.suppress(RequestError):
        site, _ = nodes_of(situation)
    return HookPlan(start=plans.unregistered(situation.instance.vnf.id, site if site and site.masters else None))


def _instantiate(roster: Roster, edges: Edges) -> HookPlan:
    return HookPlan(end=plans.new_cluster(roster)) if "end" in edges else HookPlan()


def _heal(roster: Roster, edges: Edges) -> HookPlan:
    return _instantiate(roster, edges) if _is_whole(roster) else plans.healed(roster, edges)


def _is_whole(roster: Roster) -> bool:
    """Every master is made anew, so the cluster is: nothing of the old one can be asked or told."""
    if masters(roster.staying):
        return False
    if roster.staying:
        raise Unprocessable(f"vnfcInstanceId: {ALL_MASTERS}")
    return True


def _check_quorum(roster: Roster) -> None:
    """A cluster that stays needs its etcd: nothing is begun on one whose masters have lost their power."""
    control = masters(roster.before)
    if not control or not masters(roster.staying):
        return
    broken = roster.situation.found.broken
    left = [node.slot for node in control if node.machine not in broken]
    if len(left) < quorum(len(control)):
        off = [node.slot for node in control if node.machine in broken]
        raise Unprocessable(
            f"{lost_quorum(len(control), left, 'runs')} {has_no_power(off)}, says the VIM. "
            "Start one of them; or heal the whole VNF (leave vnfcInstanceId out), which builds the cluster anew: what "
            "etcd held is lost, unless there is a backup of it."
        )


def _check_version(situation: Situation, request: ScaleRequest | HealRequest) -> None:
    """One that differs would build nodes that the cluster can't take."""
    asked = (request.additional_params.get(NAME) or {}).get("kubernetes_version")
    recorded = recorded_version(situation.instance.vnf)
    if asked is not None and recorded is not None and parameters_of(situation).kubernetes_version != recorded:
        raise BadRequest(
            f"{PATH}.kubernetes_version: the cluster has Kubernetes {recorded}; leave it out, or change it with "
            "change_vnfpkg."
        )


def _check_scale(situation: Situation, request: ScaleRequest) -> None:
    role = checked_of(situation, parameters_of(situation)).masters
    if role.vdu not in situation.flavour.aspects[request.aspect_id].deltas:
        return
    info = situation.instance.vnf.instantiated_vnf_info
    steps = request.number_of_steps if request.type is ScaleType.SCALE_OUT else -request.number_of_steps
    levels = {status.aspect_id: status.scale_level for status in info.scale_status} if info else {}
    levels[request.aspect_id] = levels.get(request.aspect_id, 0) + steps
    level = situation.flavour.level(info.metadata.get("instantiationLevelId") if info else None)
    count = situation.flavour.members(role.vdu, levels, level)
    if refusal := refuse_master_count(count):
        raise BadRequest(f"numberOfSteps: {refusal.what}; {refusal.cure}.")
    if (count == 1) != (role.count == 1):
        raise BadRequest(
            "numberOfSteps: one master is reached at its own address and several at one that they share, so a cluster "
            "can't change between the two; instantiate another one."
        )


def _check_heal(situation: Situation, request: HealRequest) -> None:
    role = checked_of(situation, parameters_of(situation)).masters
    info = situation.instance.vnf.instantiated_vnf_info
    if info is None:
        return
    chosen, all_of_them = _healed(info, request), {vnfc.id for vnfc in info.vnfc_resource_info}
    control = {vnfc.id for vnfc in info.vnfc_resource_info if vnfc.vdu_id == role.vdu}
    if control <= chosen and not all_of_them <= chosen:
        raise BadRequest(f"vnfcInstanceId: {SINGLE if len(control) == 1 else ALL_MASTERS}")


def _check_connectivity(situation: Situation, request: ChangeExtConnRequest) -> None:
    """Certificates, etcd and every kubelet know nodes by their addresses: those of the cluster's own ports stay."""
    info = situation.instance.vnf.instantiated_vnf_info
    if info is None:
        return
    now = links_of(info)
    moved = moved_points(now, connected(now, request.ext_virtual_links))
    for parameter, point in points_in_use(parameters_of(situation)):
        if point in moved:
            raise BadRequest(
                f"extVirtualLinks: the cluster uses the addresses of {point!r} ({PATH}.{parameter}), which it can't "
                "change; leave that connection point on its network, or instantiate another cluster there."
            )


def _healed(info: InstantiatedVnfInfo, request: HealRequest) -> set[str]:
    known = {vnfc.id: vnfc.vnfc_resource_info_id for vnfc in info.vnfc_info}
    return {known.get(name) or name for name in request.vnfc_instance_id}
