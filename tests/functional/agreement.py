"""Whether the VIM holds exactly what the records say: nothing twice, nothing left behind, nothing missing."""

from __future__ import annotations

from collections import Counter

from slipway.lcm.record import inventory
from slipway.model.instance import InstantiatedVnfInfo
from slipway.model.machine import Found


def assert_agreement(info: InstantiatedVnfInfo | None, found: Found | None) -> None:
    """The instance's record against all that the VIM has for it."""
    there = found or Found()
    recorded = info.vnfc_resource_info if info else ()
    assert {vnfc.id: vnfc.compute_resource.resource_id for vnfc in recorded} == {
        machine.id: machine.resource_id for machine in there.machines
    }
    assert all(count == 1 for count in Counter(machine.name for machine in there.machines).values())
    assert all(machine.ready for machine in there.machines)
    networks = info.vnf_virtual_link_resource_info if info else ()
    assert {link.id for link in networks} == {network.id for network in there.networks}
    storages = info.virtual_storage_resource_info if info else ()
    assert {storage.id for storage in storages} == {volume.id for volume in there.volumes}
    ports = {cp.id for vnfc in recorded for cp in vnfc.vnfc_cp_info} | {port.id for port in inventory(info).ports}
    assert ports == {port.id for port in there.ports}
    assert {one.id: one.digest for one in inventory(info).objects} == {one.id: one.digest for one in there.objects}
