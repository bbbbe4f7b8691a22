"""The management driver `kubernetes`: what the hooks of a cluster's VNFD mean, and what is refused before it begins."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from slipway.cluster import plans, upgrade
from slipway.cluster.change import ClusterChange, cluster_change, cluster_now, masters
from slipway.cluster.checks import check_files, refuse_master_count, refuse_unsupported_parameters
from slipway.cluster.lasting import of_kubeadm, refuse_changed
from slipway.cluster.modified_registries import (
    BY_MODIFICATION,
    check_modified_registries,
    modified_registries,
    refuse_registries_property,
)
from slipway.cluster.parameters import (
    EXPORTS,
    NAME,
    PATH,
    REGISTRIES,
    STORAGE,
    VOLUME_SETUP,
    VOLUMES,
    ClusterParameters,
    parameters_now,
)
from slipway.cluster.plan_adjustments import with_helm, with_node_script
from slipway.cluster.quorum import has_no_power, lost_quorum, quorum
from slipway.cluster.recorded import recorded_version
from slipway.cluster.registry_plans import plan_modified_registries, with_registries
from slipway.cluster.request import ClusterRequest, cluster_vim_name, has_storage, read_request, stored_parameters
from slipway.cluster.steps import actions
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.storage_plan import check_template, with_storage
from slipway.model.action import Action
from slipway.model.connectivity import refuse_moves
from slipway.model.errors import BadRequest, RequestError, Unprocessable
from slipway.model.hooks import CLUSTER_DRIVERS, Edges, HookPlan
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import ChangeExtConnRequest, ChangePackageRequest, HealRequest, ScaleRequest
from slipway.model.situation import PlanningSituation, Situation
from slipway.model.target import VnfTarget

SINGLE = (
    "the only master holds all of the cluster's state, so it can't be healed as a node; "
    "heal the whole VNF: leave vnfcInstanceId out."
)
ALL_MASTERS = (
    "without any of its masters the cluster is lost, and its workers with it; "
    "heal fewer masters at once, or the whole VNF: leave vnfcInstanceId out."
)


class KubernetesDriver:
    name, aliases = CLUSTER_DRIVERS[0], CLUSTER_DRIVERS[1:]

    def __init__(self, deps: Dependencies) -> None:
        self.actions: tuple[Action[Any], ...] = actions.cluster_actions(deps)

    def check(self, situation: Situation) -> None:
        if situation.operation is OperationType.MODIFY_INFO:
            check_modified_registries(situation)
        if checks := CHECKS.get(situation.operation):
            request = read_request(situation)
            for check in checks:
                check(request, situation.request)

    def vim_name(self, situation: Situation) -> tuple[str, str] | None:
        if situation.operation not in REGISTERS_VIM:
            return None
        return f"{PATH}.vim_name", cluster_vim_name(situation)

    def plan(self, operation: str, edges: Edges, situation: PlanningSituation) -> HookPlan:
        if operation == "terminate":
            return _unregister(situation, edges)
        planner = PLANNERS.get(operation)
        if planner is None:
            return HookPlan()
        change = cluster_change(situation)
        check_quorum(change)
        plan = planner(change, edges)
        end = with_registries(with_node_script(with_helm(plan.end, change), change), change)
        return with_storage(dataclasses.replace(plan, end=end), change, edges)

    def package_files(self, situation: Situation) -> tuple[str, ...]:
        return volume_manifests(situation)

    def names_template(self, situation: Situation) -> bool:
        return names_volumes_of_template(situation)

    def check_template(self, situation: Situation, target: VnfTarget) -> None:
        check_volumes_of_template(situation, target)

    def modification(self, situation: PlanningSituation) -> Plan:
        """Registries that are others now, on every node there is."""
        if (registries := modified_registries(situation)) is None:
            return Plan()
        return plan_modified_registries(cluster_change(situation), *registries)


def volume_manifests(situation: Situation) -> tuple[str, ...]:
    """Files of the package that say which persistent volumes there will be."""
    if situation.operation not in MAY_SET_UP_STORAGE or not has_storage(situation):
        return ()
    asked = read_request(situation).parameters
    former = parameters_now(stored_parameters(situation), {}) if situation.operation is OperationType.HEAL else asked
    volumes = (*asked.pv_registration_params, *former.pv_registration_params)
    return tuple(dict.fromkeys(volume.pv_manifest_file_path for volume in volumes))


def names_volumes_of_template(situation: Situation) -> bool:
    """Whether a storage server is asked for, and the package has a template that makes its volumes."""
    if situation.operation not in SETS_UP_STORAGE or not has_storage(situation):
        return False
    request = read_request(situation)
    return request.parameters.storage_server is not None and request.has_template


def check_volumes_of_template(situation: Situation, target: VnfTarget) -> None:
    if (server := read_request(situation).parameters.storage_server) is not None:
        check_template(server, target)


def _unregister(situation: PlanningSituation, edges: Edges) -> HookPlan:
    """A termination is never refused: with parameters that can't be read, the cluster's account is left to it."""
    if "start" not in edges:
        return HookPlan(end=plans.plan_unregister(situation.instance.vnf.id, None))
    cluster = None
    with contextlib.suppress(RequestError):
        cluster, _ = cluster_now(situation)
    reachable = cluster if cluster and cluster.masters else None
    return HookPlan(start=plans.plan_unregister(situation.instance.vnf.id, reachable))


def _heal(change: ClusterChange, edges: Edges) -> HookPlan:
    return plans.plan_new_cluster(change, edges) if is_whole(change) else plans.plan_heal(change, edges)


def is_whole(change: ClusterChange) -> bool:
    """Every master is made anew, so the cluster is: nothing of the old one can be asked or told."""
    if masters(change.staying):
        return False
    if change.staying:
        raise Unprocessable(f"vnfcInstanceId: {ALL_MASTERS}")
    return True


def check_quorum(change: ClusterChange) -> None:
    """A cluster that stays needs its etcd: nothing is begun on one whose masters have lost their power."""
    control = masters(change.before)
    if not control or not masters(change.staying):
        return
    broken = change.situation.found.broken
    left = [node.slot for node in control if node.machine not in broken]
    if len(left) < quorum(len(control)):
        off = [node.slot for node in control if node.machine in broken]
        raise Unprocessable(
            f"{lost_quorum(len(control), left, 'runs')} {has_no_power(off)}, says the VIM. "
            "Start one of them; or heal the whole VNF (leave vnfcInstanceId out), which builds the cluster anew: what "
            "etcd held is lost, unless there is a backup of it."
        )


def _check_parameters(cluster: ClusterRequest, _: Any) -> None:
    """Against themselves, the flavour and the package's files."""
    refuse_unsupported_parameters(cluster.parameters)
    cluster.checked  # noqa: B018 - BadRequest where it does not fit the flavour
    check_files(cluster.parameters, cluster.situation.files)


