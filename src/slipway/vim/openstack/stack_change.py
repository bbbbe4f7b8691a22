"""What the step `stack.change` carries: from one stack to another, whom it touches, and who is who afterwards."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from slipway.vim.openstack.heat import TIMEOUT_MINUTES
from slipway.vim.openstack.stack_spec import StackSpec

CHANGE_STACK = "openstack.stack"  # the action
STEP_TIMEOUT = (TIMEOUT_MINUTES + 5) * 60.0  # seconds: Heat gives up first, and says why


class StackMember(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A VNFC, and where in the stack its server is.

    `top` is the resource of the stack itself that has it: the server, the nested stack around it, or a group of several
    (`group`); None where a template of user data decides. Who is who in a group is told by `server`, the server's own
    id, while it stands, and then by `ports`: a server made anew has those of the one before.
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


class ChangeStack(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`after` None: no stack is left. `before` is what undo goes back to; None: no stack was there.

    `renewed`: servers, by their own ids, that are made anew; with `everything` their ports and volumes too. `leaving`:
    members of groups, by their servers, that are the ones to go. `stopped`: servers that get `grace_seconds` to shut
    down. `pinned`: addresses that ports get back by undo. `known`: ids of what was there when it was planned.
    `recreated`: the stack, by Heat's own id, that is deleted and made again; "" where somebody else deleted it already.
    `reason` is for Heat's own record.
    `user_data`: the steps that noted what the stack was told, and that ran the package's user data, if it has some.
    """

    after: StackSpec | None = None
    before: StackSpec | None = None
    members: tuple[StackMember, ...] = ()
    former: tuple[StackMember, ...] = ()
    renewed: tuple[str, ...] = ()
    everything: bool = False
    leaving: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    grace_seconds: int = 0
    pinned: dict[str, tuple[str, ...]] = {}
    known: tuple[str, ...] = ()
    recreated: str | None = None
    reason: str | None = None
    user_data: tuple[str, str] | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """All that it knows of; whatever of it is not there afterwards is gone."""
        return tuple(sorted({*self.known, *(one.id for one in (*self.members, *self.former))}))

    def back(self) -> ChangeStack:
        """What undo does."""
        return ChangeStack(after=self.before, members=self.former, known=self.ids)


def digest_of(spec: StackSpec) -> str:
    """Of all that Heat is told, the content of files by their digests."""
    encoded = msgspec.json.encode(msgspec.to_builtins(spec), order="deterministic")
    return sha256(encoded).hexdigest()[:32]


def as_args(change: ChangeStack) -> dict[str, Any]:
    args: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(change))
    return args
