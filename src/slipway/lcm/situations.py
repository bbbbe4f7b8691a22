"""The situation that an operation begins in, and the instance that it leaves, from what is stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.lcm.grant_application import with_grant, with_granted_assets
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.record import outcomes, with_instance_patches, with_outcomes
from slipway.model.descriptor import Descriptor, Flavour
from slipway.model.errors import Unprocessable
from slipway.model.instance import Instance, VnfInstance
from slipway.model.journal import UNTOUCHED, StepRecord
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import AnyRequest
from slipway.model.situation import Situation
from slipway.store import instances, operations, packages, steps
from slipway.vim_registry.choice import vim_key_of


def stored_situation(connection: Connection, operation: Operation) -> Situation:
    """Of an operation that was accepted, as it was granted."""
    rules = OPERATIONS[operation.operation]
    instance = instances.get(connection, operation.vnf_instance_id)
    request: AnyRequest = msgspec.convert(operation.operation_params, rules.request)
    granting = operations.grant_of(connection, operation.id) if operation.grant_id else None
    if granting is None:
        return situation_of(connection, operation.operation, request, instance)
    request = with_grant(request, granting.grant, rules)
    situation = situation_of(connection, operation.operation, request, instance)
    return dataclasses.replace(situation, granting=granting)


def situation_of(
    connection: Connection, operation: OperationType, request: AnyRequest, instance: Instance
) -> Situation:
    rules, info = OPERATIONS[operation], instance.vnf.instantiated_vnf_info
    vnfd_id = rules.vnfd_id(request) or instance.vnf.vnfd_id
    descriptor, files = packages.contents(connection, vnfd_id, instance.project)
    if flavour_id := rules.flavour_id(request):
        flavour = descriptor.flavour(flavour_id)
    elif info is not None:
        flavour = _same_flavour(descriptor, info.flavour_id)
    else:
        flavour = descriptor.flavours[descriptor.default_flavour or next(iter(descriptor.flavours))]
    before, files_before = None, frozenset[str]()
    if info is not None and vnfd_id != instance.vnf.vnfd_id:
        former, files_before = packages.contents(connection, instance.vnf.vnfd_id, instance.project)
        before = former.flavours.get(info.flavour_id)
    return Situation(
        operation, request, instance, descriptor, flavour, files, flavour_before=before, files_before=files_before
    )


def _same_flavour(descriptor: Descriptor, flavour_id: str) -> Flavour:
    """What the VNF was instantiated as; another package must have it, too."""
    if flavour_id not in descriptor.flavours:
        known = ", ".join(descriptor.flavours) or "none"
        raise Unprocessable(
            f"vnfdId: the VNF has the flavour {flavour_id!r}, and the VNFD {descriptor.vnfd_id!r} only: {known}."
        )
    return descriptor.flavours[flavour_id]


def instance_after(
    connection: Connection, situation: Situation, operation: Operation, journal: Sequence[StepRecord]
) -> Instance:
    """The instance as the operation leaves it, in its present state and with what its steps did."""
    rules, instance = OPERATIONS[operation.operation], situation.instance
    left_something = any(record.state not in UNTOUCHED for record in journal)
    if operation.operation_state is State.COMPLETED or (rules.completes_partly and left_something):
        completed = with_granted_assets(rules.complete(situation, situation.request), situation)
        vnf = _with_outcomes(completed, situation, journal)
        if rules.choose_vim and (vim := operations.vim_of(connection, operation.id)):
            vnf = replace(vnf, vim_connection_info={**vnf.vim_connection_info, vim_key_of(vnf): vim})
        return replace(instance, vnf=vnf, parameters=rules.parameters(instance, situation.request))
    return replace(instance, vnf=_with_outcomes(instance.vnf, situation, journal))


def _with_outcomes(vnf: VnfInstance, situation: Situation, journal: Sequence[StepRecord]) -> VnfInstance:
    results, rules = outcomes(journal), OPERATIONS[situation.operation]
    if info := vnf.instantiated_vnf_info:
        touched = rules.change if rules.works_on_vim(situation.request) else None
        members = touched(situation, situation.request).members if touched else {}
        version = situation.instance.version
        recorded = with_outcomes(info, results, situation.flavour, vim_key_of(vnf), members, version)
        vnf = replace(vnf, instantiated_vnf_info=recorded)
    return with_instance_patches(vnf, results)


def instance_during(connection: Connection, operation_id: str, *, ahead: bool) -> VnfInstance:
    """In the middle of an operation: as it was before, or `ahead`, as it would be if the operation ended well now."""
    operation = operations.get(connection, operation_id)
    situation = stored_situation(connection, operation)
    if not ahead:
        return situation.instance.vnf
    completed = replace(operation, operation_state=State.COMPLETED)
    return instance_after(connection, situation, completed, steps.journal(connection, operation_id)).vnf
