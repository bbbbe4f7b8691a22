"""The update of a stack that stands, and what happens to its servers before Heat is told of it.

Heat is asked for a preview first: what it refuses at once must not cost a server. Then servers get time to stop, those
to be made anew are marked, and one that booted from a volume is removed. Marks of an update that Heat did not take are
removed again, so that the next operation makes nothing anew that nobody asked it to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from slipway.model.errors import VimError, VimFault
from slipway.vim.openstack import heat
from slipway.vim.openstack.answers import ShownServer
from slipway.vim.openstack.cloud import NOVA, Cloud, for_each
from slipway.vim.openstack.heat import Stack, StackResource
from slipway.vim.openstack.hot_template import ATTACHMENT, PORT, SERVER, VOLUME, touch_groups
from slipway.vim.openstack.stack_change import ChangeStack, digest_of
from slipway.vim.openstack.stack_state import StackState, look_at, servers_of, surplus
from slipway.vim.openstack.user_data_stack import StackBody
from slipway.waiting import Backoff

SERVER_GONE_TIMEOUT = 120.0  # seconds for Nova to remove a server
REASON = "to be made anew, says Slipway"
NO_PREVIEW = (
    VimFault.AUTH,
    VimFault.TEMPORARY,
)  # a policy forbids it, or it does not work: the update itself will tell


@dataclass(frozen=True)
class StackUpdate:
    """Forward or back. `renewed_in` has the servers that are made anew, of those that stand.

    `may_create`: where there is no stack, one is made.
    """

    args: ChangeStack
    body: Callable[[], Awaitable[StackBody]]
    renewed_in: Callable[[StackState], set[str]]
    may_create: bool = False


async def begin_update(
    cloud: Cloud, stack: Stack, update: StackUpdate, digest: str, secrets: Sequence[str]
) -> StackState | None:
    """The stack, if there is nothing to do; None once Heat has begun."""
    args, state = update.args, await look_at(cloud, stack, update.args.existing_ports)
    renewed = update.renewed_in(state)
    marks = _marks(state, args, renewed)
    if not marks and stack.complete and stack.digest == digest:
        return state
    body = msgspec.to_builtins(await update.body())
    touch_groups(body["template"], [one.name for one in state.resources if one.status == "UPDATE_FAILED"])
    if marks or args.stopped:
        await refused_before(heat.preview_update(cloud, stack, body, digest, secrets))
    await shut_down(cloud, args.stopped, args.grace_seconds)
    try:
        await for_each(marks, lambda one: heat.mark_unhealthy(cloud, one, args.reason or REASON))
        await _free_volumes(cloud, state, renewed)
        await heat.update(cloud, stack, body, digest, secrets)
    except VimError as refusal:
        if refusal.fault is not VimFault.TEMPORARY:  # else Heat may have begun, and the step is tried again
            await for_each(marks, lambda one: _unmark(cloud, one))
        raise
    return None


def replacement_servers(state: StackState, args: ChangeStack) -> set[str]:
    """Servers that the step put in the place of others; and those that it only marked, before it ended."""
    marked = {one.id for one in state.of_type(SERVER) if one.failed and one.id in args.renewed}
    if args.after is None or args.before is None or state.stack.digest != digest_of(args.after):
        return marked
    if args.before == args.after:
        return marked  # the same servers as before
    places = {one.name for one in args.former if one.server in args.renewed}
    now = servers_of(state, args.members)
    return marked | {now[one.id].id for one in args.members if one.name in places and one.id in now}


async def shut_down(cloud: Cloud, servers: Iterable[str], grace_seconds: int) -> None:
    """Those that run get so long to stop in order; what does not is taken away all the same."""
    if not grace_seconds:
        return
    running = {id_ for id_ in servers if await _is_active(cloud, id_)}
    await for_each(running, lambda id_: _stop(cloud, id_))
    backoff = Backoff(0.5, 5.0, timeout=grace_seconds)
    while running:
        running = {id_ for id_ in running if await _is_active(cloud, id_)}
        if running and not await backoff.pause():
            return


async def refused_before(preview: Awaitable[None], unless: Collection[VimFault] = NO_PREVIEW) -> None:
    """VimError for what Heat refuses, as a preview shows it."""
    try:
        await preview
    except VimError as refusal:
        if refusal.fault not in unless:
            raise


async def _unmark(cloud: Cloud, resource: StackResource) -> None:
    """Unless it is a server that is gone: Heat has to make that one anew."""
    with suppress(VimError):  # what is said is why the update failed
        server = await cloud.find(NOVA, f"/servers/{resource.id}", ShownServer) if resource.type == SERVER else None
        if resource.type != SERVER or server is not None:
            await heat.mark_healthy(cloud, resource)


def _marks(state: StackState, args: ChangeStack, renewed: Collection[str]) -> list[StackResource]:
    """What the next update must make anew, or take away: of those servers that are still there.

    Of a group it is the member in the group's own stack that leaves. Marking the server in it would heal that server,
    and let another member go.
    """
    by_path = {one.path: one for one in state.resources}
    leaving = {*args.leaving, *surplus(state, args.members)}
    marks: list[StackResource] = []
    for server in state.of_type(SERVER):
        if server.id in leaving:
            marks.append(by_path[server.path[:2]])
        elif server.id in renewed:
            marks.append(server)
    return marks + [one for one in (*state.of_type(PORT), *state.of_type(VOLUME)) if one.id in args.held]


async def _free_volumes(cloud: Cloud, state: StackState, renewed: Collection[str]) -> None:
    """A server that booted with a volume is removed before it is made anew: else the volume is in use meanwhile.

    Volumes with an attachment of their own move along without that.
    """
    moving = {one.id for one in state.of_type(ATTACHMENT)}
    booted = {id_ for id_ in renewed if any(volume.id not in moving for volume in state.volumes_on(id_))}
    for server in sorted(booted):
        await cloud.remove(NOVA, f"/servers/{server}")
        backoff = Backoff(0.5, 5.0, timeout=SERVER_GONE_TIMEOUT)
        while await cloud.find(NOVA, f"/servers/{server}", ShownServer):
            if not await backoff.pause():
                raise VimError(
                    f"Server {server} is still there {SERVER_GONE_TIMEOUT:g} s after its removal.",
                    VimFault.TEMPORARY,
                )


async def _stop(cloud: Cloud, server: str) -> None:
    with suppress(VimError):  # locked, or gone meanwhile
        await cloud.call(NOVA, "POST", f"/servers/{server}/action", json={"os-stop": None})


async def _is_active(cloud: Cloud, server: str) -> bool:
    there = await cloud.find(NOVA, f"/servers/{server}", ShownServer)
    return there is not None and there.server.status == "ACTIVE"
