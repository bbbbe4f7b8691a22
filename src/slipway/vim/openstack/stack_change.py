"""What a step that changes a stack carries: from one stack to another, whom it touches, and who is who afterwards.

Of several such steps in a plan the first carries everything, and each other one only what differs from the step before
it (`FollowingChange`): a hundred VNFCs that are changed one by one would else have two hundred templates in their plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from slipway.model.json_documents import difference, merge_patch
from slipway.vim.openstack.heat import TIMEOUT_MINUTES
from slipway.vim.openstack.stack_spec import StackSpec

CHANGE_STACK, FOLLOWING_CHANGE = "openstack.stack", "openstack.stack_following"  # the actions
STEP_TIMEOUT = (TIMEOUT_MINUTES + 5) * 60.0  # seconds: Heat gives up first, and says why


class StackMember(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A VNFC, and where in the stack its server is.

    `top` is the resource of the stack itself that has it: the server, the nested stack around it, or a group of several
    (`group`); None where a template of user data decides. Who is who in a group shows `server`, the server's own id,
    while it stands, and then `ports`: a server made anew has those of the one before.
    """

    id: str
    name: str
    vdu: str
    top: str | None
    group: bool = False
    server: str | None = None
    ports: tuple[str, ...] = ()
    image: str | None = None
    flavour: str | None = None
    zone: str | None = None
    volume_images: dict[str, str] = {}  # what its volumes are filled with, by their names in the VNFD
    existing_ports: dict[str, str] = {}  # Neutron's ids of ports that its connection points are, and that are not made


class Touched(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one step alone does to servers and ports, beside the change of the stack.

    `renewed`: servers, by their own ids, that are made anew; `held`: their ports and volumes, where these are, too.
    `leaving`: members of groups, by their servers, that are the ones to go. `stopped`: servers that get time to shut
    down. `pinned`: addresses that ports get back by undo.
    """

    renewed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    pinned: dict[str, tuple[str, ...]] = {}


class ChangeStack(Touched, frozen=True, omit_defaults=True, kw_only=True):
    """`after` None: no stack is left. `before` is what undo goes back to; None: no stack was there.

    `grace_seconds`: for servers to shut down. `known`: ids of what was there when it was planned.
    `recreated`: the stack, by Heat's own id, that is deleted and made again; "" where somebody else deleted it already.
    `reason` is for Heat's own record.
    `user_data`: the steps that read the stack and that ran the package's user data, if it has some.
    `reported`: names of the members that the outcome lists; none: all.
    `secrets`: references to those that no error may have, beside those in `after` and `before`.
    `volumes`: Cinder's ids of those with data, and their names in the VNFD; `retains_data`: they outlive the stack.
    """

    after: StackSpec | None = None
    before: StackSpec | None = None
    members: tuple[StackMember, ...] = ()
    former: tuple[StackMember, ...] = ()
    grace_seconds: int = 0
    known: tuple[str, ...] = ()
    recreated: str | None = None
    reason: str | None = None
    user_data: tuple[str, str] | None = None
    reported: tuple[str, ...] = ()
    secrets: tuple[dict[str, str], ...] = ()
    volumes: dict[str, str] = {}
    retains_data: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """All that it knows of; whatever of it is not there afterwards is gone."""
        return tuple(sorted({*self.known, *(one.id for one in (*self.members, *self.former))}))

    @property
    def existing_ports(self) -> tuple[str, ...]:
        return tuple(sorted({port for one in self.members for port in one.existing_ports.values()}))

    def back(self) -> ChangeStack:
        """What undo does."""
        return ChangeStack(after=self.before, members=self.former, known=self.ids, reported=self.reported)


class FollowingChange(Touched, frozen=True, omit_defaults=True, kw_only=True):
    """A change that begins where that of the step `follows` ends.

    `after` is a merge patch from what the stack is then. `members` take the places of those with the same names, and
    `gone` are names of members that are no more.
    """

    follows: str
    after: dict[str, Any] = {}
    members: tuple[StackMember, ...] = ()
    gone: tuple[str, ...] = ()

    def members_after(self, members: tuple[StackMember, ...]) -> tuple[StackMember, ...]:
        now = {one.name: one for one in members if one.name not in self.gone} | {one.name: one for one in self.members}
        return tuple(now.values())


def following_change(step: str, earlier: ChangeStack, change: ChangeStack) -> FollowingChange | None:
    """What differs from the change of an earlier step; None where that can't be said: a merge patch knows no null."""
    spec, wanted = _json(earlier.after), _json(change.after)
    members, names = {one.name: one for one in earlier.members}, {one.name for one in change.members}
    following = FollowingChange(
        follows=step,
        after=difference(spec, wanted),
        members=tuple(one for one in change.members if members.get(one.name) != one),
        gone=tuple(name for name in members if name not in names),
        **_touched(change),
    )
    return following if merge_patch(spec, following.after) == wanted else None


def whole_change(args: Mapping[str, Any], arguments: Callable[[str], Mapping[str, Any]]) -> ChangeStack:
    """Of a step's arguments of either kind. `arguments` has those of the other steps of its plan, by their ids."""
    following: list[FollowingChange] = []
    while "follows" in args:
        following.append(msgspec.convert(args, FollowingChange))
        args = arguments(following[-1].follows)
    change = msgspec.convert(args, ChangeStack)
    if not following:
        return change
    last, spec, members = following[0], args["after"], change.members
    for one in reversed(following):
        before, former = spec, members
        spec, members = merge_patch(spec, one.after), one.members_after(members)
    return ChangeStack(
        before=msgspec.convert(before, StackSpec),
        after=msgspec.convert(spec, StackSpec),
        members=members,
        former=former,
        **_touched(last),
        grace_seconds=change.grace_seconds,
        known=change.known,
        reason=change.reason,
        user_data=change.user_data,
        reported=(*(one.name for one in last.members), *last.gone),
    )


def _touched(step: Touched) -> dict[str, Any]:
    return {name: getattr(step, name) for name in Touched.__struct_fields__}


def digest_of(spec: StackSpec) -> str:
    """Of all that goes to Heat, the content of files by their digests."""
    encoded = msgspec.json.encode(msgspec.to_builtins(spec), order="deterministic")
    return sha256(encoded).hexdigest()[:32]


def as_args(change: ChangeStack | FollowingChange) -> dict[str, Any]:
    args: dict[str, Any] = _json(change)
    return args


def _json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
