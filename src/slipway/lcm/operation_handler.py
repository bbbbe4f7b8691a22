"""What the engine needs of LCM to run an operation: its plan, its VIM connection, and its result in the records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.lcm.affected_resources import resource_changes
from slipway.lcm.grants import Grants, check_granted
from slipway.lcm.operations import OPERATIONS, change_in
from slipway.lcm.planning import plan_hooks_only, plan_on_vim
from slipway.lcm.record import inventory, reconciled, recorded_machine, recorded_port
from slipway.lcm.situations import instance_after, stored_situation
from slipway.lcm.targets import info_of
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.action import VimConnection
from slipway.model.errors import Conflict, VimError, VimFault
from slipway.model.instance import VimConnectionInfo
from slipway.model.journal import StepRecord
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.operation import ENDED, Operation, OperationType, State
from slipway.model.package_content import PackageContent
from slipway.model.plan import Plan
from slipway.model.situation import Situation
from slipway.model.target import LoadedFiles
from slipway.notify.outbox import notify_operation
from slipway.onboarding.package_files import PackageFiles
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim.contract import HasNamespaces, ReportsDrift
from slipway.vim.drivers import Drivers
from slipway.vim_registry.choice import resolve_connection, vim_of_instance

FIND_SECONDS = 120.0  # that a VIM may take to say what it has, before an operation is planned


class LcmOperationHandler:
    """`grants` None: there is no NFVO, and all is granted."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        drivers: Drivers,
        management: ManagementDrivers,
        secret_names: tuple[str, ...] = (),
        grants: Grants | None = None,
        *,
        files: PackageFiles,
    ) -> None:
        self._database = database
        self._vault = vault
        self._drivers = drivers
        self._management = management
        self._secret_names = secret_names
        self._grants = grants
        self._files = files

    @property
    def asks_nfvo(self) -> bool:
        return self._grants is not None

    async def plan(self, operation: Operation, vim: VimConnectionInfo | None) -> Plan:
        situation = await self._database.read(stored_situation, operation)
        rules = OPERATIONS[operation.operation]
        if self._grants and operation.grant_id is None and rules.change and rules.is_granted:
            files = await self._loaded(situation, vim)
            await self.plan_for(situation, vim, files, grant_follows=True)  # what can't be planned is not asked for
            operation, vim = await self._grants.ask(operation, situation, vim, files)
            situation = await self._database.read(stored_situation, operation)
        if situation.granting is None or vim is None:
            return await self.plan_for(situation, vim)
        files = await self._loaded(situation, vim)  # anew: the grant may have changed VIM and parameters
        await asyncio.to_thread(check_granted, situation, vim, self._drivers, self._management, files)
        return await self.plan_for(situation, vim, files)

    async def plan_for(
        self,
        situation: Situation,
        vim: VimConnectionInfo | None,
        files: LoadedFiles | None = None,
        *,
        grant_follows: bool = False,
    ) -> Plan:
        """Makes every plan, whether it is only shown or will be run. `files`: what the driver looks at, if loaded."""
        rules = OPERATIONS[situation.operation]
        rules.check(situation, situation.request)
        if not rules.works_on_vim(situation.request):
            return plan_hooks_only(situation, self._management)
        if vim is None:
            raise Conflict(f"VNF instance {situation.instance.vnf.id} is on no VIM.")
        connection = await self._connection(situation.instance.vnf.id, vim, situation.operation)
        driver = self._drivers.for_type(connection.vim_type)
        vnf = situation.instance.vnf
        cure = "see that the VIM answers (slipway vim check), and begin the operation again."
        async with _within_time(vnf.id, cure):
            reported = await driver.find(connection, vnf.id, inventory(vnf.instantiated_vnf_info))
        found = reconciled(reported, vnf.instantiated_vnf_info)
        files = await self._loaded(situation, vim) if files is None else files
        namespace = driver.namespace(connection) if isinstance(driver, HasNamespaces) else None
        # Elsewhere than where requests are answered: a driver may have large templates to read.
        return await asyncio.to_thread(
            plan_on_vim,
            situation,
            found,
            driver,
            self._management,
            files,
            grant_follows=grant_follows,
            namespace=namespace,
        )

    async def check_template(self, situation: Situation, vim: VimConnectionInfo | None) -> None:
        """RequestError when the template that the package has for the VIM has not what the request names of it."""
        target = change_in(situation).with_files(await self._loaded(situation, vim)).after
        if target is not None:
            await asyncio.to_thread(self._management.check_template, situation, target)  # it may be large

    async def drift(self, instance_id: str) -> tuple[str, ...] | None:
        """What others have done to what the instance has on its VIM; None where its driver can't tell."""
        instance = await self._database.read(instances.get, instance_id)
        vim, info = vim_of_instance(instance), info_of(instance.vnf)
        connection = await self._connection(instance_id, vim, OperationType.HEAL)
        driver = self._drivers.for_type(connection.vim_type)
        if not isinstance(driver, ReportsDrift):
            return None
        async with _within_time(instance_id, "see that the VIM answers (slipway vim check), and ask again."):
            return await driver.drift(connection, instance_id, inventory(info))

    async def _loaded(self, situation: Situation, vim: VimConnectionInfo | None) -> LoadedFiles:
        """The files of packages that drivers look at when they plan, so that planning itself reads nothing."""
        driver = self._drivers.for_type((vim.vim_type if vim else None) or "")
        change, project = change_in(situation), situation.instance.project
        wanted = dict[str, set[str]]()
        for target in (change.before, change.after):
            if target:
                wanted.setdefault(target.vnfd_id, set()).update(driver.package_files(target))
        if change.after:
            wanted[change.after.vnfd_id].update(self._management.package_files(situation))
        return {vnfd_id: await self._files.load(project, vnfd_id, globs) for vnfd_id, globs in wanted.items() if globs}

    async def connection(self, operation: Operation, vim: VimConnectionInfo | None) -> VimConnection:
        if vim is None:
            raise Conflict(f"Operation {operation.id} has no VIM.")
        return await self._connection(operation.vnf_instance_id, vim, operation.operation)

    async def _connection(self, instance_id: str, vim: VimConnectionInfo, kind: OperationType) -> VimConnection:
        on_any_vim = OPERATIONS[kind].on_any_vim
        return await self._database.read(
            resolve_connection, self._vault, vim, instance_id, also_unregistered=on_any_vim
        )

    async def machine(self, operation: Operation, machine_id: str) -> FoundMachine | None:
        instance = await self._database.read(instances.get, operation.vnf_instance_id)
        return recorded_machine(instance.vnf.instantiated_vnf_info, machine_id)

    async def port(self, operation: Operation, name: str) -> FoundPort | None:
        instance = await self._database.read(instances.get, operation.vnf_instance_id)
        return recorded_port(instance.vnf.instantiated_vnf_info, name)

    async def package_file(self, operation: Operation, vnfd_id: str, path: str, digest: str) -> bytes:
        return await self._files.read_exactly(operation.vnf_instance_id, vnfd_id, path, digest)

    async def package_content(self, operation: Operation, vnfd_id: str, path: str, digest: str) -> PackageContent:
        return await self._files.content(operation.vnf_instance_id, vnfd_id, path, digest)

    async def decrypt_secrets(self, operation: Operation, document: Any) -> Any:
        return await self._database.read(self._vault.decrypt_secrets, [operation.vnf_instance_id], document)

    def encrypt_secrets(self, connection: Connection, operation: Operation, outcome: Outcome) -> Outcome:
        free = {"data": outcome.data, "instance": outcome.instance}
        hidden = self._vault.encrypt_secrets(connection, operation.vnf_instance_id, free, self._secret_names)
        return replace(outcome, **hidden)

    def announce(self, connection: Connection, operation: Operation) -> None:
        instance = instances.get(connection, operation.vnf_instance_id)
        notify_operation(connection, instance.project, instance.vnf, operation)

    def settle(self, connection: Connection, operation: Operation, journal: Sequence[StepRecord]) -> Operation:
        """In FAILED_TEMP only `resourceChanges` are updated; once the operation has ended, the instance is, too."""
        situation = stored_situation(connection, operation)
        before, after = situation.instance, instance_after(connection, situation, operation, journal)
        if operation.operation_state in ENDED and after != before:
            instances.update(connection, after)
        changes = resource_changes(before.vnf.instantiated_vnf_info, after.vnf.instantiated_vnf_info)
        settled = replace(operation, resource_changes=changes)
        if operation.operation_state is not State.COMPLETED:
            return settled
        report = OPERATIONS[operation.operation].report
        return replace(settled, **report(before.vnf, after.vnf, situation.request))


@asynccontextmanager
async def _within_time(instance_id: str, cure: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(FIND_SECONDS):
            yield
    except TimeoutError:
        raise VimError(
            f"timed out after {FIND_SECONDS:g} s waiting for the VIM to say what it has of VNF instance {instance_id}.",
            VimFault.TEMPORARY,
            cure=cure,
        ) from None
