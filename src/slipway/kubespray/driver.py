"""The management driver `kubespray`: what the hooks of a cluster's VNFD mean, and what is refused before it begins."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from slipway.cluster.change import cluster_change
from slipway.cluster.checks import check_files
from slipway.cluster.driver import (
    REGISTERS_VIM,
    check_connectivity,
    check_heal,
    check_quorum,
    check_version,
    check_volumes_of_template,
    is_whole,
    names_volumes_of_template,
    refuse_lost_volumes,
    refuse_scaled_storage,
    refuse_unheard_storage,
    volume_manifests,
)
from slipway.cluster.lasting import Lasting, of_every_cluster, refuse_changed
from slipway.cluster.modified_registries import (
    BY_MODIFICATION,
    check_modified_registries,
    modified_registries,
    refuse_registries_property,
)
from slipway.cluster.parameters import NAME, PATH, REGISTRIES
from slipway.cluster.plans import plan_unregister
from slipway.cluster.registry_plans import plan_modified_registries
from slipway.cluster.request import (
    ClusterRequest,
    cluster_vim_name,
    read_request,
    registries_property,
    stored_parameters,
)
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.storage_plan import with_storage
from slipway.cluster.upgrade import checked_upgrade
from slipway.cluster.versions import Version
from slipway.kubespray import plans
from slipway.kubespray.change import (
    KubesprayChange,
    ansible_server,
    balancer_role_of,
    kubespray_change,
    recorded_host_key,
    server_before,
)
from slipway.kubespray.checks import check_kubespray_cluster, refuse_what_kubespray_lacks
from slipway.kubespray.registry_plans import with_registries
from slipway.kubespray.steps.actions import kubespray_actions
from slipway.model.action import Action
from slipway.model.connectivity import refuse_moves
from slipway.model.errors import BadRequest, RequestError
from slipway.model.hooks import KUBESPRAY_DRIVERS, Edges, HookPlan
from slipway.model.instance import VnfInstance
from slipway.model.json_documents import merge_patch
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import ChangeExtConnRequest, ScaleRequest, TerminateRequest, TerminationType
from slipway.model.secrets import find_references, redact
from slipway.model.situation import PlanningSituation, Situation
from slipway.model.target import VnfTarget

# Whose secrets are on the Ansible server, or get us in there.
ON_THE_SERVER = ("ansible", "master_node", "worker_node", "proxy", REGISTRIES)


class KubesprayDriver:
    name, aliases = KUBESPRAY_DRIVERS[0], KUBESPRAY_DRIVERS[1:]

    def __init__(self, deps: Dependencies) -> None:
        self.actions: tuple[Action[Any], ...] = kubespray_actions(deps)

    def check(self, situation: Situation) -> None:
        if situation.operation is OperationType.MODIFY_INFO:
            check_modified_registries(situation)
        if situation.operation is OperationType.TERMINATE:
            _check_termination(situation)
        if checks := CHECKS.get(situation.operation):
            request = read_request(situation, check_kubespray_cluster)
            for check in checks:
                check(request, situation.request)

    def refuse_moved_secrets(self, situation: Situation) -> None:
        if situation.operation is not OperationType.INSTANTIATE:
            _refuse_moved_secrets(situation)

    def vim_name(self, situation: Situation) -> tuple[str, str] | None:
        if situation.operation not in REGISTERS_VIM:
            return None
        return f"{PATH}.vim_name", cluster_vim_name(situation)

    def plan(self, operation: str, edges: Edges, situation: PlanningSituation) -> HookPlan:
        if operation == "terminate":
            return _terminate(situation, edges)
        planner = PLANNERS.get(operation)
        if planner is None:
            return HookPlan()
        change = kubespray_change(situation)
        check_quorum(change.nodes)
        planned = plans.between_servers(change, with_registries(planner(change, edges), change.nodes))
        # The storage server is none of kubespray's affair: what it needs is done as on any other cluster.
        return with_storage(planned, change.nodes, edges)

    def package_files(self, situation: Situation) -> tuple[str, ...]:
        return volume_manifests(situation)

    def names_template(self, situation: Situation) -> bool:
        return names_volumes_of_template(situation)

    def check_template(self, situation: Situation, target: VnfTarget) -> None:
        check_volumes_of_template(situation, target)

    def modification(self, situation: PlanningSituation) -> Plan:
        """Registries that are others now, on every node there is. The Ansible server hears of them in its next run."""
        if (registries := modified_registries(situation)) is None:
            return Plan()
        return plan_modified_registries(cluster_change(situation, check_kubespray_cluster), *registries)


def _refuse_moved_secrets(situation: Situation) -> None:
    """Stored secrets go to the server that they were given for: who names another one gives them all again."""
    stored, asked = situation.instance.parameters.get(NAME), situation.additional_params.get(NAME)
    if not isinstance(stored, dict) or not isinstance(asked, dict):
        return
    vnf = situation.instance.vnf
    if _place(stored.get("ansible"), vnf) == _place(merge_patch(stored, asked).get("ansible"), vnf):
        return
    documents = (stored, stored_parameters(situation)[NAME])  # of registries, a modification may have said others
    kept = [name for name in ON_THE_SERVER if any(_keeps_secrets(one.get(name), asked, name) for one in documents)]
    if kept:
        raise BadRequest(
            f"{PATH}.ansible: the stored secrets were given for the Ansible server that this cluster has, and go to no "
            f"other address, port or host key; give again: {', '.join(kept)}."
        )
    lasting = registries_property(situation)  # they are those of the next operation again, whatever this one says
    if situation.operation is OperationType.CHANGE_VNFPKG and any(find_references(lasting)):
        raise BadRequest(
            f"{PATH}.ansible: the secrets of vnfConfigurableProperties.{REGISTRIES} were given for the Ansible server "
            "that this cluster has, and would go to another one later; set the property to null by a modification "
            "(PATCH) first, and give it again when the cluster is on the other server."
        )


def _keeps_secrets(stored: Any, asked: dict[str, Any], name: str) -> bool:
    now = merge_patch({name: stored}, asked).get(name)
    return not set(find_references(stored)).isdisjoint(find_references(now))


def _place(ansible: Any, vnf: VnfInstance) -> tuple[str, ...]:
    given = ansible if isinstance(ansible, dict) else {}
    address = str(given.get("ip_address"))
    key = given.get("host_key") or recorded_host_key(vnf, address)
    return address, str(given.get("ssh_port") or 22), str(key)


def _check_registries(cluster: ClusterRequest, request: Any) -> None:
    """Said again as they are, for another Ansible server, they change nothing."""
    refuse_registries_property(request)
    asked, configured = cluster.asked.get(REGISTRIES), registries_property(cluster.situation)
    now = cluster.stored_registries if configured is None else configured
    if asked is not None and redact(asked) != redact(now):
        raise BadRequest(f"{PATH}.{REGISTRIES}: {BY_MODIFICATION}")


def _check_termination(situation: Situation) -> None:
    """What the request says must be right, or it would end well and leave secrets on the server.

    What is stored is no reason to refuse it, so that there is always a request that ends the VNF.
    """
    request = situation.request
    assert isinstance(request, TerminateRequest)  # noqa: S101 - so the operation says
    silent = dataclasses.replace(situation, request=replace(request, additional_params={}))
    try:
        _check_parameters(read_request(silent, check_kubespray_cluster), request)
    except RequestError:
        return
    asked = read_request(situation, check_kubespray_cluster)
    _check_parameters(asked, request)
    _check_server(asked, request)


def _terminate(situation: PlanningSituation, edges: Edges) -> HookPlan:
    """With stored parameters that can't be read, nothing of the instance is on a server that is known."""
    forceful = _is_forceful(situation)
    with contextlib.suppress(RequestError):
        return plans.plan_terminate(kubespray_change(situation), edges, forceful=forceful)
    unregister = plan_unregister(situation.instance.vnf.id, None)
    return HookPlan(start=unregister) if "start" in edges else HookPlan(end=unregister)


