"""What simulated machines hold is sealed in the VIM's file: they are given real passwords, of proxies and registries.

The key stands in a file beside it, as that of stored secrets does. SQL calls `sealed(blob)` and `unsealed(blob)`, so
that no code between needs the key.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from uuid import uuid4

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_FILE = "hosts.key"
MARK = b"\xc1"  # a byte that no MessagePack begins with: what an older Slipway wrote was not sealed
NONCE = 12


def add_functions(db: sqlite3.Connection, directory: Path) -> None:
    box: list[AESGCM] = []

    def opened() -> AESGCM:
        if not box:
            box.append(AESGCM(_key(directory / KEY_FILE)))
        return box[0]

    def sealed(content: bytes) -> bytes:
        nonce = os.urandom(NONCE)
        return MARK + nonce + opened().encrypt(nonce, content, None)

    def unsealed(content: bytes) -> bytes:
        if not content.startswith(MARK):
            return content
        start = len(MARK) + NONCE
        return opened().decrypt(content[len(MARK) : start], content[start:], None)

    db.create_function("sealed", 1, sealed)
    db.create_function("unsealed", 1, unsealed)


def _key(path: Path) -> bytes:
    """Made when it is first needed. It gets its name when it is whole, and the first one counts."""
    if not path.exists():
        part = path.with_name(f".{path.name}.{uuid4().hex}")
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:  # noqa: PTH123 - by descriptor
            file.write(AESGCM.generate_key(256))
        try:
            path.hardlink_to(part)
        except FileExistsError:
            pass
        finally:
            part.unlink()
    return path.read_bytes()
