"""Stacks of packages that bring user data: what that code says goes over what the stack has.

    read stack ── run user data ── change stack

The first step keeps template, files and parameters that the stack has, for user data to look at and for undo to go back
to. The second is `mgmt/user_data.py`, which runs the package's code apart. The third puts its answer and the package's
own templates together (`with_user_data`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from slipway.model.errors import VimError, VimFault
from slipway.model.json_documents import LARGEST, difference, merge_patch
from slipway.model.plan import Step
from slipway.model.secrets import find_references, reference
from slipway.model.target import Change, VimResource, VnfTarget
from slipway.model.user_data import ACTION, UserData, UserDataArgs, UserDataOperation, named_user_data
from slipway.vim.openstack.answers import ShownStack
from slipway.vim.openstack.cloud import HEAT, Cloud
from slipway.vim.openstack.heat import Stack, find_stack
from slipway.vim.openstack.hot_template import NESTED, read_base_hot
from slipway.vim.openstack.package_images import carried_images
from slipway.vim.openstack.retained_volumes import as_before

READ_STACK = "openstack.read_stack"  # the action
READ_STEP, USER_DATA_STEP = "read stack", "run user data"  # the steps
HIDDEN = "******"  # what Heat shows of a hidden parameter


class ReadStack(msgspec.Struct, frozen=True, omit_defaults=True):
    """`secrets`: references to those that may be among the stack's parameters. Heat gives them back in clear."""

    secrets: tuple[dict[str, str], ...] = ()


