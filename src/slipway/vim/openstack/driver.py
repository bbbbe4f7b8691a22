"""The driver of OpenStack VIMs: each instance is a stack of Heat's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.model.action import Action, VimConnection
from slipway.model.errors import Unprocessable
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.target import Change, VimResource, VnfTarget
from slipway.model.vim import OPENSTACK, VimInfo
from slipway.outgoing.guard import Guard
from slipway.vim.blocking import BlockingCalls
from slipway.vim.openstack.account import account_of
from slipway.vim.openstack.actions import StackActions
from slipway.vim.openstack.base_hot import NFV, has_base_hot, package_files, refuse_base_hot
from slipway.vim.openstack.cloud import Cloud
from slipway.vim.openstack.generated_checks import refuse_generated
from slipway.vim.openstack.heat import stack_name
from slipway.vim.openstack.images import ImageActions
from slipway.vim.openstack.managed_networks import refuse_names
from slipway.vim.openstack.nfv_parameters import NOT_AN_OBJECT
from slipway.vim.openstack.session import OpenStackSessions
from slipway.vim.openstack.stack_state import found, look
from slipway.vim.openstack.stack_steps import members_of, steps_of
from slipway.vim.openstack.user_data_stack import user_data_of


class OpenStackDriver:
    vim_type = OPENSTACK

    def __init__(self, guard: Guard | None = None) -> None:
        self._sessions = OpenStackSessions(guard)
        self._calls = BlockingCalls()
        self._actions = (*StackActions(self._cloud).all, *ImageActions(self._cloud).all)

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._actions

    def validate(self, connection: VimConnection) -> None:
        account_of(connection)

    async def check(self, connection: VimConnection) -> str:
        return (await self.inspect(connection)).detail

    async def inspect(self, connection: VimConnection) -> VimInfo:
        account_of(connection)
        return await self._calls.run(connection, lambda: self._sessions.inspect(connection))

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found) -> Found:
        ports = (port for machine in inventory.machines for port in machine.ports)
        existing = [port.resource_id for port in ports if port.existing]
        state = await look(self._cloud(connection), stack_name(instance_id), existing)
        return Found() if state is None else found(state, inventory)

    def refuse(self, change: Change) -> None:
        if change.after is None:
            return
        for vdu in change.after.flavour.vdus.values():
            if vdu.container:
                raise Unprocessable(
                    f"VDU {vdu.name}: it is a container, and OpenStack runs machines; choose another VIM."
                )
        refuse_names(change.after)
        named = user_data_of(change, change.after)
        if not isinstance(change.after.parameters.get(NFV, {}), Mapping):
            raise Unprocessable(f"additionalParams.{NFV}: {NOT_AN_OBJECT}")
        if NFV in change.additional_params and NFV not in change.after.parameters and not named:
            raise Unprocessable(
                f"additionalParams.{NFV}: it is read at the instantiation and when the package changes; leave it out, "
                "or bring user data, which is given it."
            )
        if has_base_hot(change.after):
            refuse_base_hot(change.after)
        elif named:
            raise Unprocessable(
                f"additionalParams: {named.path} is user data, which is for a template of the package, and there is "
                f"none in BaseHOT/{change.after.flavour.id}; leave it out, or bring a template."
            )
        else:
            refuse_generated(change)

    def package_files(self, target: VnfTarget) -> tuple[str, ...]:
        return package_files(target)

    def resources(self, change: Change) -> tuple[VimResource, ...]:
        return members_of(change)

    def steps(self, change: Change, found: Found) -> Plan:
        return steps_of(change, found)

    def close(self) -> None:
        self._calls.close()
        self._sessions.close()

    def _cloud(self, connection: VimConnection) -> Cloud:
        return Cloud(connection, self._sessions, self._calls)
