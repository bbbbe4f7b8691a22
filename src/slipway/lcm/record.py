"""The instance's record is what it was plus the outcomes of the steps: the same sum however an operation ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from slipway.model.connectivity import config_of, with_all_configs, with_cp_instances
from slipway.model.descriptor import Flavour
from slipway.model.instance import (
    CpAddress,
    CpConfig,
    CpEthernet,
    CpProtocolInfo,
    ExtCpInfo,
    InstantiatedVnfInfo,
    ResourceHandle,
    VirtualLinkResourceInfo,
    VirtualStorageResourceInfo,
    VnfcCpInfo,
    VnfcInfo,
    VnfcResourceInfo,
    VnfInstance,
)
from slipway.model.journal import StepRecord, StepState
from slipway.model.json_documents import merge_patch
from slipway.model.machine import (
    Address,
    Found,
    FoundMachine,
    FoundNetwork,
    FoundObject,
    FoundPort,
    FoundVolume,
    Outcome,
)
from slipway.model.target import VnfcMember

OBJECTS = "objects"  # in instantiatedVnfInfo.metadata: what was made on a VIM of objects
PORTS = "ports"  # as well: those that no machine holds
EXISTING = "existing"  # in a connection point's metadata: its port was there before the VNF
HOST_KEY = "hostKey"  # in a VNFC's metadata
LEFT_BY = "leftBy"  # in a storage's metadata: the slot whose machine is gone, and had it
MADE_AT = "madeAt"  # in a VNFC's metadata: the version of the record when it was made


def outcomes(journal: Sequence[StepRecord]) -> list[Outcome]:
    """What the steps left, oldest first. An undone step's outcome is what its undo removed or gave back."""
    settled = [r for r in journal if r.outcome and r.state in (StepState.DONE, StepState.UNDONE)]
    return [r.outcome for r in sorted(settled, key=lambda r: (r.ended_at or 0.0, r.position)) if r.outcome]


def with_outcomes(
    info: InstantiatedVnfInfo,
    results: Iterable[Outcome],
    flavour: Flavour,
    vim_key: str,
    members: Mapping[str, VnfcMember],
    version: int,
) -> InstantiatedVnfInfo:
    """`members`: whom the operation knows, by id. `version`: of the record, by which VNFCs are told old from new."""
    vnfcs = {vnfc.id: vnfc for vnfc in info.vnfc_resource_info}
    links = {link.id: link for link in info.vnf_virtual_link_resource_info}
    storages = {storage.id: storage for storage in info.virtual_storage_resource_info}
    inside = {point.name for point in flavour.connection_points.values() if point.virtual_link is not None}
    objects = {one.id: one for one in _objects(info)}
    ports = {one.id: one for one in _ports(info)}
    inside -= {cp.cpd_id for link in info.ext_virtual_link_info for cp in link.current_vnf_ext_cp_data}
    for result in results:
        for gone in result.removed:
            if gone in vnfcs:
                storages |= _left_by(vnfcs[gone], storages)
            for table in (vnfcs, links, storages, objects, ports):
                table.pop(gone, None)
        for network in result.networks:
            links[network.id] = _link(network, vim_key)
        objects.update((one.id, one) for one in result.objects)
        ports.update((one.id, one) for one in result.ports)
        for machine in result.machines:
            before = vnfcs.get(machine.id)
            made_at = before.metadata.get(MADE_AT) if before else version
            if before:
                learnt = before.compute_resource.resource_id, before.metadata.get(HOST_KEY)
                machine = machine.with_learnt_key(*learnt)
            vnfcs[machine.id] = _vnfc(machine, inside, vim_key, members.get(machine.id), made_at, info)
            storages.update((volume.id, _storage(volume, vim_key)) for volume in machine.volumes)
    order = {name: at for at, name in enumerate(flavour.vdus)}
    after = sorted(
        vnfcs.values(),
        key=lambda vnfc: (order.get(vnfc.vdu_id, len(order)), vnfc.slot or 0, vnfc.metadata["name"]),
    )
    metadata = {name: value for name, value in info.metadata.items() if name not in (OBJECTS, PORTS)}
    for name, kept in ((OBJECTS, objects), (PORTS, ports)):
        if kept:
            metadata[name] = msgspec.to_builtins(list(kept.values()))
    recorded = replace(
        info,
        vnfc_resource_info=tuple(after),
        vnf_virtual_link_resource_info=tuple(links.values()),
        virtual_storage_resource_info=tuple(storages.values()),
        vnfc_info=tuple(_vnfc_infos(info, after)),
        ext_cp_info=tuple(_ext_cps(after, info)),
        metadata=metadata,
    )
    return with_cp_instances(with_all_configs(recorded))


