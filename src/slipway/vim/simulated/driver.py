"""The simulated VIM's driver: the contract's verbs, and those by which people and tests play with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slipway.model.action import Action, Connection
from slipway.model.errors import BadRequest, NotFound
from slipway.model.machine import Found, Wanted
from slipway.model.plan import Plan
from slipway.model.target import Change, Resource
from slipway.model.vim import SIMULATED
from slipway.vim.machine_by_machine.wanted import resources, wanted_of
from slipway.vim.simulated import faults, records, steps
from slipway.vim.simulated.actions import Actions
from slipway.vim.simulated.endpoint import endpoint, file_of
from slipway.vim.simulated.remote import Remote, Rules
from slipway.vim.simulated.rules import Rule, read_rules


class SimulatedDriver:
    """`directory` holds the files of VIMs that are registered by name."""

    vim_type = SIMULATED

    def __init__(self, directory: Path) -> None:
        self._remote = Remote(directory)
        self._actions = Actions(self._remote)

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._actions.all

    def validate(self, connection: Connection) -> None:
        if connection.vim_type != self.vim_type:
            raise BadRequest(f"vimType: {connection.vim_type!r} is not {self.vim_type}.")
        file_of(connection, self._remote.directory)
        read_rules(connection.extra.get("rules", ()), "extra.rules")

    async def register(self, connection: Connection) -> None:
        """Make the VIM's file; the rules that the connection brings replace those there."""
        self.validate(connection)
        with self._remote.behind(connection) as db:
            if "rules" in connection.extra:
                faults.replace_rules(db, read_rules(connection.extra["rules"], "extra.rules"))

    async def check(self, connection: Connection) -> str:
        self.validate(connection)

        def work(db: sqlite3.Connection, _: Rules) -> str:
            machines, instances = db.execute("SELECT count(*), count(DISTINCT instance_id) FROM machine").fetchone()
            there = f"{_many(machines, 'machine')} of {_many(instances, 'instance')}"
            return f"simulated VIM at {endpoint(connection)}: {there}, {_many(len(faults.rules(db)), 'rule')}"

        return await self._remote.call(connection, "check", work)

    async def find(self, connection: Connection, instance_id: str, inventory: Found | None = None) -> Found:
        return await self._remote.call(connection, "find", lambda db, lies: records.find(db, instance_id, lies))

    def refuse(self, change: Change) -> None:
        steps.PLANNER.refuse(change)

    def resources(self, change: Change) -> tuple[Resource, ...]:
        return tuple(resources(wanted_of(change)))

    def steps(self, change: Change, found: Found) -> Plan:
        return self.steps_towards(wanted_of(change), found)

    def steps_towards(self, wanted: Wanted, found: Found) -> Plan:
        return steps.PLANNER.steps_towards(wanted, found)

    async def set_rules(self, connection: Connection, rules: Iterable[Rule]) -> None:
        """Replace all rules, from now on. BadRequest names the field that is wrong."""
        checked = read_rules(list(rules))
        with self._remote.behind(connection) as db:
            faults.replace_rules(db, checked)

    async def rules(self, connection: Connection) -> tuple[Rule, ...]:
        with self._remote.behind(connection) as db:
            return faults.rules(db)

    async def clear(self, connection: Connection) -> None:
        """No rules any more."""
        await self.set_rules(connection, ())

    async def calls(self, connection: Connection) -> dict[str, int]:
        """How often each call came, since the file was made."""
        with self._remote.behind(connection) as db:
            return faults.calls(db)

    async def inventory(self, connection: Connection) -> dict[str, Found]:
        """Everything there is, by instance. No call: no rule hits it, nothing counts it."""
        with self._remote.behind(connection) as db:
            return records.inventory(db)

    async def break_machine(self, connection: Connection, machine_id: str) -> None:
        """Put a machine in ERROR, until it is built anew or removed."""
        with self._remote.behind(connection) as db:
            if not records.break_machine(db, machine_id):
                raise NotFound(f"There is no machine {machine_id} at {endpoint(connection)}.")

    async def lose_machine(self, connection: Connection, machine_id: str) -> None:
        """Take a machine away behind everybody's back; its ports and volumes stay."""
        with self._remote.behind(connection) as db:
            if not records.lose_machine(db, machine_id):
                raise NotFound(f"There is no machine {machine_id} at {endpoint(connection)}.")

    def close(self) -> None:
        self._remote.close()


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
