"""Registered VIMs: add, modify, remove, check. Credentials are stored encrypted and never shown."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Annotated, Any

import msgspec
from sqlalchemy import Connection

from slipway.model.access import ADMIN_OF_ALL, DEFAULT_PROJECT, Caller
from slipway.model.action import VimConnection
from slipway.model.clock import utcnow
from slipway.model.errors import BadRequest, Conflict, Forbidden, NotFound, VimError, VimFault
from slipway.model.instance import VnfInstance
from slipway.model.json_documents import merge_patch
from slipway.model.requests import Name, Request, Text
from slipway.model.secrets import refuse_references
from slipway.model.vim import REGISTERED_ONLY, Vim, is_made_here
from slipway.model.vim_secrets import refuse_moved_secrets, same_address, same_place
from slipway.store import instances, vims
from slipway.store.database import Database, hold_project
from slipway.store.project_limits import ProjectLimits
from slipway.store.secrets import Vault
from slipway.store.tables import PROJECT
from slipway.vim.contract import InjectsFaults, InspectsVim, PreparesVim, VimDriver
from slipway.vim.drivers import Drivers
from slipway.vim.fault_rules import Rule, read_rules
from slipway.vim_registry.choice import PARTS, check_size, resolve_registered
from slipway.vim_registry.names import reserved_by
from slipway.vim_registry.users import instantiating_user, moved_users, user_of, user_with_secrets

MissingThere = Callable[[VimConnection, VnfInstance], Awaitable[str | None]]
Moved = list[tuple[VnfInstance, VimConnection]]  # instances, and how they would reach their VIM

MOST_LOOKED_AT = 3  # instances on a VIM whose description changes: they are in one place, as a rule
LONGEST_LOGIN = 30.0  # seconds of a login before anything is stored
NOT_CHANGEABLE = {"id": "id", "project": "project", "createdAt": "created_at", "regions": "regions"}


class VimRequest(Request, frozen=True, kw_only=True):
    name: Name
    vim_type: Name
    description: Text | None = None
    is_default: bool = False
    interface_info: dict[str, Any] = msgspec.field(default_factory=dict)
    access_info: dict[str, Any] = msgspec.field(default_factory=dict)
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class NewVim(VimRequest, frozen=True, kw_only=True):
    """`project` is whose it will be. Without it that is the project of whoever registers it."""

    project: Annotated[str, msgspec.Meta(min_length=1, max_length=PROJECT)] | None = None


class Health(msgspec.Struct, frozen=True):
    """Whether a login to a VIM works. `fault` is the kind of failure."""

    ok: bool
    detail: str
    fault: str | None = None


class VimRegistry:
    def __init__(
        self,
        database: Database,
        vault: Vault,
        drivers: Drivers,
        missing_there: MissingThere,
        secret_names: tuple[str, ...] = (),
        limits: ProjectLimits | None = None,
    ) -> None:
        """`missing_there`: why a VNF is not known to be where a connection leads; None when it is."""
        self._database = database
        self._vault = vault
        self._drivers = drivers
        self._missing_there = missing_there
        self._secret_names = secret_names
        self._limits = limits or ProjectLimits()

    async def add(self, request: VimRequest, *, prove: bool = False, by: Caller = ADMIN_OF_ALL) -> Vim:
        """`prove`: log in before anything is stored; VimError when that fails. `by`: who asks."""
        _check_rights(by, request.vim_type)
        project = _project_for(by, request)
        document = {name: value for name, value in msgspec.to_builtins(request).items() if name != "project"}
        refuse_references(document)
        connection = self._validated(document, project)
        if prove:
            document |= await self._inspected(connection)
        vim = await self._database.write(self._add, document | {"project": project})
        try:
            await self._registered(vim)
        except BaseException:
            await self._database.write(self._delete, vim.id)
            raise
        return vim

    async def get(self, name: str, project: str | None = None) -> Vim:
        """By id or name, in a project or in all."""
        return await self._database.read(vims.get_by_name, name, project)

    async def all(self, *, vim_id: str | None = None, name: str | None = None, project: str | None = None) -> list[Vim]:
        """Those with exactly this id and this name, where one is given, of a project or of all."""
        return await self._database.read(vims.matching, vim_id, name, project)

    async def modify(self, name: str, patch: dict[str, Any], *, prove: bool = False, by: Caller = ADMIN_OF_ALL) -> Vim:
        """A merge patch (RFC 7396) on what was registered. The type stays. `prove` and `by` as for `add`.

        Conflict when it would lead elsewhere, and VNFs that run on the VIM are not there.
        """
        _check_rights(by, (await self.get(name)).vim_type)
        refuse_references(patch)
        seen = None
        if prove and not patch.keys().isdisjoint(("interfaceInfo", "accessInfo")):
            seen = await self._inspected((await self._database.read(self._patched, name, patch))[2])
        looked_at = await self._refuse_elsewhere(name, patch)
        vim = await self._database.write(self._update, name, patch, seen, looked_at)
        await self._registered(vim)
        return vim

    async def remove(self, name: str, *, by: Caller = ADMIN_OF_ALL) -> None:
        _check_rights(by, (await self.get(name)).vim_type)
        await self._database.write(self._delete, name)

    async def register_cluster(self, vim_id: str, request: VimRequest, maker: str) -> Vim:
        """A VIM that Slipway made itself, under an id known before: register it, or correct what is registered.

        It belongs to the project of `maker`, the instance that is this VIM.
        """
        document = msgspec.to_builtins(request)
        self._validated(document, DEFAULT_PROJECT)
        return await self._database.write(self._register_cluster, vim_id, document, maker)

    async def renew(self, vim_id: str, access_info: dict[str, Any], extra: dict[str, Any]) -> None:
        """Another token for a VIM that Slipway made itself, and when it ends. It goes where the one before went."""
        await self._database.write(self._renew, vim_id, {"accessInfo": access_info, "extra": extra})

    async def unregister_cluster(self, vim_id: str, maker: str) -> None:
        """Remove such a VIM, if it is there. The instance that made it knows it, but does not run on it."""
        await self._database.write(self._unregister_cluster, vim_id, maker)

    async def check(self, name: str) -> Health:
        """Log in, and report whether it works."""
        driver, connection = await self.driver_and_connection(name)
        try:
            return Health(True, await driver.check(connection))
        except VimError as error:
            return Health(False, error.detail, error.fault.value)

    async def rules(self, name: str) -> tuple[Rule, ...]:
        """The faults that a simulated VIM shows."""
        driver, connection = await self._with_faults(name)
        return await driver.rules(connection)

    async def set_rules(self, name: str, raw: object) -> tuple[Rule, ...]:
        """All rules anew, from plain data. BadRequest names the field that is wrong."""
        driver, connection = await self._with_faults(name)
        rules = read_rules(raw)
        await driver.set_rules(connection, rules)
        return rules

    async def driver_and_connection(self, name: str) -> tuple[VimDriver, VimConnection]:
        """The driver, and all it needs to log in, in clear."""
        vim = await self.get(name)
        return self._drivers.for_type(vim.vim_type), await self._database.read(self._in_clear, vim)

    async def _with_faults(self, name: str) -> tuple[InjectsFaults, VimConnection]:
        driver, connection = await self.driver_and_connection(name)
        if not isinstance(driver, InjectsFaults):
            raise Conflict(f"VIM {name!r} is a {connection.vim_type}; only simulated VIMs have fault rules.")
        return driver, connection

    async def _inspected(self, connection: VimConnection) -> dict[str, Any]:
        """What only a login can tell, as a part of the document."""
        driver = self._drivers.for_type(connection.vim_type)
        if not isinstance(driver, InspectsVim):
            return {}
        try:
            async with asyncio.timeout(LONGEST_LOGIN):
                return {"regions": list((await driver.inspect(connection)).regions)}
        except TimeoutError:
            where = connection.interface_info.get("endpoint")
            detail = f"The login to {where} took longer than {LONGEST_LOGIN:g} s."
            raise VimError(detail, VimFault.TEMPORARY, cure="see that it runs and can be reached from here.") from None

    async def _refuse_elsewhere(self, name: str, patch: dict[str, Any]) -> Moved:
        def read(connection: Connection) -> tuple[str, Moved]:
            before, request, reached = self._patched(connection, name, patch)
            return before.name, self._moved(connection, before, request, reached)

        called, moved = await self._database.read(read)
        problems = await asyncio.gather(*(self._missing_there(reached, vnf) for vnf, reached in moved))
        for problem in filter(None, problems):
            raise Conflict(
                f"VIM {called!r} is in use, and would lead elsewhere: {problem} Give what leads to the same resources "
                "as before, or register what is elsewhere as another VIM."
            )
        return moved

    async def _registered(self, vim: Vim) -> None:
        driver = self._drivers.for_type(vim.vim_type)
        if isinstance(driver, PreparesVim):
            await driver.register(await self._database.read(self._in_clear, vim))

    def _in_clear(self, connection: Connection, vim: Vim) -> VimConnection:
        return resolve_registered(connection, self._vault, vim)

    def _validated(self, document: dict[str, Any], project: str) -> VimConnection:
        """The connection that a document describes, validated by its driver. Secrets are in clear."""
        check_size(document, "The VIM")
        vim_type = document["vimType"]
        connection = VimConnection(
            vim_type=vim_type,
            interface_info=document.get("interfaceInfo", {}),
            access_info=document.get("accessInfo", {}),
            extra=document.get("extra", {}),
            project=project,
        )
        self._drivers.for_type(vim_type).validate(connection)
        return connection

    def _add(self, connection: Connection, document: dict[str, Any]) -> Vim:
        """The project may be full. What a cluster enters of itself is not refused: it is there already."""
        _refuse_reserved(connection, document["name"], document["project"])
        self._limits.for_one_more_vim(connection, document["project"])
        return self._insert(connection, document)

    def _insert(self, connection: Connection, document: dict[str, Any], vim_id: str | None = None) -> Vim:
        vim = self._hidden(connection, document | {"id": vim_id or str(uuid.uuid4()), "createdAt": utcnow()})
        vims.insert(connection, vim)
        return vim

    def _register_cluster(self, connection: Connection, vim_id: str, document: dict[str, Any], maker: str) -> Vim:
        document |= {"project": instances.get(connection, maker).project}
        try:
            vims.hold(connection, vim_id)
        except NotFound:
            return self._insert(connection, document, vim_id)
        before = vims.get(connection, vim_id)
        vim = self._hidden(connection, document | {"id": vim_id, "createdAt": before.created_at})
        vims.update(connection, vim)
        self._vault.forget_unused(connection, vim_id, msgspec.to_builtins(vim))
        return vim

    def _renew(self, connection: Connection, vim_id: str, token: dict[str, Any]) -> None:
        vims.hold(connection, vim_id)
        before = msgspec.to_builtins(vims.get(connection, vim_id))
        vim = self._hidden(connection, merge_patch(before, token))
        vims.update(connection, vim)
        self._vault.forget_unused(connection, vim_id, msgspec.to_builtins(vim))

    def _update(
        self, connection: Connection, name: str, patch: dict[str, Any], seen: dict[str, Any] | None, looked_at: Moved
    ) -> Vim:
        found = vims.get_by_name(connection, name)
        if patch.get("name", found.name) != found.name:
            _refuse_reserved(connection, patch["name"], found.project)
        vims.hold(connection, found.id)
        before, request, reached = self._patched(connection, found.id, patch)
        if _places(self._moved(connection, before, request, reached)) != _places(looked_at):
            raise Conflict(f"VNF instances on VIM {found.name!r} were changed just now. Try again.")
        fixed = {name: getattr(before, attribute) for name, attribute in NOT_CHANGEABLE.items()} | (seen or {})
        vim = self._hidden(connection, msgspec.to_builtins(request) | fixed)
        vims.update(connection, vim)
        self._vault.forget_unused(connection, vim.id, msgspec.to_builtins(vim))
        return vim

    def _patched(
        self, connection: Connection, name: str, patch: dict[str, Any]
    ) -> tuple[Vim, VimRequest, VimConnection]:
        """The VIM before, what it would be, and how it would be reached, in clear."""
        before = vims.get_by_name(connection, name)
        document = merge_patch(_changeable(before), patch)
        try:
            request = msgspec.convert(document, VimRequest)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The VIM would not be valid: {error}.") from None
        if request.vim_type != before.vim_type:
            raise BadRequest(f"vimType: a {before.vim_type} stays one; register another VIM instead.")
        was = msgspec.to_builtins(before)
        _refuse_change_of_cluster(was, document)
        refuse_moved_secrets(was, document)
        if not same_address(was, document) and (user := user_with_secrets(connection, before)):
            raise Conflict(
                f"VNF instance {user} uses VIM {before.name!r} with credentials of its own, which were given for the "
                "addresses, certificates and project that the VIM has now. Register another VIM, or terminate the "
                "instance."
            )
        resolve_connection = self._vault.decrypt_secrets(connection, [before.id], document)
        return before, request, self._validated(resolve_connection, before.project)

    def _moved(self, connection: Connection, before: Vim, request: VimRequest, reached: VimConnection) -> Moved:
        """The first of the instances on a VIM that would be reached elsewhere."""
        if same_place(self._in_clear(connection, before), reached):
            return []
        if user := instantiating_user(connection, before):
            raise Conflict(
                f"VNF instance {user} is being instantiated on VIM {before.name!r}, which would lead elsewhere. Wait "
                "until that has ended, or end it by retry, rollback or fail."
            )
        changed = msgspec.structs.replace(
            before, interface_info=request.interface_info, access_info=request.access_info, extra=request.extra
        )
        return list(islice(moved_users(connection, self._vault, before, changed), MOST_LOOKED_AT))

    def _hidden(self, connection: Connection, document: dict[str, Any]) -> Vim:
        return msgspec.convert(
            self._vault.encrypt_secrets(connection, document["id"], document, self._secret_names), Vim
        )

    def _delete(self, connection: Connection, name: str) -> None:
        vim = vims.get_by_name(connection, name)
        vims.hold(connection, vim.id)
        self._drop(connection, vim, None)

    def _unregister_cluster(self, connection: Connection, vim_id: str, maker: str) -> None:
        try:
            vims.hold(connection, vim_id)
        except NotFound:
            return
        self._drop(connection, vims.get(connection, vim_id), maker)

    def _drop(self, connection: Connection, vim: Vim, maker: str | None) -> None:
        if user := user_of(connection, vim, maker):
            raise Conflict(f"VIM {vim.name!r} is used by VNF instance {user}. Terminate it first.")
        vims.delete(connection, vim.id)
        self._vault.forget(connection, vim.id)


def _places(moved: Iterable[tuple[VnfInstance, VimConnection]]) -> list[tuple[str, VimConnection]]:
    return [(vnf.id, reached) for vnf, reached in moved]


def _refuse_reserved(connection: Connection, name: Any, project: str) -> None:
    """Conflict when a cluster that is being instantiated will have the name; the name is reserved until then."""
    hold_project(connection, project)
    if user := reserved_by(connection, name, project):
        raise Conflict(
            f"VNF instance {user}, which is being instantiated, will be registered as {name!r}. Choose another name."
        )


def _check_rights(by: Caller, vim_type: str) -> None:
    if vim_type in REGISTERED_ONLY and not by.is_admin_of_all:
        raise Forbidden(
            f"vimType: a {vim_type} gives wide rights on Slipway's own host, so only an admin of all projects may "
            "register, change and remove it. Ask one for: slipway vim add NAME --type sandbox --project PROJECT."
        )


def _project_for(by: Caller, request: VimRequest) -> str:
    project = request.project if isinstance(request, NewVim) else None
    if project not in (None, by.home) and not by.is_admin_of_all:
        raise Forbidden(f"project: only an admin of all projects registers a VIM for another than {by.home!r}.")
    return project or by.home


def _refuse_change_of_cluster(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Tokens of an administrator are made for it all its life: only the cluster says to which address they go."""
    changed = [part for part in PARTS if (before.get(part) or {}) != (after.get(part) or {})]
    if is_made_here(before["id"]) and changed:
        raise Conflict(
            f"VIM {before['name']!r} is a cluster that Slipway made, and keeps its {', '.join(changed)} itself. "
            "Register the address under another name if you want to reach it in another way."
        )


def _changeable(vim: Vim) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(vim)
    return {name: value for name, value in document.items() if name not in NOT_CHANGEABLE}