def with_instance_patches(vnf: VnfInstance, results: Iterable[Outcome]) -> VnfInstance:
    """The instance with the merge patches that management drivers returned.

    What a termination says of the instantiated VNF is gone with it.
    """
    for result in results:
        patch = dict(result.instance)
        if vnf.instantiated_vnf_info is None:
            patch.pop("instantiatedVnfInfo", None)
        if patch:
            vnf = msgspec.convert(merge_patch(msgspec.to_builtins(vnf), patch), VnfInstance)
    return vnf


def inventory(info: InstantiatedVnfInfo | None) -> Found:
    """All resources of the record, in the form in which a VIM reports them."""
    if info is None:
        return Found()
    return Found(
        machines=tuple(_found(vnfc, info) for vnfc in info.vnfc_resource_info),
        networks=tuple(
            FoundNetwork(id=link.id, name=link.vnf_virtual_link_desc_id, resource_id=link.network_resource.resource_id)
            for link in info.vnf_virtual_link_resource_info
        ),
        volumes=_unheld(info),
        ports=_ports(info),
        objects=_objects(info),
    )


def reconciled(found: Found, info: InstantiatedVnfInfo | None) -> Found:
    """What the VIM reports, corrected by our records.

    A member that the records know counts as present even if it is broken: only a heal touches it, because a machine
    made anew without its management driver's steps is an empty shell. And a list that leaves something out must not
    make us leave it behind. Where the VIM has another machine in a member's place than the records, somebody had it
    made anew, and it is that one. Pods come and go by themselves: of those the VIM knows best.
    """
    recorded = inventory(info)
    members = {vnfc.id for vnfc in info.vnfc_resource_info if member_of(vnfc)} if info else set[str]()
    now = {machine.id: machine for machine in found.machines}
    lasting = tuple(_in_place(machine, now.get(machine.id)) for machine in recorded.machines if machine.id in members)
    networks = {network.id for network in recorded.networks}
    return replace(
        found,
        broken=tuple(machine.id for machine in found.machines if not machine.ready),
        machines=(*lasting, *(machine for machine in found.machines if machine.id not in members)),
        networks=(*recorded.networks, *(network for network in found.networks if network.id not in networks)),
    )


def _in_place(recorded: FoundMachine, now: FoundMachine | None) -> FoundMachine:
    return now if now is not None and now.resource_id != recorded.resource_id else recorded


def _objects(info: InstantiatedVnfInfo) -> tuple[FoundObject, ...]:
    return msgspec.convert(info.metadata.get(OBJECTS, ()), tuple[FoundObject, ...])


def _ports(info: InstantiatedVnfInfo) -> tuple[FoundPort, ...]:
    return msgspec.convert(info.metadata.get(PORTS, ()), tuple[FoundPort, ...])


def member_of(vnfc: VnfcResourceInfo) -> VnfcMember | None:
    """None for a VNFC without a slot: a pod."""
    return None if vnfc.slot is None else VnfcMember(id=vnfc.id, vdu=vnfc.vdu_id, slot=vnfc.slot)


