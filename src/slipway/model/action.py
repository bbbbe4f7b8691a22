"""What a step's action is: the code behind a name in a plan.

A step in a plan only names its action and gives arguments as JSON. The action looks, then makes, then checks: it can be
run twice, ends within its time limit, and its undo stands beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from slipway.model.access import DEFAULT_PROJECT
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.package_content import PackageContent

A = TypeVar("A")


@dataclass(frozen=True)
class VimConnection:
    """A VIM's address and credentials, in clear: made for one step, never stored, never printed."""

    vim_type: str
    interface_info: dict[str, Any]
    access_info: dict[str, Any]
    extra: dict[str, Any]
    vim_id: str | None = None
    project: str = DEFAULT_PROJECT  # whose it is: that of the registered VIM, or of the instance

    def __repr__(self) -> str:
        return f"VimConnection({self.vim_type}, {self.interface_info.get('endpoint')})"


class StepContext(Protocol):
    """What an action can get from the engine while it runs."""

    @property
    def operation_id(self) -> str: ...

    @property
    def instance_id(self) -> str: ...

    @property
    def cancelled(self) -> bool:
        """A person cancelled the operation forcefully: a step that is interrupted stops what it runs elsewhere, too.

        Without this an interruption means that Slipway shuts down, and what runs elsewhere is found again.
        """
        ...

    async def connection(self) -> VimConnection:
        """The VIM of this operation, secrets resolved."""
        ...

    async def machine(self, machine_id: str) -> FoundMachine:
        """A machine as an earlier step left it, or as the record knows it. StepError when neither does."""
        ...

    async def port(self, name: str) -> FoundPort:
        """A port that no machine holds, by its name in the VIM's template. StepError when there is none."""
        ...

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        """A file of a package that the plan was made with (`VnfTarget.files`). StepError when it is another now."""
        ...

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        """A file of a package, however large, to read in pieces. StepError when there is none, or another one."""
        ...

    async def decrypt_secrets(self, document: Any) -> Any:
        """The document with values where references to the instance's secrets were. For this step only."""
        ...

    def arguments(self, step_id: str) -> dict[str, Any]:
        """What another step of the same plan was planned with: a step may carry only what differs from that."""
        ...

    def outcome(self, step_id: str) -> Outcome | None:
        """What an earlier step of the same plan left."""
        ...

    def progress(self, text: str) -> None:
        """What a long step is at, for whoever watches: "312 of 1024 MiB". Each is written, so every few seconds."""
        ...


@dataclass(frozen=True)
class Action(Generic[A]):
    name: str
    args: type[A]
    run: Callable[[A, StepContext], Awaitable[Outcome]]
    undo: Callable[[A, StepContext], Awaitable[Outcome]] | None = None
    timeout: float = 600.0  # seconds for one attempt
    attempts: int = 5  # tries in all, when the error is temporary
