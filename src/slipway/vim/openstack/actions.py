"""The step of this driver: a stack becomes what its arguments say, however far it is.

Look: a tag of the stack has the digest of what it was last created or updated with. If that is what is wanted, the
stack is complete and the servers that were to go are gone, there is nothing to do. Whatever is in progress is waited
for first: it may well be this step's own work, from before a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Found, FoundVolume, Outcome
from slipway.model.secrets import find_references, reference, restore_references, secret_strings
from slipway.model.user_data import stack_data, stack_left_by
from slipway.outgoing.responses import server_message
from slipway.vim.machine_by_machine.arguments import retained_outcome
from slipway.vim.openstack import heat
from slipway.vim.openstack.base_hot import rendered
from slipway.vim.openstack.cloud import NOVA, Cloud, for_each
from slipway.vim.openstack.failure import stack_failure
from slipway.vim.openstack.heat import Stack, StackResource
from slipway.vim.openstack.retained_volumes import (
    begin_retaining,
    could_not,
    holders,
    not_retained,
    retaining_digest,
    still_there,
    update_templates,
    volumes_in,
)
from slipway.vim.openstack.server_power import shut_down
from slipway.vim.openstack.stack_change import (
    CHANGE_STACK,
    FOLLOWING_CHANGE,
    STEP_TIMEOUT,
    ChangeStack,
    StackMember,
    digest_of,
    whole_change,
)
from slipway.vim.openstack.stack_spec import StackSpec
from slipway.vim.openstack.stack_state import (
    StackState,
    as_object,
    found,
    look_at,
    machine_of,
    servers_of,
    unattached_ports,
)
from slipway.vim.openstack.stack_update import (
    NO_PREVIEW,
    SHUT_DOWN_SECONDS,
    StackUpdate,
    begin_update,
    refused_before,
    replacement_servers,
)
from slipway.vim.openstack.user_data_stack import (
    READ_STACK,
    ReadStack,
    StackBody,
    as_it_was,
    for_new_stack,
    read_body,
    stack_body,
    with_user_data,
)
from slipway.waiting import Backoff

READ_TIMEOUT = 300.0  # seconds
FORGET_SECONDS = 30.0  # for Heat to give a deleted stack's name free; then it is told again, and has as long once more
NO_PREVIEW_OF_ANOTHER = (*NO_PREVIEW, VimFault.QUOTA)  # while the stack is there, another may be one too many


class StackActions:
    def __init__(self, cloud: Callable[[VimConnection], Cloud]) -> None:
        self._cloud = cloud
        self.all: tuple[Action[Any], ...] = (
            Action(CHANGE_STACK, ChangeStack, self._change, self._go_back, timeout=STEP_TIMEOUT),
            Action(FOLLOWING_CHANGE, dict, self._change_following, self._go_back_following, timeout=STEP_TIMEOUT),
            Action(READ_STACK, ReadStack, self._read, timeout=READ_TIMEOUT),
        )

    async def _read(self, args: ReadStack, ctx: StepContext) -> Outcome:
        there = await stack_body(self._cloud(await ctx.connection()), heat.stack_name(ctx.instance_id))
        if there is None:
            return Outcome(data=stack_data({}, ()))
        clear = await ctx.decrypt_secrets(list(args.secrets))
        kept = restore_references(msgspec.to_builtins(there), zip(args.secrets, clear, strict=True))
        return Outcome(data=stack_data(kept, clear))

    async def _change(self, args: ChangeStack, ctx: StepContext) -> Outcome:
        may_create = args.before is None or args.recreated is not None
        update = StackUpdate(args, lambda: _body(args, ctx), lambda _: set(args.renewed), may_create)
        return await self._make(update, await _secrets(args, ctx), ctx)

    async def _go_back(self, args: ChangeStack, ctx: StepContext) -> Outcome:
        renewed = partial(replacement_servers, args=args)
        update = StackUpdate(args.back(), lambda: _body_before(args, ctx), renewed)
        return await self._make(update, await _secrets(args, ctx), ctx)

    async def _change_following(self, args: dict[str, Any], ctx: StepContext) -> Outcome:
        return await self._change(whole_change(args, ctx.arguments), ctx)

    async def _go_back_following(self, args: dict[str, Any], ctx: StepContext) -> Outcome:
        return await self._go_back(whole_change(args, ctx.arguments), ctx)

    async def _make(self, update: StackUpdate, secrets: Sequence[str], ctx: StepContext) -> Outcome:
        args, cloud, name = update.args, self._cloud(await ctx.connection()), heat.stack_name(ctx.instance_id)
        secrets = [*secrets, *cloud.secrets]
        if args.after is None:
            return await _remove(cloud, name, args, secrets)
        digest, stack = digest_of(args.after), await _settled(cloud, name)
        if stack is None and not update.may_create:
            raise _deleted_by_others(name)
        if stack and stack.status == "DELETE_FAILED" and not update.may_create:
            raise _delete_failed(stack)
        if stack is None or stack.id == args.recreated or stack.status == "DELETE_FAILED":
            body = msgspec.to_builtins(for_new_stack(name, await update.body()))  # before what stands is deleted
            if stack:
                await refused_before(heat.preview_create(cloud, name, body, digest, secrets), NO_PREVIEW_OF_ANOTHER)
                await _delete(cloud, stack, args, secrets)
            await heat.create(cloud, name, body, digest, secrets)
        elif (complete := await begin_update(cloud, stack, update, digest, secrets)) is not None:
            return await _outcome(cloud, complete, args)
        return await _outcome(cloud, await _completed(cloud, name, args, secrets), args)


async def _settled(
    cloud: Cloud, name: str, busy: Callable[[Stack], bool] = lambda stack: stack.in_progress
) -> Stack | None:
    """The stack once nothing is in progress; None when there is none."""
    # A pause is half a second and 3 % of what has passed: Heat's work is seen to have ended about that late.
    backoff = Backoff(0.5, 10.0, factor=1.03, timeout=STEP_TIMEOUT)
    while (stack := await _listed(cloud, name)) and busy(stack):
        if not await backoff.pause():
            raise VimError(
                f"Stack {name} is still {stack.status} after {STEP_TIMEOUT:g} s.",
                VimFault.TEMPORARY,
                cure="see why Heat does not end it.",
            )
    return stack


async def _listed(cloud: Cloud, name: str) -> Stack | None:
    """None once Heat has forgotten a stack that it deleted: the removal of its trust may yet fail, and another stack
    can't have the name before. A Heat whose engine ended in the middle goes on when it is told again."""
    stack = await heat.listed_stack(cloud, name)
    for again in (False, True):
        if stack and stack.deleted and again:
            await heat.delete(cloud, stack)  # there is no such stack, says Heat, and removes what is left of it
        backoff = Backoff(0.5, 5.0, timeout=FORGET_SECONDS)
        while stack and stack.deleted and await backoff.pause():
            stack = await heat.listed_stack(cloud, name)
    return None if stack is None or stack.deleted else stack


