"""What a cluster was made with and stays with: a later request that says something else of it is refused by name.

No node that stands would hear of it, and scale and heal are not remembered: the operation after them would build on
what is stored again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from msgspec.structs import replace

from slipway.cluster.parameters import BUILT_IN_CNIS, NAME, PATH, parameters_now
from slipway.cluster.request import ClusterRequest, stored_parameters
from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest

Lasting = dict[str, object]  # by the parameter that says it


def refuse_changed(cluster: ClusterRequest, lasting: Callable[[ClusterRequest], Lasting]) -> None:
    was, now = lasting(_as_stored(cluster)), lasting(cluster)
    if changed := [f"{PATH}.{name}" for name in now if was[name] != now[name]]:
        raise BadRequest(
            f"{', '.join(changed)}: the cluster was made with something else, and stays with it; leave out what is "
            "new, or instantiate another cluster."
        )


def of_every_cluster(cluster: ClusterRequest) -> Lasting:
    """Networks are compared as they are chosen: to say what was left open before is no change."""
    checked, parameters = cluster.checked, cluster.parameters
    found: Lasting = {
        "master_node.pod_cidr": checked.networks.pods,
        "master_node.cluster_cidr": checked.networks.services,
        "master_node.nic_cp_name": parameters.master_node.traffic_cp_name,
        "worker_node.nic_cp_name": parameters.worker_node.traffic_cp_name,
    }
    if not _makes_cluster(cluster) and cluster.situation.operation is not OperationType.CHANGE_VNFPKG:
        found["vim_name"] = parameters.vim_name_for(cluster.situation.instance.vnf.id)
    return found


def of_kubeadm(cluster: ClusterRequest) -> Lasting:
    checked, parameters = cluster.checked, cluster.parameters
    found = of_every_cluster(cluster) | {
        "master_node.cluster_cp_name": checked.vip_port,
        "master_node.cluster_ip": checked.vip,
        "master_node.cluster_fip_name": checked.floating_ip,
        "image_repository": parameters.image_repository,
        "script_path": parameters.script_path is not None,
    }
    if not _makes_cluster(cluster):
        found["cni"] = _network_plugin(cluster)
    return found


def _network_plugin(cluster: ClusterRequest) -> str | None:
    """None: a manifest of the package, which may have another name in the next one. A whole heal reads it again."""
    cni, operation = cluster.parameters.cni, cluster.situation.operation
    return cni if cni in BUILT_IN_CNIS or operation is not OperationType.CHANGE_VNFPKG else None


def _makes_cluster(cluster: ClusterRequest) -> bool:
    """A heal of the whole: what only a new cluster gets, it gets then."""
    request, info = cluster.situation.request, cluster.situation.instance.vnf.instantiated_vnf_info
    if not isinstance(request, HealRequest) or info is None:
        return False
    known = info.vnfc_resource_ids
    chosen = {known.get(name) for name in request.vnfc_instance_id}
    return not chosen or {vnfc.id for vnfc in info.vnfcs_of(cluster.checked.masters.vdu)} <= chosen


def _as_stored(cluster: ClusterRequest) -> ClusterRequest:
    """The request with what is stored of all that lasts. The rest of that may be missing in a new VNFD."""
    stored = stored_parameters(cluster.situation)
    before, now = parameters_now(stored, {}), cluster.parameters
    masters = replace(
        now.master_node,
        nic_cp_name=before.master_node.traffic_cp_name,
        pod_cidr=before.master_node.pod_cidr,
        cluster_cidr=before.master_node.cluster_cidr,
        cluster_cp_name=before.master_node.cluster_cp_name,
        cluster_ip=before.master_node.cluster_ip,
        cluster_fip_name=before.master_node.cluster_fip_name,
    )
    parameters = replace(
        now,
        master_node=masters,
        worker_node=replace(now.worker_node, nic_cp_name=before.worker_node.traffic_cp_name),
        proxy=before.proxy,  # the nodes' network is in it, around which others are chosen
        cni=before.cni,
        image_repository=before.image_repository,
        script_path=before.script_path,
        vim_name=before.vim_name,
        external_lb_param=before.external_lb_param,
    )
    return dataclasses.replace(cluster, document=stored.get(NAME) or {}, parameters=parameters)
