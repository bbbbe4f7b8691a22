"""Registered VIMs: named once, with credentials that nobody sees again, and used by name."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, Protocol, runtime_checkable

import msgspec
from sqlalchemy import Connection as DatabaseConnection
from sqlalchemy import select

from slipway.lcm.project_limits import ProjectLimits
from slipway.lcm.vim_choice import PARTS, registered_in_clear
from slipway.lcm.vim_names import reserved_by
from slipway.model.access import ANYBODY, DEFAULT_PROJECT, Caller
from slipway.model.action import Connection
from slipway.model.clock import utcnow
from slipway.model.errors import BadRequest, Conflict, Forbidden, NotFound, VimError, VimFault
from slipway.model.instance import VimConnectionInfo, VnfInstance
from slipway.model.merge import merge_patch
from slipway.model.requests import Name, Request, Text
from slipway.model.secrets import find_references, refuse_references
from slipway.model.vim import REGISTERED_ONLY, Seen, Vim, is_made_here
from slipway.model.vim_secrets import refuse_moved_secrets, same_address
from slipway.store import instances, tables, vims
from slipway.store.database import Database, hold_project
from slipway.store.filters import Filter, Operator
from slipway.store.paging import list_documents
from slipway.store.secrets import Vault
from slipway.store.tables import PROJECT
from slipway.vim.contract import VimDriver
from slipway.vim.registry import Drivers
from slipway.vim.simulated.driver import SimulatedDriver
from slipway.vim.simulated.rules import Rule, read_rules

LARGEST_VIM = 256 << 10  # bytes of one as JSON, secrets in clear
LONGEST_LOOK = 30.0  # seconds of a login before anything is stored
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
    """What logging in to a VIM brought. `fault` is how it said no."""

    ok: bool
    detail: str
    fault: str | None = None


@runtime_checkable
class Registering(Protocol):
    """A driver that has something to make when a VIM of its type is registered."""

    async def register(self, connection: Connection) -> None: ...


@runtime_checkable
class Looking(Protocol):
    """A driver of VIMs that are logged in to over a network."""

    async def look(self, connection: Connection) -> Seen: ...


class VimRegistry:
    def __init__(
        self,
        database: Database,
        vault: Vault,
        drivers: Drivers,
        secret_names: tuple[str, ...] = (),
        limits: ProjectLimits | None = None,
    ) -> None:
        self._database = database
        self._vault = vault
        self._drivers = drivers
        self._secret_names = secret_names
        self._limits = limits or ProjectLimits()

    async def add(self, request: VimRequest, *, prove: bool = False, by: Caller = ANYBODY) -> Vim:
        """`prove`: log in before anything is stored; VimError when that fails. `by`: who asks."""
        _check_rights(by, request.vim_type)
        project = _project_for(by, request)
        document = {name: value for name, value in msgspec.to_builtins(request).items() if name != "project"}
        refuse_references(document)
        connection = self._validated(document, project)
        if prove:
            document |= await self._seen(connection)
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

    async def modify(self, name: str, patch: dict[str, Any], *, prove: bool = False, by: Caller = ANYBODY) -> Vim:
        """A merge patch (RFC 7396) on what was registered. The type stays. `prove` and `by` as for `add`."""
        _check_rights(by, (await self.get(name)).vim_type)
        refuse_references(patch)
        seen = None
        if prove and not patch.keys().isdisjoint(("interfaceInfo", "accessInfo")):
            seen = await self._seen((await self._database.read(self._patched, name, patch))[2])
        vim = await self._database.write(self._update, name, patch, seen)
        await self._registered(vim)
        return vim

    async def remove(self, name: str, *, by: Caller = ANYBODY) -> None:
        _check_rights(by, (await self.get(name)).vim_type)
        await self._database.write(self._delete, name)

    async def enter(self, vim_id: str, request: VimRequest, maker: str) -> Vim:
        """A VIM that Slipway made itself, under an id known before: register it, or correct what is registered.

        It belongs to the project of `maker`, the instance that is this VIM.
        """
        document = msgspec.to_builtins(request)
        self._validated(document, DEFAULT_PROJECT)
        return await self._database.write(self._enter, vim_id, document, maker)

    async def renew(self, vim_id: str, access_info: dict[str, Any], extra: dict[str, Any]) -> None:
        """Another token for a VIM that Slipway made itself, and when it ends. It goes where the one before went."""
        await self._database.write(self._renew, vim_id, {"accessInfo": access_info, "extra": extra})

    async def strike(self, vim_id: str, maker: str) -> None:
        """Remove such a VIM, if it is there. The instance that made it knows it, but does not run on it."""
        await self._database.write(self._strike, vim_id, maker)

    async def check(self, name: str) -> Health:
        """Log in and look."""
        driver, connection = await self.reached(name)
        try:
            return Health(True, await driver.check(connection))
        except VimError as error:
            return Health(False, error.detail, error.fault.value)

    async def rules(self, name: str) -> tuple[Rule, ...]:
        """The faults that a simulated VIM shows."""
        driver, connection = await self._simulated(name)
        return await driver.rules(connection)

    async def set_rules(self, name: str, raw: object) -> tuple[Rule, ...]:
        """All rules anew, from plain data. BadRequest names the field that is wrong."""
        driver, connection = await self._simulated(name)
        rules = read_rules(raw)
        await driver.set_rules(connection, rules)
        return rules

    async def reached(self, name: str) -> tuple[VimDriver, Connection]:
        """The driver, and all it needs to log in, in clear."""
        vim = await self.get(name)
        return self._drivers.for_type(vim.vim_type), await self._database.read(self._in_clear, vim)

    async def _simulated(self, name: str) -> tuple[SimulatedDriver, Connection]:
        driver, connection = await self.reached(name)
        if not isinstance(driver, SimulatedDriver):
            raise Conflict(f"VIM {name!r} is a {connection.vim_type}; rules are possible for simulated VIMs only.")
        return driver, connection

    async def _seen(self, connection: Connection) -> dict[str, Any]:
        """What only a login can tell, as a part of the document."""
        driver = self._drivers.for_type(connection.vim_type)
        if not isinstance(driver, Looking):
            return {}
        try:
            async with asyncio.timeout(LONGEST_LOOK):
                return {"regions": list((await driver.look(connection)).regions)}
        except TimeoutError:
            where = connection.interface_info.get("endpoint")
            detail = f"The login to {where} took longer than {LONGEST_LOOK:g} s."
            raise VimError(detail, VimFault.TEMPORARY, cure="see that it runs and can be reached from here.") from None

    async def _registered(self, vim: Vim) -> None:
        driver = self._drivers.for_type(vim.vim_type)
        if isinstance(driver, Registering):
            await driver.register(await self._database.read(self._in_clear, vim))

    def _in_clear(self, connection: DatabaseConnection, vim: Vim) -> Connection:
        return registered_in_clear(connection, self._vault, vim)

    def _validated(self, document: dict[str, Any], project: str) -> Connection:
        """The driver's word on a document with its secrets in clear."""
        _check_size(document)
        vim_type = document["vimType"]
        connection = Connection(
            vim_type=vim_type,
            interface_info=document.get("interfaceInfo", {}),
            access_info=document.get("accessInfo", {}),
            extra=document.get("extra", {}),
            project=project,
        )
        self._drivers.for_type(vim_type).validate(connection)
        return connection

    def _add(self, connection: DatabaseConnection, document: dict[str, Any]) -> Vim:
        """The project may be full. What a cluster enters of itself is not refused: it is there already."""
        _refuse_reserved(connection, document["name"], document["project"])
        self._limits.for_one_more_vim(connection, document["project"])
        return self._insert(connection, document)

    def _insert(self, connection: DatabaseConnection, document: dict[str, Any], vim_id: str | None = None) -> Vim:
        vim = self._hidden(connection, document | {"id": vim_id or str(uuid.uuid4()), "createdAt": utcnow()})
        vims.insert(connection, vim)
        return vim

    def _enter(self, connection: DatabaseConnection, vim_id: str, document: dict[str, Any], maker: str) -> Vim:
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

    def _renew(self, connection: DatabaseConnection, vim_id: str, token: dict[str, Any]) -> None:
        vims.hold(connection, vim_id)
        before = msgspec.to_builtins(vims.get(connection, vim_id))
        vim = self._hidden(connection, merge_patch(before, token))
        vims.update(connection, vim)
        self._vault.forget_unused(connection, vim_id, msgspec.to_builtins(vim))

    def _update(
        self, connection: DatabaseConnection, name: str, patch: dict[str, Any], seen: dict[str, Any] | None
    ) -> Vim:
        found = vims.get_by_name(connection, name)
        if patch.get("name", found.name) != found.name:
            _refuse_reserved(connection, patch["name"], found.project)
        vims.hold(connection, found.id)
        before, request, _ = self._patched(connection, found.id, patch)
        fixed = {name: getattr(before, attribute) for name, attribute in NOT_CHANGEABLE.items()} | (seen or {})
        vim = self._hidden(connection, msgspec.to_builtins(request) | fixed)
        vims.update(connection, vim)
        self._vault.forget_unused(connection, vim.id, msgspec.to_builtins(vim))
        return vim

    def _patched(
        self, connection: DatabaseConnection, name: str, patch: dict[str, Any]
    ) -> tuple[Vim, VimRequest, Connection]:
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
        if not same_address(was, document) and (user := _user_with_secrets(connection, before.id)):
            raise Conflict(
                f"VNF instance {user} uses VIM {before.name!r} with credentials of its own, which were given for the "
                "addresses and certificates that the VIM has now. Register another VIM, or terminate the instance."
            )
        in_clear = self._vault.reveal(connection, [before.id], document)
        return before, request, self._validated(in_clear, before.project)

    def _hidden(self, connection: DatabaseConnection, document: dict[str, Any]) -> Vim:
        return msgspec.convert(self._vault.hide(connection, document["id"], document, self._secret_names), Vim)

    def _delete(self, connection: DatabaseConnection, name: str) -> None:
        vim = vims.get_by_name(connection, name)
        vims.hold(connection, vim.id)
        self._drop(connection, vim, None)

    def _strike(self, connection: DatabaseConnection, vim_id: str, maker: str) -> None:
        try:
            vims.hold(connection, vim_id)
        except NotFound:
            return
        self._drop(connection, vims.get(connection, vim_id), maker)

    def _drop(self, connection: DatabaseConnection, vim: Vim, maker: str | None) -> None:
        if user := _user_of(connection, vim.id, maker):
            raise Conflict(f"VIM {vim.name!r} is used by VNF instance {user}. Terminate it first.")
        vims.delete(connection, vim.id)
        self._vault.forget(connection, vim.id)


