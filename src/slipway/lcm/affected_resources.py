"""What an operation changed (`resourceChanges`, `changedExtConnectivity`, ...): the difference between two records."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from slipway.model.instance import (
    ExtVirtualLinkInfo,
    InstantiatedVnfInfo,
    VirtualLinkResourceInfo,
    VirtualStorageResourceInfo,
    VnfcResourceInfo,
    VnfInstance,
)
from slipway.model.operation import (
    AffectedVirtualLink,
    AffectedVirtualStorage,
    AffectedVnfc,
    ChangeType,
    ResourceChanges,
)

R = TypeVar("R", VnfcResourceInfo, VirtualLinkResourceInfo, VirtualStorageResourceInfo)

# What another package may change of a record (ModificationsTriggeredByVnfPkgChange).
OF_PACKAGE = (
    "vnfConfigurableProperties",
    "metadata",
    "extensions",
    "vnfdId",
    "vnfProvider",
    "vnfProductName",
    "vnfSoftwareVersion",
    "vnfdVersion",
)
EMPTY = InstantiatedVnfInfo(flavour_id="", vnf_state="STOPPED")


def resource_changes(before: InstantiatedVnfInfo | None, after: InstantiatedVnfInfo | None) -> ResourceChanges | None:
    old, new = before or EMPTY, after or EMPTY
    changes = ResourceChanges(
        affected_vnfcs=tuple(
            _vnfc(vnfc, kind) for vnfc, kind in _differences(old.vnfc_resource_info, new.vnfc_resource_info)
        ),
        affected_virtual_links=tuple(
            AffectedVirtualLink(
                id=link.id,
                vnf_virtual_link_desc_id=link.vnf_virtual_link_desc_id,
                change_type=kind,
                network_resource=link.network_resource,
            )
            for link, kind in _differences(old.vnf_virtual_link_resource_info, new.vnf_virtual_link_resource_info)
        ),
        affected_virtual_storages=tuple(
            AffectedVirtualStorage(
                id=storage.id,
                virtual_storage_desc_id=storage.virtual_storage_desc_id,
                change_type=kind,
                storage_resource=storage.storage_resource,
            )
            for storage, kind in _differences(old.virtual_storage_resource_info, new.virtual_storage_resource_info)
        ),
    )
    return changes if msgspec.to_builtins(changes) else None


def modifications(before: VnfInstance, after: VnfInstance) -> dict[str, Any]:
    """Of a change of package: the attributes that are not as they were."""
    was, now = msgspec.to_builtins(before), msgspec.to_builtins(after)
    return {name: now[name] for name in OF_PACKAGE if name in now and now[name] != was.get(name)}


def changed_links(
    before: InstantiatedVnfInfo | None, after: InstantiatedVnfInfo | None
) -> tuple[ExtVirtualLinkInfo, ...]:
    """Of a change of external connectivity: the links that are not as they were."""
    was = {link.id: link for link in (before or EMPTY).ext_virtual_link_info}
    return tuple(link for link in (after or EMPTY).ext_virtual_link_info if was.get(link.id) != link)


def _differences(old: tuple[R, ...], new: tuple[R, ...]) -> list[tuple[R, ChangeType]]:
    was, now = {item.id: item for item in old}, {item.id: item for item in new}
    return (
        [(item, ChangeType.REMOVED) for item in old if item.id not in now]
        + [(item, ChangeType.ADDED) for item in new if item.id not in was]
        + [(item, ChangeType.MODIFIED) for item in new if item.id in was and was[item.id] != item]
    )


def _vnfc(vnfc: VnfcResourceInfo, kind: ChangeType) -> AffectedVnfc:
    return AffectedVnfc(
        id=vnfc.id,
        vdu_id=vnfc.vdu_id,
        change_type=kind,
        compute_resource=vnfc.compute_resource,
        affected_vnfc_cp_ids=tuple(cp.id for cp in vnfc.vnfc_cp_info),
        added_storage_resource_ids=vnfc.storage_resource_ids if kind is ChangeType.ADDED else (),
        removed_storage_resource_ids=vnfc.storage_resource_ids if kind is ChangeType.REMOVED else (),
    )