def recorded_machine(info: InstantiatedVnfInfo | None, machine_id: str) -> FoundMachine | None:
    if info is None:
        return None
    return next((_found(vnfc, info) for vnfc in info.vnfc_resource_info if vnfc.id == machine_id), None)


def recorded_port(info: InstantiatedVnfInfo | None, name: str) -> FoundPort | None:
    """Of those that no machine holds."""
    return next((port for port in _ports(info) if port.name == name), None) if info else None


def _link(network: FoundNetwork, vim_key: str) -> VirtualLinkResourceInfo:
    return VirtualLinkResourceInfo(
        id=network.id,
        vnf_virtual_link_desc_id=network.name,
        network_resource=_handle(network.resource_id, vim_key),
    )


def _storage(volume: FoundVolume, vim_key: str) -> VirtualStorageResourceInfo:
    return VirtualStorageResourceInfo(
        id=volume.id,
        virtual_storage_desc_id=volume.name,
        storage_resource=_handle(volume.resource_id, vim_key),
        metadata={"image": volume.image} if volume.image else {},
    )


def _left_by(
    vnfc: VnfcResourceInfo, storages: Mapping[str, VirtualStorageResourceInfo]
) -> dict[str, VirtualStorageResourceInfo]:
    """Its storages: those that don't go with it are for the next machine in its slot, whenever that comes."""
    return {
        id_: replace(storages[id_], metadata={**storages[id_].metadata, LEFT_BY: vnfc.metadata["name"]})
        for id_ in vnfc.storage_resource_ids
        if id_ in storages
    }


def _unheld(info: InstantiatedVnfInfo) -> tuple[FoundVolume, ...]:
    held = {id_ for vnfc in info.vnfc_resource_info for id_ in vnfc.storage_resource_ids}
    return tuple(_found_volume(one) for one in info.virtual_storage_resource_info if one.id not in held)


def _found_volume(storage: VirtualStorageResourceInfo) -> FoundVolume:
    return FoundVolume(
        id=storage.id,
        name=storage.virtual_storage_desc_id,
        resource_id=storage.storage_resource.resource_id,
        image=storage.metadata.get("image"),
        left_by=storage.metadata.get(LEFT_BY),
    )


def _vnfc(
    machine: FoundMachine,
    inside: set[str],
    vim_key: str,
    member: VnfcMember | None,
    made_at: int | None,
    info: InstantiatedVnfInfo,
) -> VnfcResourceInfo:
    metadata: dict[str, Any] = {"name": machine.name}
    told = {
        "slot": member.slot if member else None,
        MADE_AT: made_at,
        "host": machine.host,
        HOST_KEY: machine.host_key,
        "image": machine.image,
        "flavour": machine.flavour,
    }
    return VnfcResourceInfo(
        id=machine.id,
        vdu_id=machine.vdu,
        compute_resource=ResourceHandle(
            resource_id=machine.resource_id, vim_connection_id=vim_key, vim_level_resource_type=machine.type
        ),
        zone_id=machine.zone,
        storage_resource_ids=tuple(volume.id for volume in machine.volumes),
        vnfc_cp_info=tuple(
            _cp(port, port.name not in inside, config_of(info, port.name, member.slot if member else 0)[1])
            for port in machine.ports
        ),
        metadata=metadata | {name: value for name, value in told.items() if value is not None},
    )


def _cp(port: FoundPort, external: bool, asked: CpConfig) -> VnfcCpInfo:
    fixed = _fixed(asked)
    addresses = tuple(
        CpAddress(type=_family(one.ip), addresses=(one.ip,), is_dynamic=one.ip not in fixed, subnet_id=one.subnet)
        for one in port.addresses
        if one.ip
    )
    # The standard wants an address or a MAC in it, or nothing at all.
    ethernet = CpEthernet(mac_address=port.mac, ip_addresses=addresses) if port.mac or addresses else None
    told = {"network": port.network, "floating": port.floating, EXISTING: port.existing}
    return VnfcCpInfo(
        id=port.id,
        cpd_id=port.name,
        cp_protocol_info=(CpProtocolInfo(layer_protocol="IP_OVER_ETHERNET", ip_over_ethernet=ethernet),),
        vnf_ext_cp_id=f"ext-{port.id}" if external else None,
        metadata={"resourceId": port.resource_id} | {name: value for name, value in told.items() if value},
    )


