"""Asks the NFVO for an operation and keeps its answer with it, before anything follows from the answer."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection as DatabaseConnection

from slipway.lcm.grant_request import grant_request
from slipway.lcm.granted import check_grant, check_unchanged, vim_in
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.vim_choice import checked, chosen_for_new, key_of
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.errors import RequestError
from slipway.model.grant import Grant, Granting
from slipway.model.instance import Instance, VimConnectionInfo, VnfInstance
from slipway.model.operation import Operation, OperationType
from slipway.model.situation import Situation
from slipway.model.target import Change
from slipway.nfvo.grants import GrantDesk
from slipway.nfvo.reading import unusable
from slipway.store import instances, operations
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim.contract import VimDriver
from slipway.vim.registry import Drivers

Granted = tuple[Operation, VimConnectionInfo | None]


class Grants:
    """`base_url` begins the links in what the NFVO is asked."""

    def __init__(
        self,
        nfvo: GrantDesk,
        database: Database,
        vault: Vault,
        drivers: Drivers,
        secret_names: tuple[str, ...],
        base_url: str,
    ) -> None:
        self._nfvo = nfvo
        self._database = database
        self._vault = vault
        self._drivers = drivers
        self._secret_names = secret_names
        self._base_url = base_url

    async def ask(self, operation: Operation, situation: Situation, vim: VimConnectionInfo | None) -> Granted:
        """The operation as it is now, and the VIM it is to be on."""
        driver = self._drivers.for_type((vim.vim_type if vim else None) or "")
        change = change_in(situation)
        request = grant_request(situation, change, driver.resources(change), operation, self._base_url)
        grant = await self._nfvo.ask(request)
        check_grant(request, grant, _names_of(vim, situation.instance.vnf))
        return await self._database.write(self._keep, operation.id, Granting(request=request, grant=grant))

    def _keep(self, connection: DatabaseConnection, operation_id: str, granting: Granting) -> Granted:
        """The first answer counts: a worker that was thought dead may have asked as well."""
        operation = operations.lock(connection, operation_id)
        vim = operations.vim_of(connection, operation_id)
        if operation.grant_id is not None:
            return operation, vim
        instance = instances.get(connection, operation.vnf_instance_id)
        document = msgspec.to_builtins(granting.grant)
        hidden = msgspec.convert(self._vault.hide(connection, instance.vnf.id, document, self._secret_names), Grant)
        if operation.operation is OperationType.INSTANTIATE and (named := vim_in(hidden)):
            vim = self._other_vim(connection, named, instance)
        return operations.keep_grant(connection, operation, replace(granting, grant=hidden), vim), vim

    def _other_vim(
        self, connection: DatabaseConnection, named: dict[str, VimConnectionInfo], instance: Instance
    ) -> VimConnectionInfo:
        try:
            vim = chosen_for_new(connection, named, instance.project)
            return checked(connection, self._vault, self._drivers, vim, instance.vnf.id)
        except RequestError as error:
            raise unusable(error.detail.rstrip(".")) from None


def check_granted(situation: Situation, management: ManagementDrivers, driver: VimDriver) -> None:
    """What is wrong with the request now came with the grant: it was right without."""
    try:
        OPERATIONS[situation.operation].check(situation, situation.request)
        management.check(situation)
    except RequestError as error:
        raise unusable(error.detail.rstrip(".")) from None
    check_unchanged(situation, driver.resources(change_in(situation)))


def change_in(situation: Situation) -> Change:
    change = OPERATIONS[situation.operation].change
    if change is None:
        raise ValueError(f"{situation.operation} touches no VIM, so that nobody is asked for it")
    return change(situation, situation.request)


def _names_of(vim: VimConnectionInfo | None, vnf: VnfInstance) -> set[str]:
    """What others may call the VIM of a VNF."""
    return {key_of(vnf), *((vim.vim_id,) if vim and vim.vim_id else ())}
