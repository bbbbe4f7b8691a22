"""User data: code of a package that decides what goes into its OpenStack stack. Requests name it in additionalParams.

`mgmt/user_data.py` runs it; docs/contracts/user-data.md says what it is given and what it answers.
"""

from __future__ import annotations

import posixpath
from collections.abc import Container, Mapping
from typing import Any, Literal

import msgspec

from slipway.model.action import StepContext
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.secrets import secret_strings
from slipway.model.target import VimResource

FILE, CLASS = "lcm-operation-user-data", "lcm-operation-user-data-class"  # in additionalParams
ACTION = "user_data.run"
STACK, STACK_SECRET = "stack", "stack_secret"  # in the data of an outcome; what is called a secret is encrypted

UserDataOperation = Literal[
    "instantiate", "scale", "heal", "change_ext_conn", "change_vnfpkg",
    "scale_rollback", "change_ext_conn_rollback", "change_vnfpkg_rollback",
]  # fmt: skip


def stack_data(stack: dict[str, Any], secrets: Any) -> dict[str, Any]:
    """Of an outcome: what a stack is told. It is one secret where a text has one among other words."""
    known = tuple(secret_strings(secrets))
    held = any(secret in text for text in secret_strings(stack) for secret in known)
    return {STACK_SECRET if held else STACK: stack}


async def stack_left_by(step: str, ctx: StepContext) -> dict[str, Any] | None:
    """What a step's outcome has of that, with references where secrets are; None without an outcome."""
    outcome = ctx.outcome(step)
    if outcome is None:
        return None
    left: dict[str, Any] = outcome.data.get(STACK) or await ctx.decrypt_secrets(outcome.data.get(STACK_SECRET) or {})
    return left


class UserData(msgspec.Struct, frozen=True):
    path: str
    class_name: str


class UserDataArgs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`resources` is what the change leaves on the VIM, as an NFVO would be asked for it. `stack_parameters` are those
    that the stack has now; `stack_step` names instead the step that looks. `additional_params` are those of the
    instantiation. `images` are those that the package carries, by the VDUs and storages of the VNFD: what the VIM
    knows them by."""

    vnfd_id: str
    path: str
    class_name: str
    operation: UserDataOperation
    resources: tuple[VimResource, ...] = ()
    stack_parameters: dict[str, Any] = {}
    stack_step: str | None = None
    additional_params: dict[str, Any] = {}
    images: dict[str, str] = {}


def named_user_data(params: Mapping[str, Any], files: Container[str]) -> UserData | None:
    """None when the parameters name none; a RequestError when they name one that the package can't have."""
    file, name = params.get(FILE), params.get(CLASS)
    if file is None and name is None:
        return None
    for key, value, other in ((FILE, file, CLASS), (CLASS, name, FILE)):
        if not isinstance(value, str) or not value:
            raise BadRequest(f"additionalParams: {other!r} is there, so {key!r} must be, too, as a string.")
    if not str(name).isidentifier():
        raise BadRequest(f"additionalParams: {CLASS!r} is {str(name)[:100]!r}; give the name of a class in the file.")
    path = posixpath.normpath(str(file)).lstrip("/")
    if path not in files:
        raise Unprocessable(f"additionalParams: {FILE!r} names {file!r}, and the package has no such file.")
    if not path.endswith(".py"):
        raise Unprocessable(f"additionalParams: {FILE!r} names {file!r}; user data is a Python file (.py).")
    return UserData(path, str(name))
