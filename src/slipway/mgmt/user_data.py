"""User data of a package: run apart, as scripts are, before its stack changes (docs/contracts/user-data.md)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import yaml

from slipway.mgmt.bubblewrap import MODULES
from slipway.mgmt.script_limits import ScriptLimits
from slipway.mgmt.script_process import run_script
from slipway.mgmt.script_result import mask, printable, said, usable
from slipway.mgmt.scripts import MARGIN, ScriptData
from slipway.mgmt.user_data_input import user_data_input
from slipway.model.action import Action, StepContext
from slipway.model.errors import BadRequest, StepError
from slipway.model.json_documents import split_validation_error
from slipway.model.machine import Outcome
from slipway.model.secrets import find_references, reference, restore_references
from slipway.model.user_data import ACTION, STACK, UserDataArgs, stack_data, stack_left_by

SECONDS = 60.0  # that packages written for OpenStack Tacker may take there
LONGEST_WORDS = 1000  # characters of an error
_OURS = Path(__file__).with_name("user_data_modules")
_RUNNER = "run_user_data.py"
_CURE = "mend it in the package, or what the request gives it (docs/contracts/user-data.md); then retry."


class _Stack(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    template: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None
    files: dict[str, str] | None = None
    existing: bool | None = None


class _ScriptOutput(msgspec.Struct, forbid_unknown_fields=True):
    stack: _Stack | None = None
    error: str | None = None


class UserDataScripts:
    """It needs no network, and is pure: after a crash in the middle it is simply run again."""

    def __init__(self, data: ScriptData, limits: ScriptLimits) -> None:
        self._data = data
        self._limits = dataclasses.replace(limits, network=False)
        if limits.seconds > SECONDS:
            cure = f"make it quicker: user data has {SECONDS:g} s."
            self._limits = dataclasses.replace(self._limits, seconds=SECONDS, time_cure=cure)
        limit = self._limits.seconds + MARGIN
        self.actions: tuple[Action[Any], ...] = (Action(ACTION, UserDataArgs, self._run, timeout=limit, attempts=1),)

    async def _run(self, args: UserDataArgs, context: StepContext) -> Outcome:
        hidden = await self._input(args, context)
        given = await context.decrypt_secrets(hidden)
        ended = await run_script(
            f"{MODULES}/{_RUNNER}",
            "python",
            lambda package: msgspec.json.encode({**given, "packageDirectory": package}),
            lambda directory: self._data.unpack(context.operation_id, args.vnfd_id, directory),
            self._limits,
            modules=_modules(),
        )
        references = [reference(one) for one in dict.fromkeys(find_references(hidden))]
        secrets = await context.decrypt_secrets(references)
        who = printable(f"{args.path}, user data for {args.operation}: {args.class_name}")
        if ended.fault:
            raise StepError(f"{who} {ended.fault.reason}.{said(ended.stderr, secrets)}", cure=ended.fault.cure)
        try:
            answer = _read(ended.stdout)
        except BadRequest as error:
            words = f"ended, but its answer can't be used: {_masked(error.detail, secrets)}"
            raise StepError(f"{who} {words}", cure=_CURE) from None
        if answer.stack is None:
            words = _masked(answer.error or "gave no answer", secrets)
            raise StepError(f"{who} {words}.{said(ended.stderr, secrets)}", cure=_CURE)
        hidden_again = restore_references(msgspec.to_builtins(answer.stack), zip(references, secrets, strict=True))
        return Outcome(data=stack_data(hidden_again, secrets))

    async def _input(self, args: UserDataArgs, context: StepContext) -> dict[str, Any]:
        operation_id = context.operation_id
        granting = await self._data.granting(operation_id)
        return user_data_input(
            await _with_stack(args, context),
            await self._data.request(operation_id),
            await self._data.instance(operation_id, ahead=False),
            await self._data.grant_request(operation_id, args.resources),
            granting.grant if granting else None,
            args.images,
        )


async def _with_stack(args: UserDataArgs, context: StepContext) -> UserDataArgs:
    noted = await stack_left_by(args.stack_step, context) if args.stack_step else None
    return args if noted is None else msgspec.structs.replace(args, stack_parameters=noted.get("parameters", {}))


def _modules() -> list[Path]:
    """What user data sees beside the package: its runner, stand-ins for the peer's modules, and PyYAML."""
    return [*(path for path in _OURS.iterdir() if path.name != "__pycache__"), Path(yaml.__file__).parent]


def _read(printed: bytes) -> _ScriptOutput:
    """As untrusted as all that a script prints. BadRequest names the place."""
    try:
        answer = msgspec.json.decode(printed, type=_ScriptOutput)
    except msgspec.ValidationError as error:
        place, why = split_validation_error(error)
        raise BadRequest(f"{place[:100] or 'it'}: {why}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest("it is not JSON.") from None
    if answer.stack is not None:
        usable(msgspec.to_builtins(answer.stack), STACK)
    return answer


def _masked(words: str, secrets: Any) -> str:
    return printable(mask(words, secrets))[:LONGEST_WORDS]
