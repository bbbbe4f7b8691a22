"""What an NFVO is asked for an operation: the difference between the record and what is wanted.

Pure, and from the record alone: asked again after a crash, it is the same question with the same ids.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from slipway.lcm.operations import OPERATIONS, change_in
from slipway.model.grant import (
    ConstraintResource,
    GrantRequest,
    IdType,
    PlacementConstraint,
    ResourceDefinition,
    ResourceType,
)
from slipway.model.instance import InstantiatedVnfInfo, ResourceHandle, VnfcResourceInfo
from slipway.model.operation import Operation
from slipway.model.secrets import redact
from slipway.model.situation import Situation
from slipway.model.target import Change, VimResource
from slipway.vim_registry.choice import vim_key_of

Definitions = tuple[ResourceDefinition, ...]
Resources = tuple[VimResource, ...]  # that a change leaves, as the driver of the VIM counts them


@dataclass(frozen=True)
class Difference:
    add: Definitions
    remove: Definitions
    update: Definitions


def grant_request(
    situation: Situation, change: Change, left: Resources, operation: Operation, base_url: str
) -> GrantRequest:
    """Without secrets: in a stored request these are references, and those are left out."""
    vnf, request = situation.instance.vnf, situation.request
    resources = difference(situation, left)
    place = f"{base_url.rstrip('/')}/vnflcm/v2"
    return GrantRequest(
        vnf_instance_id=vnf.id,
        vnf_lcm_op_occ_id=operation.id,
        vnfd_id=vnf.vnfd_id,
        flavour_id=situation.flavour.id,
        operation=operation.operation,
        is_automatic_invocation=operation.is_automatic_invocation,
        add_resources=resources.add,
        remove_resources=resources.remove,
        update_resources=resources.update,
        placement_constraints=tuple(_constraints(situation, change)),
        additional_params=redact(request.additional_params),
        links={
            "vnfLcmOpOcc": {"href": f"{place}/vnf_lcm_op_occs/{operation.id}"},
            "vnfInstance": {"href": f"{place}/vnf_instances/{vnf.id}"},
        },
        **OPERATIONS[situation.operation].grant_attributes(situation, request),
    )


def difference(situation: Situation, left: Resources) -> Difference:
    """What stays and holds other ports or volumes than before is updated; so is all that another package describes.

    A kind of which the driver lists nothing can't be known before (the VIM gives ids when it makes them): what is there
    of it stays with its VNFC, also with one that is made anew, unless all that hangs on it is.
    """
    info = situation.instance.vnf.instantiated_vnf_info
    there = {one.id: one for one in _recorded(info, vim_key_of(situation.instance.vnf))} if info else {}
    then = {one.id: _definition(one.id, one.type, one.template) for one in left}
    known = {one.type for one in left}
    held = {vnfc.id: _holdings(vnfc, known) for vnfc in info.vnfc_resource_info} if info else {}
    renewal = change_in(situation).renewal
    lasting = then.keys() if renewal.everything else then.keys() | renewal.members
    staying = {id_ for id_ in there if id_ in then} | _unlisted(info, known, lasting)
    described_anew = OPERATIONS[situation.operation].vnfd_id(situation.request) is not None
    return Difference(
        add=tuple(one for id_, one in then.items() if id_ not in there),
        remove=tuple(one for id_, one in there.items() if id_ not in staying),
        update=tuple(
            there[id_]
            for id_, holdings in held.items()
            if id_ in then and (described_anew or {one.id for one in left if one.of == id_} != holdings)
        ),
    )


def _recorded(info: InstantiatedVnfInfo, vim_key: str) -> Iterator[ResourceDefinition]:
    for vnfc in info.vnfc_resource_info:
        if vnfc.slot is None:
            continue  # pods come and go without a grant for each
        yield _definition(vnfc.id, ResourceType.COMPUTE, vnfc.vdu_id, vnfc.compute_resource)
        for cp in vnfc.vnfc_cp_info:
            handle = ResourceHandle(resource_id=cp.metadata["resourceId"], vim_connection_id=vim_key)
            yield _definition(cp.id, ResourceType.LINKPORT, cp.cpd_id, handle)
    for storage in info.virtual_storage_resource_info:
        yield _definition(storage.id, ResourceType.STORAGE, storage.virtual_storage_desc_id, storage.storage_resource)
    for link in info.vnf_virtual_link_resource_info:
        yield _definition(link.id, ResourceType.VL, link.vnf_virtual_link_desc_id, link.network_resource)


def _definition(
    id_: str, kind: ResourceType, template: str, resource: ResourceHandle | None = None
) -> ResourceDefinition:
    return ResourceDefinition(id=id_, type=kind, resource_template_id=template, resource=resource)


def _holdings(vnfc: VnfcResourceInfo, kinds: Container[ResourceType]) -> set[str]:
    """The ids of its ports and volumes, as far as they are of these kinds."""
    ports = {cp.id for cp in vnfc.vnfc_cp_info} if ResourceType.LINKPORT in kinds else set[str]()
    return ports | (set(vnfc.storage_resource_ids) if ResourceType.STORAGE in kinds else set[str]())


def _unlisted(info: InstantiatedVnfInfo | None, known: set[ResourceType], lasting: Container[str]) -> set[str]:
    """What is of kinds that the driver lists nothing of, and belongs to those VNFCs."""
    staying = [vnfc for vnfc in info.vnfc_resource_info if vnfc.id in lasting] if info else []
    unknown = set(ResourceType) - known
    kept = {id_ for vnfc in staying for id_ in _holdings(vnfc, unknown)}
    if info and staying and ResourceType.VL in unknown:
        kept |= {link.id for link in info.vnf_virtual_link_resource_info}
    return kept


def _constraints(situation: Situation, change: Change) -> Iterator[PlacementConstraint]:
    """The affinity rules that something new falls under."""
    info = situation.instance.vnf.instantiated_vnf_info
    there = {vnfc.id: vnfc.compute_resource for vnfc in info.vnfc_resource_info} if info else {}
    for rule in situation.flavour.placement:
        after = change.after.members if change.after else ()
        members = [member.id for member in after if member.vdu in rule.targets]
        if len(members) > 1 and not all(member in there for member in members):
            yield PlacementConstraint(
                affinity_or_anti_affinity="ANTI_AFFINITY" if rule.apart else "AFFINITY",
                scope=rule.scope.upper(),
                resource=tuple(_constrained(member, there.get(member)) for member in members),
            )


def _constrained(id_: str, there: ResourceHandle | None) -> ConstraintResource:
    if there is None:
        return ConstraintResource(id_type=IdType.GRANT, resource_id=id_)
    return ConstraintResource(
        id_type=IdType.RES_MGMT, resource_id=there.resource_id, vim_connection_id=there.vim_connection_id
    )
