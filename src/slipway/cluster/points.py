"""The connection points whose addresses a cluster is built on: nodes are reached and known by them."""

from __future__ import annotations

from collections.abc import Iterator

from slipway.cluster.parameters import ClusterParameters


def points_in_use(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    """Each with the parameter that names it."""
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
