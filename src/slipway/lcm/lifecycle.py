"""What the engine asks for: the plan of an accepted operation, its VIM, and the records when it comes to rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection as DatabaseConnection

from slipway.lcm.change_package import parameters_after
from slipway.lcm.changes import changed_links, modifications, resource_changes
from slipway.lcm.granted import remembered, with_grant
from slipway.lcm.grants import Grants, check_granted
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.record import as_recorded, inventory, outcomes, patched, recorded_machine, with_outcomes
from slipway.lcm.vim_choice import in_clear, key_of
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.action import Connection
from slipway.model.descriptor import Descriptor, Flavour
from slipway.model.errors import Conflict, Unprocessable
from slipway.model.instance import Instance, InstantiatedVnfInfo, InstantiationState, VimConnectionInfo, VnfInstance
from slipway.model.journal import UNTOUCHED, StepRecord
from slipway.model.machine import Found, FoundMachine, Outcome
from slipway.model.operation import ENDED, Operation, OperationType, State
from slipway.model.plan import Plan
from slipway.model.requests import (
    AnyRequest,
    ChangeExtConnRequest,
    ChangePackageRequest,
    InstantiateRequest,
    ModifyRequest,
)
from slipway.model.situation import Situation
from slipway.notify.outbox import tell_of_operation
from slipway.store import instances, operations, packages, steps
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim.registry import Drivers


class RecordedLifecycle:
    def __init__(
        self,
        database: Database,
        vault: Vault,
        drivers: Drivers,
        management: ManagementDrivers,
        secret_names: tuple[str, ...] = (),
        grants: Grants | None = None,
    ) -> None:
        """`grants` None: there is no NFVO, and all is granted."""
        self._grants = grants
        self._secret_names = secret_names
        self._database = database
        self._vault = vault
        self._drivers = drivers
        self._management = management

    async def plan(self, operation: Operation, vim: VimConnectionInfo | None) -> Plan:
        situation = await self._database.read(_situation, operation)
        if self._grants and operation.grant_id is None and OPERATIONS[operation.operation].change:
            await self.plan_for(situation, vim)  # nobody is asked for what can't be planned
            operation, vim = await self._grants.ask(operation, situation, vim)
            situation = await self._database.read(_situation, operation)
        if situation.granting and vim:
            check_granted(situation, self._management, self._drivers.for_type(vim.vim_type or ""))
        return await self.plan_for(situation, vim)

    @property
    def asks_nfvo(self) -> bool:
        return self._grants is not None

    async def plan_for(self, situation: Situation, vim: VimConnectionInfo | None) -> Plan:
        """The one way to a plan, whether it is only shown or will be run."""
        rules = OPERATIONS[situation.operation]
        rules.check(situation, situation.request)
        if rules.change is None:
            return rules.hooks_only(situation, self._management)
        if vim is None:
            raise Conflict(f"VNF instance {situation.instance.vnf.id} is on no VIM.")
        connection = await self._connection(situation.instance.vnf.id, vim, situation.operation)
        driver = self._drivers.for_type(connection.vim_type)
        recorded = inventory(situation.instance.vnf.instantiated_vnf_info)
        found = as_recorded(await driver.find(connection, situation.instance.vnf.id, recorded), recorded)
        return rules.plan(dataclasses.replace(situation, found=found), driver, self._management)

    def announce(self, connection: DatabaseConnection, operation: Operation) -> None:
        instance = instances.get(connection, operation.vnf_instance_id)
        tell_of_operation(connection, instance.project, instance.vnf, operation)

    async def connection(self, operation: Operation, vim: VimConnectionInfo | None) -> Connection:
        if vim is None:
            raise Conflict(f"Operation {operation.id} has no VIM.")
        return await self._connection(operation.vnf_instance_id, vim, operation.operation)

    async def machine(self, operation: Operation, machine_id: str) -> FoundMachine | None:
        instance = await self._database.read(instances.get, operation.vnf_instance_id)
        return recorded_machine(instance.vnf.instantiated_vnf_info, machine_id)

    async def reveal(self, operation: Operation, document: Any) -> Any:
        return await self._database.read(self._vault.reveal, [operation.vnf_instance_id], document)

    def seal(self, connection: DatabaseConnection, operation: Operation, outcome: Outcome) -> Outcome:
        free = {"data": outcome.data, "instance": outcome.instance}
        hidden = self._vault.hide(connection, operation.vnf_instance_id, free, self._secret_names)
        return replace(outcome, **hidden)

    async def _connection(self, instance_id: str, vim: VimConnectionInfo, kind: OperationType) -> Connection:
        terminating = kind is OperationType.TERMINATE
        return await self._database.read(in_clear, self._vault, vim, instance_id, terminating=terminating)

    def settle(self, connection: DatabaseConnection, operation: Operation, journal: Sequence[StepRecord]) -> Operation:
        """At rest in FAILED_TEMP only the changes are told; once ended, the instance's record follows."""
        situation = _situation(connection, operation)
        before, request = situation.instance, situation.request
        vnf = _after(situation, operation, journal)
        if operation.operation_state in ENDED:
            instance = replace(before, vnf=vnf)
            if isinstance(request, InstantiateRequest) and vnf.instantiated_vnf_info is not None:
                instance = _placed(connection, instance, operation, request)
            if isinstance(request, ChangePackageRequest) and operation.operation_state is State.COMPLETED:
                instance = replace(instance, parameters=parameters_after(before, request))
            if vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
                instance = replace(instance, parameters={})
            if instance != before:
                instances.update(connection, instance)
        changes = resource_changes(before.vnf.instantiated_vnf_info, vnf.instantiated_vnf_info)
        settled = replace(operation, resource_changes=changes)
        if operation.operation_state is not State.COMPLETED:
            return settled
        if isinstance(request, ModifyRequest):
            return replace(settled, changed_info=msgspec.to_builtins(request))
        if isinstance(request, ChangeExtConnRequest):
            links = changed_links(before.vnf.instantiated_vnf_info, vnf.instantiated_vnf_info)
            return replace(settled, changed_ext_connectivity=links)
        if isinstance(request, ChangePackageRequest):
            return replace(settled, modifications_triggered_by_vnf_pkg_change=modifications(before.vnf, vnf))
        return settled


