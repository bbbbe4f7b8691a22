"""Secrets at rest: values go into the `secrets` table encrypted, documents hold references to them.

The keys stand in a file outside the database (keyring.py). Each row says which key opens it, so that a rotation knows
what is left to do, and a process that meets a key it doesn't know reads the file again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from cryptography.fernet import InvalidToken
from sqlalchemy import Connection, bindparam, false, select, text

from slipway.model.errors import Forbidden, SlipwayError
from slipway.model.secrets import find_references, reference, replace_references, replace_secrets
from slipway.store.database import Database
from slipway.store.keyring import Keyring
from slipway.store.tables import secrets

ROTATED_AT_ONCE = 200
_READ_AT_ONCE = 500


class Vault:
    def __init__(self, key_file: Path) -> None:
        self._keys = Keyring(key_file)

    def __repr__(self) -> str:
        return f"Vault({str(self._keys.path)!r})"

    def encrypt_secrets(self, connection: Connection, owner: str, document: Any, names: Iterable[str] = ()) -> Any:
        """The document with references where secrets were (model/secrets.py); the values become rows of `owner`."""
        values: dict[str, Any] = {}

        def keep(path: tuple[str | int, ...], value: Any) -> dict[str, str]:
            secret_id = str(uuid4())
            values[secret_id] = value
            return reference(secret_id)

        hidden = replace_secrets(document, keep, names)
        if values:
            _exclude_rotation(connection)
            key_id, key = self._keys.newest()
            connection.execute(
                secrets.insert(),
                [
                    {"id": secret_id, "owner": owner, "key_id": key_id, "ciphertext": key.encrypt(_encoded(value))}
                    for secret_id, value in values.items()
                ],
            )
        return hidden

    def decrypt_secrets(self, connection: Connection, owners: Collection[str], document: Any) -> Any:
        """The document with values where references were. Only secrets of `owners` are opened."""
        wanted = sorted(set(find_references(document)))
        if not wanted:
            return document
        values: dict[str, Any] = {}
        for start in range(0, len(wanted), _READ_AT_ONCE):
            part = secrets.c.id.in_(wanted[start : start + _READ_AT_ONCE]) & secrets.c.owner.in_(owners)
            for row in connection.execute(select(secrets.c.id, secrets.c.key_id, secrets.c.ciphertext).where(part)):
                values[row.id] = msgspec.json.decode(self._opened(row.id, row.key_id, row.ciphertext))
        if missing := [secret_id for secret_id in wanted if secret_id not in values]:
            raise Forbidden(f"Secret {missing[0]} is gone, or does not belong to {' or '.join(owners)}.")
        return replace_references(document, values.__getitem__)

    def forget(self, connection: Connection, owner: str) -> None:
        connection.execute(secrets.delete().where(secrets.c.owner == owner))

    def forget_unused(self, connection: Connection, owner: str, *documents: Any) -> None:
        """Delete the owner's secrets that none of its documents refers to any more, for example after an update."""
        used = {secret_id for document in documents for secret_id in find_references(document)}
        owned = connection.scalars(select(secrets.c.id).where(secrets.c.owner == owner)).all()
        if unused := [{"unused": secret_id} for secret_id in owned if secret_id not in used]:
            connection.execute(secrets.delete().where(secrets.c.id == bindparam("unused")), unused)

    def rotate(self, database: Database, reached: Callable[[str], None] = lambda point: None) -> int:
        """Close all secrets with a new key and forget the old ones. Returns how many rows were moved.

        Others read and write meanwhile. Killed at any moment, it leaves all secrets readable; run it again. Keep a copy
        of the old key file with backups of the database: they need it. `reached` is called at each point of interest.
        """
        moved = 0
        with self._keys.exclusive():
            newest = self._keys.add()
            reached("key added")
            while True:
                now = database.write_now(self._move_some, newest)
                moved += now
                reached("some moved")
                if now < ROTATED_AT_ONCE and database.write_now(self._drop_old_keys, newest, reached):
                    reached("done")
                    return moved

    def _move_some(self, connection: Connection, newest: str) -> int:
        key = self._keys.opener(newest)
        left = select(secrets.c.id, secrets.c.key_id, secrets.c.ciphertext).where(secrets.c.key_id != newest)
        moved = [
            {"this": row.id, "ciphertext": key.encrypt(self._opened(row.id, row.key_id, row.ciphertext))}
            for row in connection.execute(left.order_by(secrets.c.id).limit(ROTATED_AT_ONCE))
        ]
        if moved:
            connection.execute(secrets.update().where(secrets.c.id == bindparam("this")).values(key_id=newest), moved)
        return len(moved)

    def _drop_old_keys(self, connection: Connection, newest: str, reached: Callable[[str], None]) -> bool:
        _exclude_writers(connection)
        if connection.scalar(select(secrets.c.id).where(secrets.c.key_id != newest).limit(1)) is not None:
            return False
        reached("nothing left")
        self._keys.keep_only(newest)
        reached("old keys dropped")
        return True

    def _opened(self, secret_id: str, key_id: str, ciphertext: bytes) -> bytes:
        try:
            return self._keys.opener(key_id).decrypt(ciphertext)
        except InvalidToken:
            raise SlipwayError(f"Secret {secret_id} is damaged. Give its value again.") from None


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _exclude_rotation(connection: Connection) -> None:
    """Lock out key rotation until the transaction ends; to be called before a key is chosen."""
    connection.execute(secrets.delete().where(false()))


def _exclude_writers(connection: Connection) -> None:
    """Lock out all who write secrets until the transaction ends. SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE secrets IN SHARE ROW EXCLUSIVE MODE"))