async def _secrets(args: ChangeStack, ctx: StepContext) -> list[str]:
    """Secrets that go to Heat, and that no error may have."""
    documents = [
        args.after,
        args.before,
        args.secrets,
        *[await stack_left_by(step, ctx) for step in args.user_data or ()],
    ]
    hidden = dict.fromkeys(find_references(msgspec.to_builtins(documents)))
    clear = await ctx.decrypt_secrets([reference(one) for one in hidden])
    return list(secret_strings(clear))


async def _completed(cloud: Cloud, name: str, args: ChangeStack, secrets: Sequence[str]) -> StackState:
    stack = await _settled(cloud, name)
    if stack is None:
        raise _deleted_by_others(name)
    if not stack.complete:
        raise stack_failure(stack, await heat.resources_of(cloud, stack), _vnfcs(args), secrets)
    if args.after is None or stack.digest != digest_of(args.after):
        raise VimError(
            f"Stack {name} is {stack.status}, but not what it was updated to: somebody else changed it meanwhile.",
            VimFault.TEMPORARY,
            cure="see that nobody else changes the stacks of VNFs; then retry, which updates it again.",
        )
    return await look_at(cloud, stack, args.existing_ports)


async def _remove(cloud: Cloud, name: str, args: ChangeStack, secrets: Sequence[str]) -> Outcome:
    """Heat deletes also what it is still making or changing: only a deletion under way is waited for.

    Where volumes are to outlive the stack, or a termination that was given up has let them, Heat is told first what to
    do about them; that takes a stack of which nothing is in progress.
    """

    def busy(stack: Stack) -> bool:
        told = args.retains_data or stack.retaining
        return stack.in_progress if told else stack.status == "DELETE_IN_PROGRESS"

    stack = await _settled(cloud, name, busy)
    left = args.retains_data or (stack is not None and stack.retaining)
    if stack and args.retains_data:
        state = await _retain_volumes(cloud, stack, args, secrets)
        await shut_down(cloud, holders(state, args.volumes), max(args.grace_seconds, SHUT_DOWN_SECONDS))
    elif stack and stack.retaining:
        with suppress(VimError):  # the volumes are left then, and that is said
            await _retain_nothing(cloud, stack, secrets)
    if stack:
        await _delete(cloud, stack, args, secrets)
    kept = await still_there(cloud, args.volumes) if left else {}
    said = retained_outcome(FoundVolume(id=id_, name=name, resource_id=id_) for id_, name in kept.items())
    return Outcome(removed=args.ids, instance=said.instance)