def _refuse_reserved(connection: DatabaseConnection, name: Any, project: str) -> None:
    """Conflict when a cluster that is being instantiated will have the name; nobody else takes it until then."""
    hold_project(connection, project)
    if user := reserved_by(connection, name, project):
        raise Conflict(
            f"VNF instance {user}, which is being instantiated, will be registered as {name!r}. Choose another name."
        )


def _check_size(document: dict[str, Any]) -> None:
    """All of a project's are listed at once, and each is read whenever it is used."""
    if len(msgspec.json.encode(document)) > LARGEST_VIM:
        raise BadRequest(
            f"The VIM is larger than {LARGEST_VIM >> 10} KiB in all. Give less in interfaceInfo, accessInfo, extra."
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
    """Tokens of an administrator are made for it all its life: nobody says to which address they go but the cluster."""
    changed = [part for part in PARTS if (before.get(part) or {}) != (after.get(part) or {})]
    if is_made_here(before["id"]) and changed:
        raise Conflict(
            f"VIM {before['name']!r} is a cluster that Slipway made, and keeps its {', '.join(changed)} itself. "
            "Register the address under another name if you want to reach it in another way."
        )


def _changeable(vim: Vim) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(vim)
    return {name: value for name, value in document.items() if name not in NOT_CHANGEABLE}


def _user_of(connection: DatabaseConnection, vim_id: str, maker: str | None = None) -> str | None:
    """An instance on the VIM, or with an operation under way that will put it there; other than the VIM's maker."""
    for document in list_documents(connection, tables.instances, _knowing(vim_id), limit=2).items:
        user: str = msgspec.json.decode(document, type=dict[str, Any])["id"]
        if user != maker:
            return user
    return next((user for user, _ in _coming(connection, vim_id)), None)


def _user_with_secrets(connection: DatabaseConnection, vim_id: str) -> str | None:
    """An instance that is on the VIM, or will be, with credentials of its own."""
    for document in list_documents(connection, tables.instances, _knowing(vim_id)).items:
        vnf = msgspec.json.decode(document, type=VnfInstance)
        for info in vnf.vim_connection_info.values():
            if info.vim_id == vim_id and any(find_references(msgspec.to_builtins(info))):
                return vnf.id
    coming = _coming(connection, vim_id)
    return next((user for user, info in coming if any(find_references(msgspec.to_builtins(info)))), None)


def _knowing(vim_id: str) -> tuple[Filter, ...]:
    return (Filter(Operator.EQ, ("vimConnectionInfo", "vimId"), (vim_id,)),)


def _coming(connection: DatabaseConnection, vim_id: str) -> Iterator[tuple[str, VimConnectionInfo]]:
    """Instances with an operation under way on the VIM, and how it reaches it."""
    table = tables.operations
    holding = select(table.c.instance_id, table.c.vim).where(tables.HOLDS_INSTANCE)
    for row in connection.execute(holding.where(table.c.vim.is_not(None))):
        if row.vim is not None and row.vim.vim_id == vim_id:
            yield str(row.instance_id), row.vim