def _is_forceful(situation: Situation) -> bool:
    request = situation.request
    return isinstance(request, TerminateRequest) and request.termination_type is TerminationType.FORCEFUL


def _heal(change: KubesprayChange, edges: Edges) -> HookPlan:
    """Of nodes, of the balancer, of both; of the storage server alone there is nothing for kubespray to do."""
    if not change.nodes.joining and not change.balancer_is_new:
        return HookPlan()
    whole = bool(change.nodes.joining) and is_whole(change.nodes)
    return plans.plan_new_cluster(change, edges) if whole else plans.plan_heal(change, edges)


def _upgrade(change: KubesprayChange, edges: Edges) -> HookPlan:
    """Without another version another Ansible server is all that may be new: it is the instance's from now on."""
    if new := _wanted_version(change.nodes.request):
        return plans.plan_upgrade(change, new, edges)
    return plans.plan_move(change) if change.former else HookPlan()


def _wanted_version(request: ClusterRequest) -> Version | None:
    """What the request names. Images have no say in it: kubespray brings Kubernetes to them."""
    new = request.parameters.kubernetes_version
    if request.asked.get("kubernetes_version") is None or new is None:
        return None
    return checked_upgrade(request.situation, new, f"{PATH}.kubernetes_version", BadRequest)


def _check_parameters(cluster: ClusterRequest, _: Any) -> None:
    refuse_what_kubespray_lacks(cluster.parameters)
    cluster.checked  # noqa: B018 - BadRequest where it does not fit the flavour
    ansible_server(cluster)
    balancer_role_of(cluster)
    check_files(cluster.parameters, cluster.situation.files)


