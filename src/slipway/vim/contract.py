"""What every VIM driver offers. docs/contracts/vim.md says it in words; tests/contract/vim.py checks it."""

from __future__ import annotations

from typing import Any, Protocol

from slipway.model.action import Action, Connection
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.target import Change, Resource


class VimDriver(Protocol):
    vim_type: str

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        """What does the steps that `steps` names."""
        ...

    def validate(self, connection: Connection) -> None:
        """BadRequest or Forbidden, naming the field, when the connection can't be one of this type. No I/O."""
        ...

    async def check(self, connection: Connection) -> str:
        """Log in, and say in one sentence what is there. VimError says what is wrong and the cure."""
        ...

    def refuse(self, change: Change) -> None:
        """Unprocessable when the VIM can't hold what the change leads to. Asked before it is accepted. No I/O."""
        ...

    def resources(self, change: Change) -> tuple[Resource, ...]:
        """What the change leaves on the VIM, as far as it can be known before: what an NFVO is asked for. Pure."""
        ...

    async def find(self, connection: Connection, instance_id: str, inventory: Found) -> Found:
        """All the VIM holds for the instance, ours by record or not. `inventory` is what the record has."""
        ...

    def steps(self, change: Change, found: Found) -> Plan:
        """What makes of `found` what the change leads to. Pure; no step at all when they agree."""
        ...