async def _retain_volumes(cloud: Cloud, stack: Stack, args: ChangeStack, secrets: Sequence[str]) -> StackState:
    """The stack that may be deleted. VimError before anything is deleted, where Heat can't be brought to leave them."""
    state = await look_at(cloud, stack)
    if stack.status == "DELETE_FAILED":  # by then the stack has no template any more
        if volumes_in(state, args.volumes) and stack.digest != retaining_digest(args.volumes):
            raise could_not(stack, "Heat has begun to delete it, and failed.")
        return state
    if not await begin_retaining(cloud, state, args.volumes, secrets):
        return state
    told = await _settled(cloud, stack.name)
    if told is None:
        return state
    state = await look_at(cloud, told)
    if not told.complete:
        raise could_not(stack, stack_failure(told, state.resources, _vnfcs(args), secrets))
    if deleted := await not_retained(cloud, volumes_in(state, args.volumes)):
        paths = ", ".join("/".join(one.path) for one in deleted)
        raise could_not(stack, f"Heat was told to leave resource {paths}, and its template does not say so.")
    return state


async def _retain_nothing(cloud: Cloud, stack: Stack, secrets: Sequence[str]) -> None:
    if stack.status != "DELETE_FAILED" and (body := await read_body(cloud, stack)):
        await update_templates(cloud, stack, body.template, body.files, "", secrets)
        await _settled(cloud, stack.name)


async def _delete(cloud: Cloud, stack: Stack, args: ChangeStack, secrets: Sequence[str]) -> None:
    await shut_down(cloud, args.stopped, args.grace_seconds)
    await heat.delete(cloud, stack)
    left = await _settled(cloud, stack.name)
    if left is not None and left.id == stack.id:
        raise stack_failure(left, await heat.resources_of(cloud, left), _vnfcs(args), secrets)


def _deleted_by_others(name: str) -> VimError:
    return VimError(
        f"There is no stack {name}: somebody else deleted it.",
        VimFault.PERMANENT,
        cure="heal the whole VNF (leave vnfcInstanceId out), which makes the stack again, or terminate it.",
    )


def _delete_failed(stack: Stack) -> VimError:
    reason = server_message(stack.reason) or "no reason given"
    return VimError(
        f"Stack {stack.name} is DELETE_FAILED: somebody else began to delete it ({reason}).",
        VimFault.PERMANENT,
        cure="heal the whole VNF with additionalParams all=true, which makes the stack again, or terminate it.",
    )


async def _body(args: ChangeStack, ctx: StepContext) -> StackBody:
    """What the stack becomes, by the plan and by the package's user data."""
    planned = await _planned(args.after, ctx)
    if args.user_data is None:
        return planned
    read_step, user_data_step = args.user_data
    answer = await ctx.decrypt_secrets(await _left_by(user_data_step, ctx))
    before = await _planned(args.before, ctx) if args.before else None
    current = await _stack_read_by(read_step, ctx)
    return await asyncio.to_thread(with_user_data, answer, planned, current, before)  # it reads templates