def _check_server(cluster: ClusterRequest, _: Any) -> None:
    """The inventory stays where it is: another directory would be that of another cluster."""
    before = server_before(cluster)
    if before and before.inventory != ansible_server(cluster).inventory:
        raise BadRequest(
            f"{PATH}.ansible: the inventory of this cluster is in {before.inventory}, and stays there; leave "
            "transferring_inventory_path and kubespray_root_path as they were."
        )


def _check_lasting(cluster: ClusterRequest, _: Any) -> None:
    refuse_changed(cluster, _lasting)


def _lasting(cluster: ClusterRequest) -> Lasting:
    balancer = cluster.parameters.external_lb_param
    return of_every_cluster(cluster) | {
        "cni": cluster.document.get("cni"),
        "external_lb_param": balancer_role_of(cluster),
        "external_lb_param.script_path": balancer is not None and balancer.script_path is not None,
    }


def _check_scale(cluster: ClusterRequest, request: ScaleRequest) -> None:
    refuse_scaled_storage(cluster, request)
    if cluster.checked.masters.vdu in cluster.situation.flavour.aspects[request.aspect_id].deltas:
        raise BadRequest(
            f"aspectId: {request.aspect_id!r} scales masters, and kubespray adds and removes them only by hand: every "
            "node must learn of them while etcd has an even number of members; instantiate another cluster."
        )


def _check_connectivity(cluster: ClusterRequest, request: ChangeExtConnRequest) -> None:
    """Certificates and the registered VIM have the balancer's address, as they have those of nodes."""
    check_connectivity(cluster, request)
    info, role = cluster.situation.instance.vnf.instantiated_vnf_info, balancer_role_of(cluster)
    if info and role:
        refuse_moves(info, request.ext_virtual_links, [(f"{PATH}.external_lb_param.ssh_cp_name", role.ssh)], "cluster")


def _check_upgrade(cluster: ClusterRequest, _: Any) -> None:
    _wanted_version(cluster)


Check = Callable[[ClusterRequest, Any], None]  # with the operation's own request
CHECKS: dict[OperationType, tuple[Check, ...]] = {
    OperationType.INSTANTIATE: (_check_parameters,),
    OperationType.SCALE: (
        _check_parameters,
        _check_registries,
        _check_server,
        _check_lasting,
        refuse_unheard_storage,
        check_version,
        _check_scale,
    ),
    OperationType.HEAL: (
        _check_parameters,
        _check_registries,
        _check_server,
        _check_lasting,
        refuse_unheard_storage,
        check_version,
        check_heal,
    ),
    OperationType.CHANGE_VNFPKG: (
        _check_parameters,
        _check_registries,
        _check_server,
        _check_lasting,
        refuse_lost_volumes,
        _check_upgrade,
    ),
    OperationType.CHANGE_EXT_CONN: (_check_connectivity,),
}
PLANNERS: dict[str, Callable[[KubesprayChange, Edges], HookPlan]] = {
    "instantiate": plans.plan_new_cluster,
    "scale": plans.plan_scale,
    "heal": _heal,
    "change_current_package": _upgrade,
}
