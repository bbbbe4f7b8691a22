"""Access tokens: only their digests are kept, so that who reads the database can't use one."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from slipway.model.access import Role
from slipway.model.errors import Conflict, NotFound
from slipway.store.tables import tokens


class TokenRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`project` None: for all projects."""

    id: str
    name: str
    role: str
    project: str | None = None
    created_at: datetime


def digest(token: str) -> str:
    """Tokens are long and random, so a plain hash is enough."""
    return sha256(token.encode()).hexdigest()


def insert(connection: Connection, record: TokenRecord, token: str) -> None:
    same = tokens.c.project.is_(None) if record.project is None else tokens.c.project == record.project
    if connection.execute(select(tokens.c.id).where(tokens.c.name == record.name, same)).first() is not None:
        raise Conflict(f"name: there is a token {record.name!r} already. Remove it first, or choose another name.")
    row = msgspec.structs.asdict(record) | {"created_at": record.created_at.timestamp(), "digest": digest(token)}
    connection.execute(tokens.insert().values(**row))


def find(connection: Connection, token: str) -> TokenRecord | None:
    row = connection.execute(select(tokens).where(tokens.c.digest == digest(token))).one_or_none()
    return None if row is None else _record(row)


def list_all(connection: Connection, project: str | None) -> list[TokenRecord]:
    """Those for one project, or for any."""
    query = select(tokens).order_by(tokens.c.created_at, tokens.c.id)
    if project is not None:
        query = query.where(tokens.c.project == project)
    return [_record(row) for row in connection.execute(query)]


def delete(connection: Connection, name_or_id: str, project: str | None) -> TokenRecord:
    query = select(tokens).where((tokens.c.id == name_or_id) | (tokens.c.name == name_or_id))
    if project is not None:
        query = query.where(tokens.c.project == project)
    found = connection.execute(query.order_by((tokens.c.id == name_or_id).desc()).limit(2)).all()
    if not found:
        raise NotFound(f"There is no token with the id or name {name_or_id!r}.")
    if len(found) > 1 and found[0].id != name_or_id:
        raise Conflict(f"The name {name_or_id!r} is that of tokens of several projects. Give the token's id.")
    connection.execute(tokens.delete().where(tokens.c.id == found[0].id))
    return _record(found[0])


def role_of(record: TokenRecord) -> Role:
    return Role[record.role.upper()]


def _record(row: Any) -> TokenRecord:
    return TokenRecord(
        id=row.id,
        name=row.name,
        role=row.role,
        project=row.project,
        created_at=datetime.fromtimestamp(row.created_at, UTC),
    )