async def _body_before(args: ChangeStack, ctx: StepContext) -> StackBody:
    """What the stack was, with the addresses that ports had."""
    body = await _planned(args.before, ctx)
    if args.user_data and (current := await _stack_read_by(args.user_data[0], ctx)):
        answer = await stack_left_by(args.user_data[1], ctx) or {}
        named = {*(answer.get("parameters") or ()), *(args.after.parameters if args.after else ())}
        return as_it_was(current, body, named)
    for port, addresses in args.pinned.items():
        body.template["resources"][port]["properties"]["fixed_ips"] = [{"ip_address": ip} for ip in addresses]
    return body


async def _planned(spec: StackSpec | None, ctx: StepContext) -> StackBody:
    spec = spec or StackSpec()
    contents = {one.path: await ctx.package_file(spec.vnfd_id or "", one.path, one.digest) for one in spec.files}
    template, files = await asyncio.to_thread(rendered, spec, contents)  # it may be large
    return StackBody(template=template, files=files, parameters=await ctx.decrypt_secrets(spec.parameters))


async def _stack_read_by(step: str, ctx: StepContext) -> StackBody | None:
    there = await ctx.decrypt_secrets(await _left_by(step, ctx))
    return msgspec.convert(there, StackBody) if there else None


async def _left_by(step: str, ctx: StepContext) -> dict[str, Any]:
    left = await stack_left_by(step, ctx)
    if left is None:
        raise VimError(f"Step {step!r} left nothing about the stack.", VimFault.PERMANENT, cure="retry, or roll back.")
    return left


async def _outcome(cloud: Cloud, state: StackState, args: ChangeStack) -> Outcome:
    servers = servers_of(state, args.members)
    if absent := [one for one in args.members if one.id not in servers]:
        raise _without_server(state.stack, absent[0])
    for member in args.members:
        _refuse_unused_ports(state, member, servers[member.id])
    await _tag(cloud, state, [server.id for server in servers.values()])
    now = found(state, Found())
    reported = [one for one in args.members if not args.reported or one.name in args.reported]
    return Outcome(
        machines=tuple(machine_of(state, one, servers[one.id]) for one in reported),
        networks=now.networks,
        ports=unattached_ports(state),
        objects=(as_object(state.stack),),
        removed=tuple(sorted(set(args.ids) - now.ids.union(servers))),
    )


async def _tag(cloud: Cloud, state: StackState, servers: Iterable[str]) -> None:
    """So that the next look lists them by it. Templates of packages don't do so. Without it a look costs more."""
    name = state.stack.name

    async def tag(server: str) -> None:
        with suppress(VimError):
            await cloud.call(NOVA, "PUT", f"/servers/{server}/tags/{name}")

    new = [id_ for id_ in servers if id_ in state.servers and name not in state.servers[id_].tags]
    await for_each(new, tag)


def _without_server(stack: Stack, member: StackMember) -> VimError:
    return VimError(
        f"Stack {stack.name} is {stack.status}, but resource {member.top} of it has no server for VNFC {member.name}.",
        VimFault.PERMANENT,
        cure=f"the template must make a server named {member.vdu} there for each VNFC of that VDU.",
    )


def _refuse_unused_ports(state: StackState, member: StackMember, server: StackResource) -> None:
    for name, port in member.existing_ports.items():
        if port in state.ports and state.device_of(port) != server.id:
            raise VimError(
                f"Stack {state.stack.name} is {state.stack.status}, but port {port} is not on the server of VNFC "
                f"{member.name}, whose connection point {name} it is to be.",
                VimFault.PERMANENT,
                cure=f"let template and user data give the server the port nfv.CP.{name}.port; or roll back.",
            )


def _vnfcs(args: ChangeStack) -> dict[str, str]:
    names = {one.server: one.name for one in (*args.former, *args.members) if one.server}
    return names | {one.top: one.name for one in args.members if one.top and not one.group}
