"""Counting calls and finding the rules that hit them. Both live in the VIM's file: a restart goes on counting."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from slipway.vim.fault_rules import FaultTarget, Rule


def count(db: sqlite3.Connection, call: str, target: FaultTarget | None, asked: str = "") -> tuple[Rule, ...]:
    """Note one call, and answer the rules that hit it. Those on a host are counted for each thing that is asked."""
    name = f"{call} {target.name} {asked}" if target and call == "host" else call
    db.execute("INSERT INTO call VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1", (name,))
    hits = []
    for position, seen, body in db.execute("SELECT position, seen, body FROM rule ORDER BY position").fetchall():
        rule = _decoded(body)
        if rule.matches(call, target, asked):
            db.execute("UPDATE rule SET seen = ? WHERE position = ?", (seen + 1, position))
            if rule.hits(seen + 1):
                hits.append(rule)
    return tuple(hits)


def calls(db: sqlite3.Connection) -> dict[str, int]:
    return dict(db.execute("SELECT name, count FROM call ORDER BY name").fetchall())


def rules(db: sqlite3.Connection) -> tuple[Rule, ...]:
    return tuple(_decoded(body) for (body,) in db.execute("SELECT body FROM rule ORDER BY position").fetchall())


def replace_rules(db: sqlite3.Connection, new: Iterable[Rule]) -> None:
    """New rules begin to count at nothing."""
    db.execute("DELETE FROM rule")
    db.executemany(
        "INSERT INTO rule VALUES (?, 0, ?)",
        [(position, msgspec.json.encode(rule)) for position, rule in enumerate(new)],
    )


@lru_cache(maxsize=256)
def _decoded(body: bytes) -> Rule:
    return msgspec.json.decode(body, type=Rule)
