"""What every VIM driver offers. docs/contracts/vim.md says it in words; tests/contract/vim.py checks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from slipway.model.action import Action, Connection
from slipway.model.machine import Found, Wanted
from slipway.model.plan import Plan


@dataclass(frozen=True)
class Capabilities:
    """What a driver can hold. `lcm/` refuses early what it can't."""

    machines: bool = False
    networks: bool = False
    volumes: bool = False
    objects: bool = False


class VimDriver(Protocol):
    vim_type: str
    capabilities: Capabilities

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        """The hands behind the steps that `steps_towards` names."""
        ...

    def validate(self, connection: Connection) -> None:
        """BadRequest or Forbidden, naming the field, when the connection can't be one of this type. No I/O."""
        ...

    async def check(self, connection: Connection) -> str:
        """Log in, and say in one sentence what is there. VimError says what is wrong and the cure."""
        ...

    async def find(self, connection: Connection, instance_id: str) -> Found:
        """All the VIM holds for the instance, ours by record or not."""
        ...

    def steps_towards(self, wanted: Wanted, found: Found) -> Plan:
        """What turns `found` into `wanted`. Pure; no step at all when they agree."""
        ...
