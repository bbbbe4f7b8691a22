"""What API, CLI and page call: make and remove instances, begin and decide operations, show a plan."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol

import msgspec
from sqlalchemy import Connection

from slipway.engine import decisions
from slipway.engine.seam import Unwatched, Watch
from slipway.lcm.clusters import refuse_taken_names
from slipway.lcm.lifecycle import RecordedLifecycle, situation_of
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.unsupported import refuse_other_vims
from slipway.lcm.vim_choice import check_named, checked, chosen_before, chosen_for_new
from slipway.lcm.vim_names import name_in
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.access import DEFAULT_PROJECT
from slipway.model.clock import utcnow
from slipway.model.errors import BadRequest, Conflict, PreconditionFailed
from slipway.model.instance import Instance, InstantiationState, VimConnectionInfo, VnfInstance
from slipway.model.merge import bounded, merge_patch
from slipway.model.operation import CancelMode, Operation, OperationType, State
from slipway.model.plan import Plan
from slipway.model.requests import AnyRequest, ChangePackageRequest, CreateRequest, InstantiateRequest, ModifyRequest
from slipway.model.secrets import refuse_references
from slipway.model.situation import Situation
from slipway.model.subscription import LcmNotice
from slipway.notify.outbox import tell_of_instance, tell_of_operation
from slipway.store import instances, operations, packages
from slipway.store.database import Database, hold_project
from slipway.store.secrets import Vault
from slipway.vim.registry import Drivers

P = ParamSpec("P")


class Bell(Protocol):
    """A worker in this process, if there is one: told at once what others find at their next poll."""

    def wake(self) -> None: ...

    def cancel(self, operation_id: str, mode: CancelMode, /) -> None: ...


class Lcm:
    def __init__(
        self,
        database: Database,
        vault: Vault,
        lifecycle: RecordedLifecycle,
        drivers: Drivers,
        management: ManagementDrivers,
        *,
        bell: Bell | None = None,
        secret_names: tuple[str, ...] = (),
        watch: Watch | None = None,
    ) -> None:
        self._database = database
        self._vault = vault
        self._lifecycle = lifecycle
        self._drivers = drivers
        self._management = management
        self._bell = bell
        self._secret_names = secret_names
        self._watch = watch or Unwatched()

    async def create(self, request: CreateRequest, project: str = DEFAULT_PROJECT) -> Instance:
        refuse_references(msgspec.to_builtins(request))
        return await self._database.write(self._create, request, project)

    async def delete(self, instance_id: str) -> None:
        await self._database.write(self._delete, instance_id)

    async def begin(
        self, kind: OperationType, instance_id: str, request: AnyRequest, *, if_version: int | None = None
    ) -> Operation:
        """Check what can be checked and store the operation; a worker does the rest."""
        refuse_references(msgspec.to_builtins(request))
        operation = await self._database.write(self._accept, kind, instance_id, request, if_version)
        return self._entered(operation)

    async def preview(self, kind: OperationType, instance_id: str, request: AnyRequest) -> Plan:
        """The plan that the operation would run now. Nothing is changed."""
        refuse_references(msgspec.to_builtins(request))
        instance = await self._database.read(instances.get, instance_id)
        situation = await self._database.read(_new_situation, kind, request, instance)
        await self._database.read(refuse_taken_names, self._management, situation)
        vim = await self._database.read(self._vim, kind, instance, request)
        refuse_other_vims(request, instance.vnf, vim)
        return (await self._lifecycle.plan_for(situation, vim)).checked()

    @property
    def asks_nfvo(self) -> bool:
        """Whether an operation needs a grant, which a preview does not ask for."""
        return self._lifecycle.asks_nfvo

    async def retry(self, operation_id: str) -> Operation:
        return self._entered(await self._decide(decisions.retry, operation_id))

    async def roll_back(self, operation_id: str) -> Operation:
        return self._entered(await self._decide(decisions.roll_back, operation_id))

    async def fail(self, operation_id: str) -> Operation:
        return self._entered(await self._decide(decisions.fail, operation_id, self._lifecycle))

    async def cancel(self, operation_id: str, mode: CancelMode) -> Operation:
        operation = await self._database.write(decisions.cancel, operation_id, mode)
        if self._bell:
            self._bell.cancel(operation_id, mode)
        self._wake()
        return operation

    async def _decide(
        self, decide: Callable[Concatenate[Connection, P], Operation], *args: P.args, **kwargs: P.kwargs
    ) -> Operation:
        def decided(connection: Connection) -> Operation:
            operation = decide(connection, *args, **kwargs)
            self._lifecycle.announce(connection, operation)
            return operation

        return await self._database.write(decided)

    def _entered(self, operation: Operation) -> Operation:
        self._watch.entered(operation)
        self._wake()
        return operation

    def _wake(self) -> None:
        if self._bell:
            self._bell.wake()

    def _create(self, connection: Connection, request: CreateRequest, project: str) -> Instance:
        descriptor = packages.usable(connection, request.vnfd_id, hold=True, project=project)
        instance_id = str(uuid.uuid4())
        given = {"metadata": request.metadata}
        metadata = self._vault.hide(connection, instance_id, given, self._secret_names)["metadata"]
        instance = Instance(
            vnf=VnfInstance(
                id=instance_id,
                vnf_instance_name=request.vnf_instance_name,
                vnf_instance_description=request.vnf_instance_description,
                vnfd_id=request.vnfd_id,
                vnf_provider=descriptor.provider,
                vnf_product_name=descriptor.product_name,
                vnf_software_version=descriptor.software_version,
                vnfd_version=descriptor.vnfd_version,
                vnf_configurable_properties=descriptor.configurable_properties,
                instantiation_state=InstantiationState.NOT_INSTANTIATED,
                metadata=bounded(merge_patch({}, metadata), "metadata"),
            ),
            project=project,
            created_at=utcnow(),
        )
        instances.insert(connection, instance)
        tell_of_instance(connection, project, instance.vnf, LcmNotice.CREATED)
        return instance

    def _delete(self, connection: Connection, instance_id: str) -> None:
        instance = instances.hold(connection, instance_id)
        if instance.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            raise Conflict(f"VNF instance {instance_id} is instantiated; terminate it first.")
        if operations.held_by(connection, instance_id):
            raise Conflict(f"VNF instance {instance_id} has an operation under way; wait until it has ended.")
        instances.delete(connection, instance_id)
        tell_of_instance(connection, instance.project, instance.vnf, LcmNotice.DELETED)
        self._vault.forget(connection, instance_id)

    def _accept(
        self,
        connection: Connection,
        kind: OperationType,
        instance_id: str,
        request: AnyRequest,
        if_version: int | None,
    ) -> Operation:
        instance = instances.hold(connection, instance_id)
        if if_version is not None and if_version != instance.version:
            raise PreconditionFailed(f"VNF instance {instance_id} was changed since it was read. Read it again.")
        if isinstance(request, InstantiateRequest) and name_in(request.additional_params):
            hold_project(connection, instance.project)  # before a VIM is held, as whoever registers one does
        request = self._hidden(connection, kind, instance_id, request)
        vim = self._vim(connection, kind, instance, request)
        operation = _new(kind, instance_id, msgspec.to_builtins(request))
        # First of all the one thing that only the database can decide: whether the instance is free.
        operations.accept(connection, operation, vim, instance.project)
        situation = _new_situation(connection, kind, request, instance, hold=True)
        rules = OPERATIONS[kind]
        rules.check(situation, request)
        refuse_other_vims(request, instance.vnf, vim)
        self._management.check(situation)
        if vim is not None and rules.change is not None:
            self._drivers.for_type(vim.vim_type or "").refuse(rules.change(situation, request))
        refuse_taken_names(connection, self._management, situation)
        tell_of_operation(connection, instance.project, instance.vnf, operation)
        return operation

    def _hidden(self, connection: Connection, kind: OperationType, instance_id: str, request: AnyRequest) -> AnyRequest:
        """The request with references where its secrets were."""
        document = self._vault.hide(connection, instance_id, msgspec.to_builtins(request), self._secret_names)
        try:
            hidden: AnyRequest = msgspec.convert(document, OPERATIONS[kind].request)
        except msgspec.ValidationError as error:  # a key that the caller chose, such as that of a vimConnectionInfo
            place = str(error).rpartition("`$.")[2].rstrip("`")
            raise BadRequest(f"{place}: a key there is named like a secret ('token', ...); choose another.") from None
        return hidden

    def _vim(
        self, connection: Connection, kind: OperationType, instance: Instance, request: AnyRequest
    ) -> VimConnectionInfo | None:
        if kind is OperationType.MODIFY_INFO:
            return None
        if isinstance(request, InstantiateRequest):
            vim = chosen_for_new(connection, request.vim_connection_info, instance.project)
            return checked(connection, self._vault, self._drivers, vim, instance.vnf.id)
        if instance.vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
            return None  # the operation's own check says why it can't be
        vim = chosen_before(instance)
        self._drivers.for_type(vim.vim_type or "")
        return vim


def _new_situation(
    connection: Connection, kind: OperationType, request: AnyRequest, instance: Instance, hold: bool = False
) -> Situation:
    """A package may be disabled once the operation has begun, but not before."""
    if isinstance(request, ModifyRequest):
        check_named(connection, request.vim_connection_info, instance)
    if isinstance(request, ChangePackageRequest | ModifyRequest) and isinstance(request.vnfd_id, str):
        packages.usable(connection, request.vnfd_id, hold=hold, project=instance.project)
    return situation_of(connection, kind, request, instance)


def _new(kind: OperationType, instance_id: str, params: dict[str, Any]) -> Operation:
    now = utcnow()
    return Operation(
        id=str(uuid.uuid4()),
        vnf_instance_id=instance_id,
        operation=kind,
        # The standard lets a modification begin without the phase in which a grant is asked for.
        operation_state=State.PROCESSING if kind is OperationType.MODIFY_INFO else State.STARTING,
        state_entered_time=now,
        start_time=now,
        is_automatic_invocation=False,
        is_cancel_pending=False,
        operation_params=params,
    )