def _check_registries(cluster: ClusterRequest, request: Any) -> None:
    """Of some nodes only they would be others, and of all of them until the next operation."""
    refuse_registries_property(request)
    if cluster.asked.get(REGISTRIES) is not None:
        raise BadRequest(f"{PATH}.{REGISTRIES}: {BY_MODIFICATION}")


def _check_lasting(cluster: ClusterRequest, _: Any) -> None:
    refuse_changed(cluster, of_kubeadm)


def check_version(cluster: ClusterRequest, _: Any) -> None:
    """One that differs would build nodes that the cluster can't take."""
    recorded = recorded_version(cluster.situation.instance.vnf)
    if cluster.asked.get("kubernetes_version") is None or recorded is None:
        return
    if cluster.parameters.kubernetes_version != recorded:
        raise BadRequest(
            f"{PATH}.kubernetes_version: the cluster has Kubernetes {recorded}; leave it out, or change it with "
            "change_vnfpkg."
        )


def _check_scale(cluster: ClusterRequest, request: ScaleRequest) -> None:
    refuse_scaled_storage(cluster, request)
    flavour, role = cluster.situation.flavour, cluster.checked.masters
    if role.vdu not in flavour.aspects[request.aspect_id].deltas:
        return
    count = flavour.members(role.vdu, request.levels_after(cluster.scale_levels), cluster.level)
    if refusal := refuse_master_count(count):
        raise BadRequest(f"numberOfSteps: {refusal.what}; {refusal.cure}.")
    if (count == 1) != (role.count == 1):
        raise BadRequest(
            "numberOfSteps: one master is reached at its own address and several at one that they share, so a cluster "
            "can't change between the two; instantiate another one."
        )


