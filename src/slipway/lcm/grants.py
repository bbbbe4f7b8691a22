"""Asks the NFVO for a grant and stores it with the operation, before anything is done with it."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.lcm.grant_application import check_grant, check_unchanged, vim_in
from slipway.lcm.grant_request import grant_request
from slipway.lcm.operations import OPERATIONS, change_in
from slipway.lcm.planning import check_operation
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.errors import RequestError
from slipway.model.grant import Grant, Granting
from slipway.model.instance import Instance, VimConnectionInfo, VnfInstance
from slipway.model.operation import Operation
from slipway.model.situation import Situation
from slipway.model.target import LoadedFiles
from slipway.nfvo.grants import Granter
from slipway.nfvo.reading import unusable
from slipway.store import instances, operations
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim.drivers import Drivers
from slipway.vim_registry.choice import choose_vim_for_new, validated_vim, vim_key_of

Granted = tuple[Operation, VimConnectionInfo | None]


class Grants:
    """`base_url` begins the links in what the NFVO is asked."""

    def __init__(
        self,
        nfvo: Granter,
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

    async def ask(
        self, operation: Operation, situation: Situation, vim: VimConnectionInfo | None, files: LoadedFiles
    ) -> Granted:
        """Ask, check and store. Returns the operation with its grant, and the VIM that it will use."""
        driver = self._drivers.for_type((vim.vim_type if vim else None) or "")
        change = change_in(situation).with_files(files)
        request = grant_request(situation, change, driver.resources(change), operation, self._base_url)
        grant = await self._nfvo.ask(request)
        check_grant(request, grant, _names_of(vim, situation.instance.vnf))
        return await self._database.write(self._keep, operation.id, Granting(request=request, grant=grant))

    def _keep(self, connection: Connection, operation_id: str, granting: Granting) -> Granted:
        """Store the grant, unless one is stored: a worker that was taken for dead may have asked as well."""
        operation = operations.lock(connection, operation_id)
        vim = operations.vim_of(connection, operation_id)
        if operation.grant_id is not None:
            return operation, vim
        instance = instances.get(connection, operation.vnf_instance_id)
        document = msgspec.to_builtins(granting.grant)
        hidden = msgspec.convert(
            self._vault.encrypt_secrets(connection, instance.vnf.id, document, self._secret_names), Grant
        )
        if OPERATIONS[operation.operation].choose_vim and (named := vim_in(hidden)):
            vim = self._other_vim(connection, named, instance, asked=vim)
        return operations.keep_grant(connection, operation, replace(granting, grant=hidden), vim), vim

    def _other_vim(
        self,
        connection: Connection,
        named: dict[str, VimConnectionInfo],
        instance: Instance,
        *,
        asked: VimConnectionInfo | None,
    ) -> VimConnectionInfo:
        try:
            vim = choose_vim_for_new(connection, named, instance.project)
            granted = validated_vim(connection, self._vault, self._drivers, vim, instance.vnf.id)
        except RequestError as error:
            raise unusable(error.detail.rstrip(".")) from None
        if asked is not None and granted.vim_type != asked.vim_type:
            raise unusable(
                f"vimConnections: the granted VIM is a {granted.vim_type}, and the grant was asked for resources of a "
                f"{asked.vim_type}"
            )
        return granted


def check_granted(
    situation: Situation, vim: VimConnectionInfo, drivers: Drivers, management: ManagementDrivers, files: LoadedFiles
) -> None:
    """Check the request again as the grant has changed it; an error is the fault of the grant."""
    try:
        check_operation(situation, vim, drivers, management)
    except RequestError as error:
        raise unusable(error.detail.rstrip(".")) from None
    driver = drivers.for_type(vim.vim_type or "")
    check_unchanged(situation, driver.resources(change_in(situation).with_files(files)))


def _names_of(vim: VimConnectionInfo | None, vnf: VnfInstance) -> set[str]:
    """The names by which a grant may refer to the VIM of a VNF."""
    return {vim_key_of(vnf), *((vim.vim_id,) if vim and vim.vim_id else ())}
