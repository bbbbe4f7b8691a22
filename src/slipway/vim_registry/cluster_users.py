"""Clusters that are VIMs of their own: not taken away from the VNFs on them, and not used while they are made anew."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from slipway.model.errors import Conflict, NotFound
from slipway.model.instance import Instance, VimConnectionInfo, VnfInstance
from slipway.model.operation import Operation, OperationType
from slipway.model.vim import is_made_here
from slipway.store import instances, tables, vims
from slipway.vim_registry.names import vim_id_of
from slipway.vim_registry.users import users_of


def refuse_used_cluster(connection: Connection, instance: Instance, cure: str) -> None:
    """Conflict names the VNFs on the cluster that the instance is. Who comes at the same moment is found by the step
    that removes the VIM."""
    try:
        vim = vims.get(connection, vim_id_of(instance.vnf.id))
    except NotFound:
        return
    if users := users_of(connection, vim, instance.vnf.id):
        raise Conflict(f"VNF instances run on the cluster, which is VIM {vim.name!r}: {', '.join(users)}. {cure}")


def refuse_cluster_in_work(connection: Connection, info: VimConnectionInfo, project: str) -> None:
    """Conflict when the VIM is a cluster that an operation is just making anew, or terminating."""
    if info.vim_id is None or not is_made_here(info.vim_id):
        return
    table = tables.operations
    holding = select(table.c.instance_id, table.c.doc).where(tables.HOLDS_INSTANCE, table.c.project == project)
    for row in connection.execute(holding):
        if vim_id_of(str(row.instance_id)) == info.vim_id and _takes_away(connection, row.doc):
            raise Conflict(
                f"VIM {info.vim_id} is the cluster of VNF instance {row.instance_id}, whose operation {row.doc.id} "
                f"({row.doc.operation.value}) is under way. Wait until it has ended."
            )


def _takes_away(connection: Connection, operation: Operation) -> bool:
    if operation.operation is OperationType.HEAL:
        vnf = instances.get(connection, operation.vnf_instance_id).vnf
        return is_whole_heal(vnf, operation.operation_params.get("vnfcInstanceId", ()))
    return operation.operation is OperationType.TERMINATE


def is_whole_heal(vnf: VnfInstance, chosen: Collection[str]) -> bool:
    """Whether all VNFCs are made anew, named or not."""
    known = vnf.instantiated_vnf_info.vnfc_resource_ids if vnf.instantiated_vnf_info else {}
    return not chosen or set(known.values()) <= {known.get(name) for name in chosen}