class StackBody(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a stack is created or updated with.

    `clear_parameters`: where some are hidden and set by nobody but user data of an earlier operation, only Heat has
    their values. It keeps then what it has, but for these.
    """

    template: dict[str, Any]
    files: dict[str, str] = {}
    parameters: dict[str, Any] = {}
    clear_parameters: tuple[str, ...] | None = None


def user_data_of(change: Change, target: VnfTarget) -> UserData | None:
    """The request's own, or that of the instantiation. RequestError when the package can't have it."""
    files = {*target.file_names, *target.files}
    return named_user_data(change.additional_params, files) or named_user_data(target.parameters, files)


def user_data_steps(
    change: Change, target: VnfTarget, named: UserData, parameters: dict[str, Any], resources: tuple[VimResource, ...]
) -> tuple[Step, Step]:
    """`parameters`: what the stack was planned with before. The step that changes it waits for the second of these."""
    args = UserDataArgs(
        vnfd_id=target.vnfd_id,
        path=named.path,
        class_name=named.class_name,
        operation=_operation(change),
        resources=resources,
        stack_step=READ_STEP,
        additional_params=dict(target.parameters),
        images=carried_images(target),
    )
    known = dict.fromkeys(find_references([parameters, target.parameters, change.additional_params]))
    secrets = tuple(reference(one) for one in known)
    note = Step(id=READ_STEP, action=READ_STACK, args=msgspec.to_builtins(ReadStack(secrets)))
    return note, Step(id=USER_DATA_STEP, action=ACTION, args=msgspec.to_builtins(args), after=(READ_STEP,))


async def stack_body(cloud: Cloud, name: str) -> StackBody | None:
    """What a stack was last created or updated with; None when there is none."""
    stack = await find_stack(cloud, name)
    if stack is None:
        return None
    body = await read_body(cloud, stack)
    if (size := len(msgspec.json.encode(body))) > LARGEST:
        raise VimError(
            f"Template, files and parameters of stack {name} have {size} bytes; at most {LARGEST} are kept for user "
            "data.",
            VimFault.PERMANENT,
            cure="let the package's templates get by with smaller files; to terminate the VNF is possible as it is.",
        )
    return body


async def read_body(cloud: Cloud, stack: Stack) -> StackBody:
    """Volumes that a termination was to retain, and that was given up, have the policies of before in it."""
    shown = await cloud.read(HEAT, stack.path, ShownStack, query={"resolve_outputs": "false"})
    template = await cloud.read(HEAT, f"{stack.path}/template", dict[str, Any])
    files = await cloud.read(HEAT, f"{stack.path}/files", dict[str, str])
    own = {key: value for key, value in shown.stack.parameters.items() if not key.startswith("OS::")}
    template, files = as_before(template, files)
    if not template.get("heat_template_version"):
        had = ", ".join(sorted(template)[:5]) or "an empty one"
        raise VimError(
            f"Heat has no template of stack {stack.name} to show, only {had}.",
            VimFault.TEMPORARY,
            cure="see that the address in Keystone's catalog is Heat's own.",
        )
    return StackBody(template=template, files=files, parameters=_typed(own, template))


def with_user_data(
    answer: dict[str, Any], planned: StackBody, current: StackBody | None = None, before: StackBody | None = None
) -> StackBody:
    """The stack with the answer of user data. `planned` and `before`: as it would be without, after and before.

    A stack that stands keeps what it has (`current`), unless `existing` is false. Over that goes what the answer has;
    where it has nothing, what the operation changes. Of one that somebody else deleted nothing is known but the plan.
    """
    if before is None or answer.get("existing") is False:
        made = StackBody(
            template=answer.get("template") or planned.template,
            files=planned.files | (answer.get("files") or {}),
            parameters=planned.parameters if not answer else answer.get("parameters") or {},
        )
    elif current is None:
        made = StackBody(
            template=merge_patch(planned.template, answer.get("template") or {}),
            files=planned.files | (answer.get("files") or {}),
            parameters=merge_patch(planned.parameters, answer.get("parameters") or {}),
        )
    else:
        shown, only_heat_has = _with_hidden(current.parameters, before.parameters)
        changed = difference(before.parameters, planned.parameters) if not answer else {}
        files = {name: text for name, text in planned.files.items() if before.files.get(name) != text}
        parameters = merge_patch(shown, answer.get("parameters") or changed)
        made = StackBody(
            template=merge_patch(
                current.template, answer.get("template") or difference(before.template, planned.template)
            ),
            files=current.files | files | (answer.get("files") or {}),
            parameters=parameters,
            clear_parameters=tuple(sorted(shown.keys() - parameters)) if only_heat_has - parameters.keys() else None,
        )
    if answer.get("template") or answer.get("files"):
        _check(made)
    return made


def as_it_was(current: StackBody, before: StackBody, named: Iterable[str]) -> StackBody:
    """The way back to `current`, which was read before the operation. `before`: as it was planned.

    `named`: parameters that the operation may have set.

    A hidden parameter that only Heat has stays; of one that the operation changed the value before is known to nobody.
    """
    shown, only_heat_has = _with_hidden(current.parameters, before.parameters)
    added = tuple(sorted({*named} - current.parameters.keys())) if only_heat_has else None
    return msgspec.structs.replace(current, parameters=shown, clear_parameters=added)


def for_new_stack(name: str, body: StackBody) -> StackBody:
    """VimError where a stack can't be made again from what is known: the hidden parameters go with the old one."""
    if body.clear_parameters is None:
        return body
    declared = body.template.get("parameters")
    missing = sorted({*(declared if isinstance(declared, dict) else ())} - body.parameters.keys())
    raise VimError(
        f"Stack {name} is to be made again, and of hidden parameters that user data had set (among: "
        f"{', '.join(missing[:10])}) only Heat has the values.",
        VimFault.PERMANENT,
        cure="let user data give all parameters for this operation, with existing false; or terminate and instantiate.",
    )


def _with_hidden(shown: dict[str, Any], planned: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Parameters as Heat shows them, hidden ones as they were planned; and the names of those that were not."""
    known = {key: planned.get(key) if value == HIDDEN else value for key, value in shown.items()}
    there = {key: value for key, value in known.items() if value is not None}
    return there, {key for key, value in shown.items() if value == HIDDEN and key not in there}


def _operation(change: Change) -> UserDataOperation:
    if change.before is None:
        return "instantiate"
    if change.after is not None and change.before.vnfd_id != change.after.vnfd_id:
        return "change_vnfpkg"
    if change.renewal.members:
        return "heal"
    return "change_ext_conn" if change.reconnects else "scale"


def _typed(parameters: dict[str, Any], template: dict[str, Any]) -> dict[str, Any]:
    """Heat gives a parameter of type json back as a text."""
    declared = template.get("parameters")
    described = declared.items() if isinstance(declared, dict) else ()
    json = {key for key, one in described if isinstance(one, dict) and one.get("type") == "json"}
    return {key: _decoded(value) if key in json else value for key, value in parameters.items()}


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def _check(made: StackBody) -> None:
    """As hostile as a template of the package: PackageError names what it may not use."""
    contents = {f"answer/{NESTED}/{name}": text.encode() for name, text in made.files.items()}
    read_base_hot("answer/template", {"answer/template": msgspec.json.encode(made.template), **contents})
