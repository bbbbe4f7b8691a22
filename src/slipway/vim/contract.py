"""What every VIM driver offers. docs/contracts/vim.md says it in words.

tests/contract/driver.py checks all drivers; tests/contract/vim.py also those that make machine after machine.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from slipway.model.action import Action, VimConnection
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.target import Change, VimResource, VnfTarget
from slipway.model.vim import VimInfo
from slipway.vim.fault_rules import Rule


class VimDriver(Protocol):
    vim_type: str

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        """What does the steps that `steps` names."""
        ...

    def validate(self, connection: VimConnection) -> None:
        """BadRequest or Forbidden, naming the field, when the connection can't be one of this type. No I/O."""
        ...

    async def check(self, connection: VimConnection) -> str:
        """Log in, and say in one sentence what is there. VimError says what is wrong and the cure."""
        ...

    def refuse(self, change: Change) -> None:
        """Unprocessable when the VIM can't hold what the change leads to. Asked before it is accepted. No I/O."""
        ...

    def package_files(self, target: VnfTarget) -> tuple[str, ...]:
        """Files of the package, as paths or globs, that `resources` and `steps` will see in `VnfTarget.files`. Pure."""
        ...

    def resources(self, change: Change) -> tuple[VimResource, ...]:
        """What the change leaves on the VIM, as far as it can be known before: what an NFVO is asked for. Pure."""
        ...

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found) -> Found:
        """All the VIM holds for the instance, ours by record or not. `inventory` is what the record has."""
        ...

    def steps(self, change: Change, found: Found) -> Plan:
        """What makes of `found` what the change leads to. Pure; no step at all when they agree."""
        ...


@runtime_checkable
class InspectsVim(Protocol):
    """Optional. A driver of VIMs that are logged in to over a network, so that credentials can be proved."""

    async def inspect(self, connection: VimConnection) -> VimInfo:
        """Log in, and say what is there. VimError as for `check`."""
        ...


@runtime_checkable
class HasNamespaces(Protocol):
    """Optional. A driver whose connections say where a new VNF is made. They may say another place before it is."""

    def namespace(self, connection: VimConnection) -> str:
        """`Change.namespace` when `steps` is asked. No I/O."""
        ...


@runtime_checkable
class ReportsDrift(Protocol):
    """Optional. A driver whose VIM tells what others have done to what it holds."""

    async def drift(self, connection: VimConnection, instance_id: str, inventory: Found) -> tuple[str, ...]:
        """What is not as the record has it, in sentences; nothing is changed. VimError as for `find`."""
        ...


@runtime_checkable
class PreparesVim(Protocol):
    """Optional. A driver that has something to make when a VIM of its type is registered or changed."""

    async def register(self, connection: VimConnection) -> None: ...


@runtime_checkable
class InjectsFaults(Protocol):
    """Optional. A driver whose VIM shows latency, failures and lies on request."""

    async def rules(self, connection: VimConnection) -> tuple[Rule, ...]: ...

    async def set_rules(self, connection: VimConnection, rules: tuple[Rule, ...]) -> None:
        """Replace all rules, from now on."""
        ...


@runtime_checkable
class Closable(Protocol):
    """Optional. A driver that holds something until the process ends: threads (vim/blocking.py), connections."""

    def close(self) -> None: ...


@runtime_checkable
class Switchable(Protocol):
    """Optional. A driver that the settings turn on and off."""

    @property
    def turned_off(self) -> str | None:
        """Why it is off, and how to turn it on; None when it is on."""
        ...