def _fixed(asked: CpConfig) -> set[str]:
    """Addresses that a request gave."""
    given = (data.ip_over_ethernet for data in asked.cp_protocol_data if data.ip_over_ethernet)
    return {address for ethernet in given for ips in ethernet.ip_addresses for address in ips.fixed_addresses}


def _family(address: str) -> str:
    return "IPV6" if ":" in address else "IPV4"


def _vnfc_infos(info: InstantiatedVnfInfo, members: Iterable[VnfcResourceInfo]) -> Iterator[VnfcInfo]:
    known = {vnfc.vnfc_resource_info_id: vnfc for vnfc in info.vnfc_info}
    for vnfc in members:
        yield known.get(vnfc.id) or VnfcInfo(
            id=f"{vnfc.vdu_id}-{vnfc.id}", vdu_id=vnfc.vdu_id, vnfc_state="STARTED", vnfc_resource_info_id=vnfc.id
        )


def _ext_cps(members: Iterable[VnfcResourceInfo], info: InstantiatedVnfInfo) -> Iterator[ExtCpInfo]:
    for vnfc in members:
        for cp in vnfc.vnfc_cp_info:
            if cp.vnf_ext_cp_id:
                key, config = config_of(info, cp.cpd_id, vnfc.slot or 0)
                yield ExtCpInfo(
                    id=cp.vnf_ext_cp_id,
                    cpd_id=cp.cpd_id,
                    cp_config_id=key,
                    cp_protocol_info=cp.cp_protocol_info,
                    ext_link_port_id=config.link_port_id if cp.metadata.get(EXISTING) else None,
                    associated_vnfc_cp_id=cp.id,
                )


def _handle(resource_id: str, vim_key: str) -> ResourceHandle:
    return ResourceHandle(resource_id=resource_id, vim_connection_id=vim_key)


def _found(vnfc: VnfcResourceInfo, info: InstantiatedVnfInfo) -> FoundMachine:
    storages = {storage.id: storage for storage in info.virtual_storage_resource_info}
    return FoundMachine(
        id=vnfc.id,
        name=vnfc.metadata["name"],
        vdu=vnfc.vdu_id,
        type=vnfc.compute_resource.vim_level_resource_type,
        resource_id=vnfc.compute_resource.resource_id,
        ready=True,
        ports=tuple(_found_port(cp) for cp in vnfc.vnfc_cp_info),
        volumes=tuple(_found_volume(storages[id_]) for id_ in vnfc.storage_resource_ids),
        zone=vnfc.zone_id,
        image=vnfc.metadata.get("image"),
        flavour=vnfc.metadata.get("flavour"),
        host=vnfc.metadata.get("host"),
        host_key=vnfc.metadata.get(HOST_KEY),
    )


def _found_port(cp: VnfcCpInfo) -> FoundPort:
    ethernet = next((info.ip_over_ethernet for info in cp.cp_protocol_info if info.ip_over_ethernet), None)
    told = ethernet.ip_addresses if ethernet else ()
    return FoundPort(
        id=cp.id,
        name=cp.cpd_id,
        resource_id=cp.metadata["resourceId"],
        addresses=tuple(Address(ip=ip, subnet=one.subnet_id) for one in told for ip in one.addresses),
        mac=ethernet.mac_address if ethernet else None,
        network=cp.metadata.get("network"),
        floating=cp.metadata.get("floating", {}),
        existing=cp.metadata.get(EXISTING, False),
    )