def refuse_scaled_storage(cluster: ClusterRequest, request: ScaleRequest) -> None:
    if cluster.checked.storage in cluster.situation.flavour.aspects[request.aspect_id].deltas:
        raise BadRequest(
            f"aspectId: {request.aspect_id!a} scales the storage server, and one machine serves the cluster's volumes; "
            "give it larger ones instead."
        )


def refuse_unheard_storage(cluster: ClusterRequest, request: ScaleRequest | HealRequest) -> None:
    """A storage server is set up when its machine is made: what another operation says of it would be lost."""
    stored = stored_parameters(cluster.situation)
    if cluster.checked.storage is None or not (stored.get(NAME) or {}).get(STORAGE) or _makes_storage(cluster, request):
        return
    now = _served(cluster.parameters)
    if others := [name for name, before in _served(parameters_now(stored, {})).items() if before != now.get(name)]:
        raise BadRequest(
            f"{PATH}.{others[0]}: the storage server stays as it is, and would not hear of it; leave it out, or say it "
            "in a heal of the storage server."
        )


def _served(parameters: ClusterParameters) -> dict[str, object]:
    """What a storage server is set up with, by the name of the parameter."""
    if (server := parameters.storage_server) is None:
        return {}
    return {
        f"{STORAGE}.{VOLUME_SETUP}": server.cinder_volume_setup_params,
        f"{STORAGE}.{EXPORTS}": server.nfs_server_setup_params,
        VOLUMES: parameters.pv_registration_params,
    }


def _makes_storage(cluster: ClusterRequest, request: ScaleRequest | HealRequest) -> bool:
    info = cluster.situation.instance.vnf.instantiated_vnf_info
    servers = info.vnfcs_of(cluster.checked.storage or "") if info else ()
    if not servers or not isinstance(request, HealRequest) or info is None:
        return not servers
    known = info.vnfc_resource_ids
    chosen = {known.get(name, name) for name in request.vnfc_instance_id}
    return not chosen or any(one.id in chosen for one in servers)


def refuse_lost_volumes(cluster: ClusterRequest, _: ChangePackageRequest) -> None:
    """No machine of a cluster is made anew by it: a volume would be deleted while it is mounted, served and in use."""
    stored = (cluster.situation.instance.parameters.get(NAME) or {}).get(STORAGE)
    if not stored or (server := cluster.parameters.storage_server) is None:
        return
    stay = {volume.volume_resource_id for volume in server.cinder_volume_setup_params}
    said = [volume["volume_resource_id"] for volume in stored[VOLUME_SETUP]]
    if lost := [*(name for name in said if name not in stay), *_lost_storages(cluster)]:
        raise BadRequest(
            f"{PATH}.{STORAGE}.{VOLUME_SETUP}: the storage server has {lost[0]!a} mounted, and no change of the "
            "package makes it anew; leave the volume in the parameters and in the VNFD."
        )


def _lost_storages(cluster: ClusterRequest) -> list[str]:
    """Those of the server's machine that the new VNFD lacks. A heal that was given up may have mounted any of them."""
    vnf, vdu = cluster.situation.instance.vnf, cluster.checked.storage
    before, info = cluster.situation.flavour_before, vnf.instantiated_vnf_info
    if before is None or info is None or vdu is None or vdu not in before.vdus:
        return []
    there = {volume.virtual_storage_desc_id for volume in info.virtual_storage_resource_info}
    stay = cluster.situation.flavour.vdus[vdu].storages
    return [name for name in before.vdus[vdu].storages if name in there and name not in stay]


