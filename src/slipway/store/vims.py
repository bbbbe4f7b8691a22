"""Registered VIMs. At most one of a project is the default; an index holds that, whoever writes at the same time."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, Select, bindparam, func, select
from sqlalchemy.exc import IntegrityError

from slipway.model.access import DEFAULT_PROJECT
from slipway.model.errors import Conflict, NotFound
from slipway.model.vim import Vim
from slipway.store.tables import vims

_DEFAULT = select(vims.c.doc).where(vims.c.is_default, vims.c.project == bindparam("of"))
_HELD = select(vims.c.id).where(vims.c.id == bindparam("wanted")).with_for_update()


def insert(connection: Connection, vim: Vim) -> None:
    _make_way(connection, vim)
    try:
        with connection.begin_nested():
            row = {"id": vim.id, "project": vim.project, "created_at": vim.created_at.timestamp()}
            connection.execute(vims.insert().values(**row, **_changeable(vim)))
    except IntegrityError:
        raise _taken(connection, vim) from None


def get(connection: Connection, vim_id: str, project: str | None = None) -> Vim:
    """Of a project, or of any."""
    vim: Vim | None = connection.scalar(_within(project, select(vims.c.doc).where(vims.c.id == vim_id)))
    if vim is None:
        raise NotFound(f"There is no VIM {vim_id}.")
    return vim


def get_by_name(connection: Connection, name_or_id: str, project: str | None = None) -> Vim:
    """Of a project, or of any. By id first, so that a VIM can't be taken over by naming another one after its id."""
    either = _within(project, select(vims.c.doc).where((vims.c.id == name_or_id) | (vims.c.name == name_or_id)))
    found: list[Vim] = list(connection.scalars(either.order_by((vims.c.id == name_or_id).desc()).limit(2)))
    if len(found) > 1 and found[0].id != name_or_id:
        raise Conflict(f"The name {name_or_id!r} is that of VIMs of several projects. Give the VIM's id.")
    if not found:
        names = _within(project, select(vims.c.name).order_by(vims.c.name).limit(10))
        known = ", ".join(connection.scalars(names)) or "none"
        raise NotFound(f"There is no VIM with the id or name {name_or_id!r}; registered are: {known}.")
    return found[0]


def id_by_name(connection: Connection, name: str, project: str) -> str | None:
    vim_id: str | None = connection.scalar(select(vims.c.id).where(vims.c.name == name, vims.c.project == project))
    return vim_id


def count(connection: Connection, project: str) -> int:
    return connection.scalar(select(func.count()).select_from(vims).where(vims.c.project == project)) or 0


def hold(connection: Connection, vim_id: str) -> None:
    """Lock the VIM until the transaction ends; NotFound when it was just removed."""
    if connection.execute(_HELD, {"wanted": vim_id}).first() is None:
        raise NotFound(f"There is no VIM {vim_id}.")


def list_all(connection: Connection) -> list[Vim]:
    return list(connection.scalars(select(vims.c.doc).order_by(vims.c.created_at, vims.c.id)))


def matching(
    connection: Connection, vim_id: str | None = None, name: str | None = None, project: str | None = None
) -> list[Vim]:
    """In the order of their registration; all of them when neither is given. Of a project, or of any."""
    query = _within(project, select(vims.c.doc).order_by(vims.c.created_at, vims.c.id))
    if vim_id is not None:
        query = query.where(vims.c.id == vim_id)
    if name is not None:
        query = query.where(vims.c.name == name)
    return list(connection.scalars(query))


def default(connection: Connection, project: str = DEFAULT_PROJECT) -> Vim | None:
    vim: Vim | None = connection.scalar(_DEFAULT, {"of": project})
    return vim


def update(connection: Connection, vim: Vim) -> Vim:
    _make_way(connection, vim)
    try:
        with connection.begin_nested():
            changed = connection.execute(vims.update().where(vims.c.id == vim.id).values(**_changeable(vim)))
    except IntegrityError:
        raise _taken(connection, vim) from None
    if changed.rowcount == 0:
        raise NotFound(f"There is no VIM {vim.id}.")
    return vim


def delete(connection: Connection, vim_id: str) -> None:
    if connection.execute(vims.delete().where(vims.c.id == vim_id)).rowcount == 0:
        raise NotFound(f"There is no VIM {vim_id}.")


def _within(project: str | None, query: Select[Any]) -> Select[Any]:
    return query if project is None else query.where(vims.c.project == project)


def _make_way(connection: Connection, vim: Vim) -> None:
    """The former default VIM of the project is one no longer."""
    if not vim.is_default:
        return
    others = select(vims.c.doc).where(vims.c.is_default, vims.c.project == vim.project, vims.c.id != vim.id)
    for other in connection.scalars(others.with_for_update()).all():
        former = msgspec.structs.replace(other, is_default=False)
        connection.execute(vims.update().where(vims.c.id == former.id).values(**_changeable(former)))


def _changeable(vim: Vim) -> dict[str, Any]:
    return {"name": vim.name, "vim_type": vim.vim_type, "is_default": vim.is_default, "doc": vim}


def _taken(connection: Connection, vim: Vim) -> Conflict:
    other = connection.scalar(
        select(vims.c.id).where(vims.c.name == vim.name, vims.c.project == vim.project, vims.c.id != vim.id)
    )
    if other is not None:
        return Conflict(f"VIM {other} has the name {vim.name!r} already. Choose another name.")
    if connection.scalar(select(vims.c.id).where(vims.c.id == vim.id)) is not None and not vim.is_default:
        return Conflict(f"There is a VIM {vim.id} already.")
    return Conflict("Another VIM was made the default at the same moment. Repeat the request.")