def request_of(operation: Operation) -> AnyRequest:
    request: AnyRequest = msgspec.convert(operation.operation_params, OPERATIONS[operation.operation].request)
    return request


def _situation(connection: DatabaseConnection, operation: Operation) -> Situation:
    """Of an operation that was accepted, as it was granted."""
    instance = instances.get(connection, operation.vnf_instance_id)
    granting = operations.grant_of(connection, operation.id) if operation.grant_id else None
    if granting is None:
        return situation_of(connection, operation.operation, request_of(operation), instance)
    request = with_grant(request_of(operation), granting.grant)
    situation = situation_of(connection, operation.operation, request, instance)
    return dataclasses.replace(situation, granting=granting)


def situation_of(
    connection: DatabaseConnection, operation: OperationType, request: AnyRequest, instance: Instance
) -> Situation:
    """Without what the VIM reports: enough for checks and records."""
    vnfd_id = instance.vnf.vnfd_id
    if isinstance(request, ChangePackageRequest | ModifyRequest) and isinstance(request.vnfd_id, str):
        vnfd_id = request.vnfd_id
    descriptor, files = packages.contents(connection, vnfd_id, instance.project)
    info = instance.vnf.instantiated_vnf_info
    if isinstance(request, InstantiateRequest):
        flavour = descriptor.flavour(request.flavour_id)
    elif info is not None:
        flavour = _same_flavour(descriptor, info.flavour_id)
    else:
        flavour = next(iter(descriptor.flavours.values()))
    before = None
    if info is not None and vnfd_id != instance.vnf.vnfd_id:
        former, _ = packages.contents(connection, instance.vnf.vnfd_id, instance.project)
        before = former.flavours.get(info.flavour_id)
    return Situation(operation, request, instance, descriptor, flavour, Found(), files, flavour_before=before)


def _same_flavour(descriptor: Descriptor, flavour_id: str) -> Flavour:
    """What the VNF was instantiated as; another package must have it, too."""
    if flavour_id not in descriptor.flavours:
        known = ", ".join(descriptor.flavours) or "none"
        raise Unprocessable(
            f"vnfdId: the VNF has the flavour {flavour_id!r}, and the VNFD {descriptor.vnfd_id!r} only: {known}."
        )
    return descriptor.flavours[flavour_id]


def _after(situation: Situation, operation: Operation, journal: Sequence[StepRecord]) -> VnfInstance:
    """The instance as the journal leaves it."""
    rules, vnf = OPERATIONS[operation.operation], situation.instance.vnf
    results = outcomes(journal)
    completed = operation.operation_state is State.COMPLETED
    # So that it can be terminated: what a failed instantiation made must not be left behind.
    if completed or (operation.operation is OperationType.INSTANTIATE and _left_something(journal)):
        vnf = remembered(rules.complete(situation, situation.request), situation)
    if vnf.instantiated_vnf_info is None:
        return patched(vnf, results)
    members = rules.change(situation, situation.request).members if rules.change else {}
    info: InstantiatedVnfInfo = with_outcomes(
        vnf.instantiated_vnf_info, results, situation.flavour, key_of(vnf), members, situation.instance.version
    )
    return patched(replace(vnf, instantiated_vnf_info=info), results)


def as_it_stands(connection: DatabaseConnection, operation_id: str, *, ahead: bool) -> VnfInstance:
    """In the middle of an operation: as it was before, or `ahead`, as it would be if the operation ended well now."""
    operation = operations.get(connection, operation_id)
    situation = _situation(connection, operation)
    if not ahead:
        return situation.instance.vnf
    completed = replace(operation, operation_state=State.COMPLETED)
    vnf = _after(situation, completed, steps.journal(connection, operation_id))
    if isinstance(situation.request, InstantiateRequest):
        return _placed(connection, replace(situation.instance, vnf=vnf), operation, situation.request).vnf
    return vnf


def _left_something(journal: Sequence[StepRecord]) -> bool:
    return any(record.state not in UNTOUCHED for record in journal)


def _placed(
    connection: DatabaseConnection, instance: Instance, operation: Operation, request: InstantiateRequest
) -> Instance:
    """With the VIM it is on now, and the parameters that later operations need."""
    vim = operations.vim_of(connection, operation.id)
    connections = {**instance.vnf.vim_connection_info, **({key_of(instance.vnf): vim} if vim else {})}
    return replace(
        instance, vnf=replace(instance.vnf, vim_connection_info=connections), parameters=request.additional_params
    )
