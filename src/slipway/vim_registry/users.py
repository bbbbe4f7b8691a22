"""Who uses a registered VIM. Instances use VIMs of their own project only, so no other is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, select

from slipway.model.action import VimConnection
from slipway.model.instance import VimConnectionInfo, VnfInstance
from slipway.model.secrets import find_references
from slipway.model.vim import Vim
from slipway.model.vim_secrets import same_place
from slipway.store import instances, tables
from slipway.store.filter_sql import condition
from slipway.store.filters import Filter, Operator
from slipway.store.resources import RESOURCES
from slipway.store.secrets import Vault
from slipway.vim_registry.choice import resolve_connection, vim_key_of

MOST_SHOWN = 10


def user_of(connection: Connection, vim: Vim, maker: str | None = None) -> str | None:
    """An instance on the VIM, or with an operation under way that will put it there; other than the VIM's maker."""
    on_it = _on_vim(connection, vim, tables.instances.c.id).where(tables.instances.c.id != (maker or ""))
    user: str | None = connection.scalar(on_it.limit(1))
    return user or next((coming for coming, _ in _coming(connection, vim)), None)


def users_of(connection: Connection, vim: Vim, maker: str) -> list[str]:
    """All of them, for a person: name and id, the first MOST_SHOWN."""
    named = _on_vim(connection, vim, tables.instances.c.doc).where(tables.instances.c.id != maker)
    users = {vnf.id: vnf.vnf_instance_name for vnf in connection.scalars(named.limit(MOST_SHOWN + 1))}
    users |= {coming: users.get(coming) for coming, _ in _coming(connection, vim) if coming != maker}
    shown = [f"{name} ({user})" if name else user for user, name in users.items()]
    return [*shown[:MOST_SHOWN], *(["..."] if len(shown) > MOST_SHOWN else [])]


def user_with_secrets(connection: Connection, vim: Vim) -> str | None:
    """An instance that is on the VIM, or will be, with credentials of its own."""
    vnf: VnfInstance
    for vnf in connection.scalars(_on_vim(connection, vim, tables.instances.c.doc)):
        if any(info.vim_id == vim.id and _has_secrets(info) for info in vnf.vim_connection_info.values()):
            return vnf.id
    return next((user for user, info in _coming(connection, vim) if _has_secrets(info)), None)


def moved_users(
    connection: Connection, vault: Vault, vim: Vim, changed: Vim
) -> Iterator[tuple[VnfInstance, VimConnection]]:
    """Instances that the changed description leads away from where they are, and how they would reach the VIM."""
    on_it = _on_vim(connection, vim, tables.instances.c.id).order_by(tables.instances.c.id)
    for instance_id in connection.scalars(on_it).all():
        vnf = instances.get(connection, instance_id).vnf
        info = vnf.vim_connection_info.get(vim_key_of(vnf))
        if info is not None and info.vim_id == vim.id and vnf.instantiated_vnf_info is not None:
            was = resolve_connection(connection, vault, info, instance_id)
            reached = resolve_connection(connection, vault, info, instance_id, changed=changed)
            if not same_place(was, reached):
                yield vnf, reached


def instantiating_user(connection: Connection, vim: Vim) -> str | None:
    """An instance that is being made there: what it has so far is not in its record."""
    coming = (user for user, _ in _coming(connection, vim))
    return next((user for user in coming if instances.get(connection, user).vnf.instantiated_vnf_info is None), None)


def _on_vim(connection: Connection, vim: Vim, column: ColumnElement[Any]) -> Select[Any]:
    named = Filter(Operator.EQ, ("vimConnectionInfo", "vimId"), (vim.id,))
    fits = condition(RESOURCES[tables.instances.name], [named], connection.dialect)
    query = select(column).where(tables.instances.c.project == vim.project)
    return query if fits is None else query.where(fits)


def _coming(connection: Connection, vim: Vim) -> Iterator[tuple[str, VimConnectionInfo]]:
    """Instances with an operation under way on the VIM, and how it reaches it."""
    table = tables.operations
    holding = select(table.c.instance_id, table.c.vim).where(tables.HOLDS_INSTANCE, table.c.project == vim.project)
    for row in connection.execute(holding.where(table.c.vim.is_not(None))):
        if row.vim is not None and row.vim.vim_id == vim.id:
            yield str(row.instance_id), row.vim


def _has_secrets(info: VimConnectionInfo) -> bool:
    return any(find_references(msgspec.to_builtins(info)))
