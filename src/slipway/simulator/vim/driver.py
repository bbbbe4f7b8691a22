"""The simulated VIM's driver: the contract's verbs, and those by which people and tests play with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slipway.model.action import Action, VimConnection
from slipway.model.errors import BadRequest, NotFound
from slipway.model.machine import Found
from slipway.model.vim import SIMULATED
from slipway.simulator.vim import faults, records
from slipway.simulator.vim.actions import TIMEOUT, SimulatedActions
from slipway.simulator.vim.calls import Calls, Rules
from slipway.simulator.vim.endpoint import endpoint, file_of
from slipway.vim.fault_rules import Rule, read_rules
from slipway.vim.machine_by_machine import MachineByMachine, MachineByMachineDriver

PLANNER = MachineByMachine(prefix="simulated", words="A simulated VIM", timeout=TIMEOUT)


class SimulatedDriver(MachineByMachineDriver):
    """`directory` holds the files of VIMs that are registered by name."""

    vim_type = SIMULATED
    planner = PLANNER

    def __init__(self, directory: Path) -> None:
        self._calls = Calls(directory)
        self._actions = SimulatedActions(self._calls)

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._actions.all

    def validate(self, connection: VimConnection) -> None:
        if connection.vim_type != self.vim_type:
            raise BadRequest(f"vimType: {connection.vim_type!r} is not {self.vim_type}.")
        file_of(connection, self._calls.directory)
        read_rules(connection.extra.get("rules", ()), "extra.rules")

    async def register(self, connection: VimConnection) -> None:
        """Make the VIM's file; the rules that the connection brings replace those there."""
        self.validate(connection)
        with self._calls.behind(connection) as db:
            if "rules" in connection.extra:
                faults.replace_rules(db, read_rules(connection.extra["rules"], "extra.rules"))

    async def check(self, connection: VimConnection) -> str:
        self.validate(connection)

        def work(db: sqlite3.Connection, _: Rules) -> str:
            machines, instances = db.execute("SELECT count(*), count(DISTINCT instance_id) FROM machine").fetchone()
            there = f"{_many(machines, 'machine')} of {_many(instances, 'instance')}"
            return f"simulated VIM at {endpoint(connection)}: {there}, {_many(len(faults.rules(db)), 'rule')}"

        return await self._calls.call(connection, "check", work)

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found | None = None) -> Found:
        if not file_of(connection, self._calls.directory).exists():
            return Found()  # a question makes no VIM
        return await self._calls.call(connection, "find", lambda db, rules: records.find(db, instance_id, rules))

    async def set_rules(self, connection: VimConnection, rules: Iterable[Rule]) -> None:
        """Replace all rules, from now on. BadRequest names the field that is wrong."""
        checked = read_rules(list(rules))
        with self._calls.behind(connection) as db:
            faults.replace_rules(db, checked)

    async def rules(self, connection: VimConnection) -> tuple[Rule, ...]:
        with self._calls.behind(connection) as db:
            return faults.rules(db)

    async def clear(self, connection: VimConnection) -> None:
        """No rules any more."""
        await self.set_rules(connection, ())

    async def calls(self, connection: VimConnection) -> dict[str, int]:
        """How often each call came, since the file was made."""
        with self._calls.behind(connection) as db:
            return faults.calls(db)

    async def inventory(self, connection: VimConnection) -> dict[str, Found]:
        """Everything there is, by instance. No call: no rule hits it, nothing counts it."""
        with self._calls.behind(connection) as db:
            return records.inventory(db)

    async def break_machine(self, connection: VimConnection, machine_id: str) -> None:
        """Put a machine in ERROR, until it is built anew or removed."""
        with self._calls.behind(connection) as db:
            if not records.break_machine(db, machine_id):
                raise NotFound(f"There is no machine {machine_id} at {endpoint(connection)}.")

    async def lose_machine(self, connection: VimConnection, machine_id: str) -> None:
        """Take a machine away behind everybody's back; its ports and volumes stay."""
        with self._calls.behind(connection) as db:
            if not records.lose_machine(db, machine_id):
                raise NotFound(f"There is no machine {machine_id} at {endpoint(connection)}.")

    def close(self) -> None:
        self._calls.close()


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
