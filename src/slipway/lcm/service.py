"""What the API calls: create and delete instances, accept operations, decide on failed ones, show a plan."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol

import msgspec
from sqlalchemy import Connection

from slipway.engine import operation_control
from slipway.engine.interfaces import EngineObserver, NoObserver
from slipway.lcm.operation_handler import LcmOperationHandler
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.planning import check_operation
from slipway.lcm.situations import situation_of
from slipway.lcm.vim_moves import missing_there
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.access import DEFAULT_PROJECT
from slipway.model.action import VimConnection
from slipway.model.clock import utcnow
from slipway.model.errors import BadRequest, Conflict, PreconditionFailed, RequestError
from slipway.model.instance import Instance, InstantiationState, VimConnectionInfo, VnfInstance
from slipway.model.json_documents import bounded, merge_patch
from slipway.model.operation import CancelMode, Operation, OperationType, State
from slipway.model.plan import Plan
from slipway.model.requests import AnyRequest, CreateRequest
from slipway.model.secrets import refuse_references
from slipway.model.situation import Situation
from slipway.model.subscription import LcmNotice
from slipway.notify.outbox import notify_instance, notify_operation
from slipway.store import instances, operations, packages
from slipway.store.database import Database, hold_project
from slipway.store.secrets import Vault
from slipway.vim.drivers import Drivers
from slipway.vim_registry.choice import (
    check_inline_sizes,
    moved_connection,
    validated_vim,
    vim_key_of,
    vim_of_instance,
)
from slipway.vim_registry.cluster_users import refuse_cluster_in_work
from slipway.vim_registry.names import refuse_taken_names

P = ParamSpec("P")


class WorkerNotifier(Protocol):
    """Wakes the worker of this process, if there is one; others find the change at their next poll."""

    def wake(self) -> None: ...

    def cancel(self, operation_id: str, mode: CancelMode, /) -> None: ...


class Lcm:
    """The entry to lifecycle management: creates instances, accepts operations, and previews their plans."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        handler: LcmOperationHandler,
        drivers: Drivers,
        management: ManagementDrivers,
        *,
        notifier: WorkerNotifier | None = None,
        secret_names: tuple[str, ...] = (),
        observer: EngineObserver | None = None,
    ) -> None:
        self._database = database
        self._vault = vault
        self._handler = handler
        self._drivers = drivers
        self._management = management
        self._notifier = notifier
        self._secret_names = secret_names
        self._observer = observer or NoObserver()

    async def create_instance(self, request: CreateRequest, project: str = DEFAULT_PROJECT) -> Instance:
        refuse_references(msgspec.to_builtins(request))
        return await self._database.write(self._create, request, project)

    async def delete_instance(self, instance_id: str) -> None:
        await self._database.write(self._delete, instance_id)

    async def start_operation(
        self, kind: OperationType, instance_id: str, request: AnyRequest, *, if_version: int | None = None
    ) -> Operation:
        """Check what can be checked and store the operation; a worker does the rest."""
        _check_before_hiding(request)
        if named := await self._database.read(self._naming_template, kind, instance_id, request):
            await self._handler.check_template(*named)
        looked_at = await self._refuse_elsewhere(kind, instance_id, request)
        operation = await self._database.write(self._accept, kind, instance_id, request, if_version, looked_at)
        return self._notify_entered(operation)

    async def preview_plan(self, kind: OperationType, instance_id: str, request: AnyRequest) -> Plan:
        """The plan that the operation would run now. Nothing is changed."""
        _check_before_hiding(request)
        instance = await self._database.read(instances.get, instance_id)
        situation = await self._database.read(_new_situation, kind, request, instance)
        vim = await self._database.read(self._vim, kind, instance, request)
        check_operation(situation, vim, self._drivers, self._management, grant_follows=self.asks_nfvo)
        await self._database.read(refuse_taken_names, self._management, situation)
        await self._refuse_elsewhere(kind, instance_id, request)
        return (await self._handler.plan_for(situation, vim, grant_follows=self.asks_nfvo)).checked()

    async def drift(self, instance_id: str) -> tuple[str, ...] | None:
        return await self._handler.drift(instance_id)

    @property
    def asks_nfvo(self) -> bool:
        """Whether an operation needs a grant, which a preview does not ask for."""
        return self._handler.asks_nfvo

    async def retry(self, operation_id: str) -> Operation:
        return self._notify_entered(await self._decide(operation_control.retry, operation_id))

    async def roll_back(self, operation_id: str) -> Operation:
        return self._notify_entered(await self._decide(operation_control.roll_back, operation_id))

    async def fail(self, operation_id: str) -> Operation:
        return self._notify_entered(await self._decide(operation_control.fail, operation_id, self._handler))

    async def cancel(self, operation_id: str, mode: CancelMode) -> Operation:
        operation = await self._database.write(operation_control.cancel, operation_id, mode)
        if self._notifier:
            self._notifier.cancel(operation_id, mode)
        self._wake()
        return operation

    async def _decide(
        self, decide: Callable[Concatenate[Connection, P], Operation], *args: P.args, **kwargs: P.kwargs
    ) -> Operation:
        def decided(connection: Connection) -> Operation:
            operation = decide(connection, *args, **kwargs)
            self._handler.announce(connection, operation)
            return operation

        return await self._database.write(decided)

    def _notify_entered(self, operation: Operation) -> Operation:
        self._observer.entered(operation)
        self._wake()
        return operation

    def _wake(self) -> None:
        if self._notifier:
            self._notifier.wake()

    def _create(self, connection: Connection, request: CreateRequest, project: str) -> Instance:
        descriptor = packages.usable(connection, request.vnfd_id, hold=True, project=project)
        instance_id = str(uuid.uuid4())
        given = {"metadata": request.metadata}
        metadata = self._vault.encrypt_secrets(connection, instance_id, given, self._secret_names)["metadata"]
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
        notify_instance(connection, project, instance.vnf, LcmNotice.CREATED)
        return instance

    def _delete(self, connection: Connection, instance_id: str) -> None:
        instance = instances.hold(connection, instance_id)
        if instance.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            raise Conflict(f"VNF instance {instance_id} is instantiated; terminate it first.")
        if operations.held_by(connection, instance_id):
            raise Conflict(f"VNF instance {instance_id} has an operation under way; wait until it has ended.")
        instances.delete(connection, instance_id)
        notify_instance(connection, instance.project, instance.vnf, LcmNotice.DELETED)
        self._vault.forget(connection, instance_id)

    def _accept(
        self,
        connection: Connection,
        kind: OperationType,
        instance_id: str,
        request: AnyRequest,
        if_version: int | None,
        looked_at: VimConnection | None,
    ) -> Operation:
        instance = instances.hold(connection, instance_id)
        if if_version is not None and if_version != instance.version:
            raise PreconditionFailed(f"VNF instance {instance_id} was changed since it was read. Read it again.")
        rules = OPERATIONS[kind]
        if rules.vim_names(request):
            hold_project(connection, instance.project)  # before a VIM is held, as whoever registers one does
        request = self._with_secrets_hidden(connection, kind, instance_id, request)
        vim = self._vim(connection, kind, instance, request)
        operation = _new(kind, instance_id, msgspec.to_builtins(request))
        # First of all the one thing that only the database can decide: whether the instance is free.
        operations.accept(connection, operation, vim, instance.project)
        situation = _new_situation(connection, kind, request, instance, hold=True)
        check_operation(situation, vim, self._drivers, self._management, grant_follows=self.asks_nfvo)
        refuse_taken_names(connection, self._management, situation)
        if self._moved(connection, kind, instance, request) != looked_at:
            raise Conflict(f"What is known of the VIM of VNF instance {instance_id} was changed just now. Try again.")
        notify_operation(connection, instance.project, instance.vnf, operation)
        return operation

    async def _refuse_elsewhere(
        self, kind: OperationType, instance_id: str, request: AnyRequest
    ) -> VimConnection | None:
        """Where a request says that the VNF's VIM is from now on: Conflict unless the VNF is there.

        What is wrong with the request otherwise is said when it is accepted, in the order that it has there.
        """

        def moved(connection: Connection) -> tuple[VnfInstance, VimConnection] | None:
            try:
                instance = instances.get(connection, instance_id)
                if (reached := self._moved(connection, kind, instance, request)) is None:
                    return None
                situation = _new_situation(connection, kind, request, instance)
                vim = self._vim(connection, kind, instance, request)
                check_operation(situation, vim, self._drivers, self._management, grant_follows=self.asks_nfvo)
            except RequestError:
                return None
            return instance.vnf, reached

        if (found := await self._database.read(moved)) is None:
            return None
        vnf, reached = found
        if problem := await missing_there(self._drivers, reached, vnf):
            raise Conflict(
                f"vimConnectionInfo.{vim_key_of(vnf)}: {problem} Give what leads to the VIM that the VNF is on, or "
                "leave it out."
            )
        return reached

    def _moved(
        self, connection: Connection, kind: OperationType, instance: Instance, request: AnyRequest
    ) -> VimConnection | None:
        connections = OPERATIONS[kind].connections
        if connections is None:
            return None
        return moved_connection(connection, self._vault, instance, connections(instance.vnf, request))

    def _naming_template(
        self, connection: Connection, kind: OperationType, instance_id: str, request: AnyRequest
    ) -> tuple[Situation, VimConnectionInfo | None] | None:
        """Where a request names things of the package's template, which is read before anything is held for it.

        What is wrong with it otherwise is said when it is accepted, in the order that it has there.
        """
        if not request.additional_params:
            return None
        try:
            instance = instances.get(connection, instance_id)
            situation = _new_situation(connection, kind, request, instance)
            if not self._management.names_template(situation):
                return None
            vim = self._vim(connection, kind, instance, request)
            check_operation(situation, vim, self._drivers, self._management, grant_follows=self.asks_nfvo)
        except RequestError:
            return None
        return situation, vim

    def _with_secrets_hidden(
        self, connection: Connection, kind: OperationType, instance_id: str, request: AnyRequest
    ) -> AnyRequest:
        """The request with references where its secrets were."""
        document = self._vault.encrypt_secrets(
            connection, instance_id, msgspec.to_builtins(request), self._secret_names
        )
        try:
            hidden: AnyRequest = msgspec.convert(document, OPERATIONS[kind].request)
        except msgspec.ValidationError as error:  # a key that the caller chose, such as that of a vimConnectionInfo
            place = str(error).rpartition("`$.")[2].rstrip("`")
            raise BadRequest(f"{place}: a key there is named like a secret ('token', ...); choose another.") from None
        return hidden

    def _vim(
        self, connection: Connection, kind: OperationType, instance: Instance, request: AnyRequest
    ) -> VimConnectionInfo | None:
        rules = OPERATIONS[kind]
        if not rules.works_on_vim(request):
            # No VIM is asked; but what the VNF's machines are told goes to machines of that VIM. A former version let
            # its connection be removed, which such an operation adds again.
            instantiated = instance.vnf.instantiation_state is InstantiationState.INSTANTIATED
            return instance.vnf.vim_connection_info.get(vim_key_of(instance.vnf)) if instantiated else None
        if rules.choose_vim:
            vim = rules.choose_vim(connection, instance, request)
            refuse_cluster_in_work(connection, vim, instance.project)
            return validated_vim(connection, self._vault, self._drivers, vim, instance.vnf.id)
        if instance.vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
            return None  # the operation's own check says why it can't be
        vim = vim_of_instance(instance)
        refuse_cluster_in_work(connection, vim, instance.project)
        self._drivers.for_type(vim.vim_type or "")
        return vim


def _check_before_hiding(request: AnyRequest) -> None:
    """Checks that need the request as it came, with its secrets in it."""
    document = msgspec.to_builtins(request)
    refuse_references(document)
    check_inline_sizes(document)


def _new_situation(
    connection: Connection, kind: OperationType, request: AnyRequest, instance: Instance, hold: bool = False
) -> Situation:
    """A package may be disabled once the operation has begun, but not before."""
    rules = OPERATIONS[kind]
    rules.check_stored(connection, instance, request)
    if vnfd_id := rules.vnfd_id(request):
        packages.usable(connection, vnfd_id, hold=hold, project=instance.project)
    return situation_of(connection, kind, request, instance)


def _new(kind: OperationType, instance_id: str, params: dict[str, Any]) -> Operation:
    now, rules = utcnow(), OPERATIONS[kind]
    return Operation(
        id=str(uuid.uuid4()),
        vnf_instance_id=instance_id,
        operation=kind,
        # The standard lets a modification begin without the phase in which a grant is asked for.
        operation_state=State.STARTING if rules.change and rules.is_granted else State.PROCESSING,
        state_entered_time=now,
        start_time=now,
        is_automatic_invocation=False,
        is_cancel_pending=False,
        operation_params=params,
    )