def check_heal(cluster: ClusterRequest, request: HealRequest) -> None:
    info = cluster.situation.instance.vnf.instantiated_vnf_info
    if info is None or not request.vnfc_instance_id:
        return
    known = info.vnfc_resource_ids
    chosen, all_of_them = {known.get(name, name) for name in request.vnfc_instance_id}, set(known.values())
    control = {vnfc.id for vnfc in info.vnfcs_of(cluster.checked.masters.vdu)}
    if control <= chosen and not all_of_them <= chosen:
        raise BadRequest(f"vnfcInstanceId: {SINGLE if len(control) == 1 else ALL_MASTERS}")


def _check_upgrade(cluster: ClusterRequest, _: ChangePackageRequest) -> None:
    upgrade.wanted_version(cluster)


def check_connectivity(cluster: ClusterRequest, request: ChangeExtConnRequest) -> None:
    """Certificates, etcd and every kubelet know nodes by their addresses: those of the cluster's own ports stay."""
    if info := cluster.situation.instance.vnf.instantiated_vnf_info:
        used = ((f"{PATH}.{parameter}", name) for parameter, name in _connection_points(cluster.parameters))
        refuse_moves(info, request.ext_virtual_links, used, "cluster")


def _connection_points(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    """Those whose addresses the cluster is built on, each with the parameter that names it."""
    for name, node in (("master_node", parameters.master_node), ("worker_node", parameters.worker_node)):
        yield f"{name}.ssh_cp_name", node.ssh_cp_name
        if node.nic_cp_name is not None:
            yield f"{name}.nic_cp_name", node.nic_cp_name
    if parameters.master_node.cluster_cp_name is not None:
        yield "master_node.cluster_cp_name", parameters.master_node.cluster_cp_name
    if storage := parameters.storage_server:
        yield "storage_server.ssh_cp_name", storage.ssh_cp_name
        if storage.nic_cp_name is not None:
            yield "storage_server.nic_cp_name", storage.nic_cp_name
    for at, volume in enumerate(parameters.pv_registration_params):
        yield f"pv_registration_params[{at}].nfs_server_cp", volume.nfs_server_cp


Check = Callable[[ClusterRequest, Any], None]  # with the operation's own request
CHECKS: dict[OperationType, tuple[Check, ...]] = {
    OperationType.INSTANTIATE: (_check_parameters,),
    OperationType.SCALE: (
        _check_parameters,
        _check_registries,
        _check_lasting,
        refuse_unheard_storage,
        check_version,
        _check_scale,
    ),
    OperationType.HEAL: (
        _check_parameters,
        _check_registries,
        _check_lasting,
        refuse_unheard_storage,
        check_version,
        check_heal,
    ),
    OperationType.CHANGE_VNFPKG: (
        _check_parameters,
        _check_registries,
        _check_lasting,
        refuse_lost_volumes,
        _check_upgrade,
    ),
    OperationType.CHANGE_EXT_CONN: (check_connectivity,),
}
PLANNERS: dict[str, Callable[[ClusterChange, Edges], HookPlan]] = {
    "instantiate": plans.plan_new_cluster,
    "scale": plans.plan_scale,
    "heal": _heal,
    "change_current_package": upgrade.plan_upgrade,
}
SETS_UP_STORAGE = (OperationType.INSTANTIATE, OperationType.HEAL, OperationType.CHANGE_VNFPKG)
MAY_SET_UP_STORAGE = (*SETS_UP_STORAGE, OperationType.SCALE)  # of a server that a heal was given up without
REGISTERS_VIM = (OperationType.INSTANTIATE, OperationType.HEAL)  # clusters are registered when they are made, or anew
