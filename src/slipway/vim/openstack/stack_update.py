"""The update of a stack that stands, and what happens to its servers before Heat is told of it.

Heat is asked for a preview first: what it refuses at once must not cost a server. Then servers get time to stop, those
to be made anew are marked, and those that stand in the way of the next one are removed. An update makes nothing anew
that nobody asked it to: marks of an operation that was given up are removed before it, and of an update that Heat did
not take all marks are removed again, and servers are started.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from slipway.model.errors import VimError, VimFault
from slipway.vim.openstack import heat
from slipway.vim.openstack.answers import ShownServer, ShownServerGroup
from slipway.vim.openstack.cloud import NOVA, Cloud, for_each
from slipway.vim.openstack.heat import Stack, StackResource
from slipway.vim.openstack.hot_template import (
    ATTACHMENT,
    GROUP,
    PORT,
    SERVER,
    SERVER_GROUP,
    VOLUME,
    touch_groups,
)
from slipway.vim.openstack.server_power import remove, shut_down, start
from slipway.vim.openstack.stack_change import ChangeStack, digest_of
from slipway.vim.openstack.stack_state import StackState, look_at, servers_of, surplus
from slipway.vim.openstack.user_data_stack import StackBody

SHUT_DOWN_SECONDS = 90  # for a server whose volumes stay; Nova itself switches it off after 60, if not told otherwise
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
    given_up = [one for one in state.resources if one.marked and one not in marks]
    await for_each(given_up, lambda one: heat.mark_healthy(cloud, one))
    if not marks and stack.complete and stack.digest == digest:
        return state
    body = msgspec.to_builtins(await update.body())
    touch_groups(body["template"], [one.name for one in state.resources if one.status == "UPDATE_FAILED"])
    if marks or args.stopped:
        await refused_before(heat.preview_update(cloud, stack, body, digest, secrets))
    stopped, removed = set[str](), list[str]()
    try:
        stopped |= await shut_down(cloud, args.stopped, args.grace_seconds)
        stopped |= await shut_down(cloud, _with_kept_volumes(state, args, renewed), SHUT_DOWN_SECONDS)
        await for_each(marks, lambda one: heat.mark_unhealthy(cloud, one, args.reason or REASON))
        await for_each(_failed_beside(state, args, marks), lambda one: _set_healthy(cloud, one))
        for server in await _removed_first(cloud, state, renewed):
            removed.append(server)
            await remove(cloud, server)
        await heat.update(cloud, stack, body, digest, secrets)
    except VimError as refusal:
        if refusal.fault is VimFault.TEMPORARY:  # Heat may have begun, and the step is tried again
            raise
        await for_each(marks, lambda one: _unmark(cloud, one))
        await for_each(stopped - {*removed}, lambda id_: start(cloud, id_))
        raise _also_removed(refusal, removed, args) from refusal
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


def _also_removed(refusal: VimError, removed: Collection[str], args: ChangeStack) -> VimError:
    if not removed:
        return refusal
    vnfcs = {one.server: f" of VNFC {one.name}" for one in args.former}
    servers = ", ".join(f"{id_}{vnfcs.get(id_, '')}" for id_ in removed)
    return VimError(
        f"{refusal} Already removed, to make room: server {servers}. A retry makes it again, or a heal.", refusal.fault
    )


async def refused_before(preview: Awaitable[None], unless: Collection[VimFault] = NO_PREVIEW) -> None:
    """VimError for what Heat refuses, as a preview shows it."""
    try:
        await preview
    except VimError as refusal:
        if refusal.fault not in unless:
            raise


async def _set_healthy(cloud: Cloud, resource: StackResource) -> None:
    """Of one that failed, too: Heat takes back marks only."""
    await heat.mark_unhealthy(cloud, resource, "to stay, says Slipway")
    await heat.mark_healthy(cloud, resource)


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


def _failed_beside(state: StackState, args: ChangeStack, marks: Collection[StackResource]) -> list[StackResource]:
    """Members that stay in groups that others leave, and that an operation before has left failed.

    Of members that failed or are marked Heat lets the oldest go.
    """
    by_path = {one.path: one for one in state.resources}
    left = {one.path[0] for one in marks if len(one.path) == 2 and by_path[one.path[:1]].type == GROUP}
    staying = {one.server for one in args.members}
    places = {one.path[:2] for one in state.of_type(SERVER) if one.id in staying and one.path[0] in left}
    return [by_path[place] for place in sorted(places) if by_path[place].failed and not by_path[place].marked]


async def _removed_first(cloud: Cloud, state: StackState, renewed: Collection[str]) -> list[str]:
    """Servers that must be gone before Heat makes those that take their places.

    One that booted with a volume: that would be in use meanwhile. Volumes with an attachment of their own move along
    without it. And one of a strict anti-affinity group, whose servers may be on all hosts that there are. Heat takes
    the ports from a server before it makes the next one: the old one is of no use to anybody until then.
    """
    if not renewed:
        return []
    moving = {one.id for one in state.of_type(ATTACHMENT)}
    booted = {id_ for id_ in renewed if any(volume.id not in moving for volume in state.volumes_on(id_))}
    groups = [f"/os-server-groups/{one.id}" for one in state.of_type(SERVER_GROUP)]
    shown = await for_each(groups, lambda path: cloud.find(NOVA, path, ShownServerGroup))
    apart = {id_ for one in shown if one and one.server_group.strictly_apart for id_ in one.server_group.members}
    return sorted(id_ for id_ in renewed if id_ in booted | apart and id_ in state.servers)


def _with_kept_volumes(state: StackState, args: ChangeStack, renewed: Collection[str]) -> list[str]:
    """Servers to be made anew whose volumes stay: their file systems must be written before."""
    return sorted(id_ for id_ in renewed if any(one.id not in args.held for one in state.volumes_on(id_)))
