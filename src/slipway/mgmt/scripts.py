"""Scripts that a package brings for its hooks: one step each, run apart from Slipway (docs/contracts/mgmt.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from slipway.mgmt.script_answer import Answer, answer_of, left_by
from slipway.mgmt.script_process import run_script
from slipway.mgmt.walls import Language, Walls
from slipway.model.action import Action, StepContext
from slipway.model.descriptor import Hook
from slipway.model.errors import StepError
from slipway.model.grant import Granting
from slipway.model.instance import VnfInstance
from slipway.model.journal import ERROR_DATA
from slipway.model.machine import Outcome
from slipway.model.plan import Plan, Step
from slipway.model.secrets import find_references, redact, reference
from slipway.model.situation import Situation

MARGIN = 120.0  # seconds for our own work around a script
LINES_TOLD = 5
_ROLLBACK = {"_start": "_rollback_end", "_end": "_rollback_start"}


class ScriptWorld(Protocol):
    """What scripts are given of Slipway's records."""

    async def instance(self, operation_id: str, *, ahead: bool) -> VnfInstance:
        """As it was when the operation began; or `ahead`, as it would be if the operation ended well now."""
        ...

    async def granting(self, operation_id: str) -> Granting | None:
        """What an NFVO was asked for the operation, and what it answered."""
        ...

    async def error_data(self, operation_id: str) -> dict[str, Any] | None:
        """What a script of this operation left for those that come after it failed."""
        ...

    async def unpack(self, operation_id: str, vnfd_id: str, directory: Path) -> None:
        """All files of the package but its software images, readable for everybody."""
        ...


class Script(msgspec.Struct, frozen=True):
    hook: str
    path: str
    language: Language


class ScriptArgs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`run` and `undo` are the scripts for the two directions, where the VNFD names them."""

    vnfd_id: str
    request: dict[str, Any]
    parameters: dict[str, Any] = {}
    ahead: bool = False
    run: Script | None = None
    undo: Script | None = None


class Scripts:
    def __init__(self, world: ScriptWorld, walls: Walls) -> None:
        self._world = world
        self._walls = walls
        limit = walls.seconds + MARGIN
        self.actions: tuple[Action[Any], ...] = (
            Action("script.run", ScriptArgs, self._run, self._undo, timeout=limit, attempts=1),
        )

    def plan(self, hook: str, run: Hook | None, undo: Hook | None, situation: Situation) -> Plan:
        """One step, which waits for all before it and for which all behind it waits."""
        args = ScriptArgs(
            vnfd_id=situation.descriptor.vnfd_id,
            request=_without_vims(msgspec.to_builtins(situation.request)),
            parameters=situation.instance.parameters,
            ahead=hook.endswith("_end"),
            run=_script(run),
            undo=_script(undo),
        )
        name = f"{hook}: {args.run.path}" if args.run else f"{hook}: nothing but its rollback"
        return Plan.of(Step(id=name, action="script.run", args=msgspec.to_builtins(args)))

    async def _run(self, args: ScriptArgs, context: StepContext) -> Outcome:
        return await self._done(args.run, args, context)

    async def _undo(self, args: ScriptArgs, context: StepContext) -> Outcome:
        return await self._done(args.undo, args, context)

    async def _done(self, script: Script | None, args: ScriptArgs, context: StepContext) -> Outcome:
        if script is None:
            return Outcome()
        granting = await self._world.granting(context.operation_id)
        hidden = {
            "operation": script.hook,
            "request": args.request,
            "additionalParams": args.parameters,
            "vnfInstance": _without_vims(
                msgspec.to_builtins(await self._world.instance(context.operation_id, ahead=args.ahead))
            ),
            "grantRequest": msgspec.to_builtins(granting.request) if granting else None,
            "grant": _without_vims(msgspec.to_builtins(granting.grant)) if granting else None,
            ERROR_DATA: await self._world.error_data(context.operation_id),
        }
        given = await context.reveal(hidden)
        ended = await run_script(
            script.path,
            script.language,
            lambda package: msgspec.json.encode({**given, "packageDirectory": package}),
            lambda directory: self._world.unpack(context.operation_id, args.vnfd_id, directory),
            self._walls,
        )
        if ended.fault:
            secrets = await context.reveal([reference(one) for one in find_references(hidden)])
            raise StepError(
                f"{script.path}, the script for {script.hook}, {ended.fault.reason}.{_said(ended.stderr, secrets)}",
                cure=ended.fault.cure,
                data=left_by(ended.stdout),
            )
        return _outcome(answer_of(ended.stdout, script.path, script.hook))


def language_of(hook: Hook) -> Language | None:
    """What the script is written in; None when the hook names no script that can be run here."""
    if hook.file is None:
        return None
    kind, suffix = (hook.type or "").rpartition(".")[2], Path(hook.file).suffix
    if kind == "Python" or suffix == ".py":
        return "python"
    return "bash" if kind == "Bash" or suffix in (".sh", ".bash") else None


def rollback_of(hook: str) -> str:
    """A rollback goes backward: what stands at the end of the way there is first on the way back."""
    operation, _, edge = hook.rpartition("_")
    return operation + _ROLLBACK.get(f"_{edge}", "")


def _script(hook: Hook | None) -> Script | None:
    if hook is None or hook.file is None:
        return None
    language = language_of(hook)
    return Script(hook.operation, hook.file, language) if language else None


def _without_vims(document: dict[str, Any]) -> dict[str, Any]:
    """The keys to a VIM are for Slipway only."""
    vims = document.get("vimConnectionInfo")
    return document if vims is None else {**document, "vimConnectionInfo": redact(vims)}


def _outcome(answer: Answer) -> Outcome:
    return Outcome(instance=answer.instance, data={ERROR_DATA: answer.error_data} if answer.error_data else {})


def _said(stderr: bytes, secrets: Any) -> str:
    """The last lines, for a person: no secrets, no control characters."""
    text = stderr.decode(errors="replace")
    for secret in sorted(_texts(secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    lines = [line for line in text.splitlines() if line.strip()][-LINES_TOLD:]
    return f" It said: {' | '.join(map(_shown, lines))}" if lines else ""


def _shown(line: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a secret that is long enough to be one."""
    if isinstance(value, str) and len(value) > 2:
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _texts(str(value))
    elif isinstance(value, dict | list | tuple):
        inside: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for item in inside:
            yield from _texts(item)
