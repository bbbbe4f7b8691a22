"""What an operation makes of an instance, in the terms that all VIMs share. Each driver turns it into its own.

`lcm/` decides levels, members, who leaves, who is renewed and the batches. Nothing here says what a machine, a stack or
an object is: that is the driver's business (docs/contracts/vim.md).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from slipway.model.descriptor import Flavour
from slipway.model.grant import ResourceType
from slipway.model.instance import ExtVirtualLink
from slipway.model.machine import Found


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A VNFC that is a machine. Its id is ours, and known before anything is made; its slot stays over a heal."""

    id: str
    vdu: str
    slot: int

    @property
    def name(self) -> str:
        return f"{self.vdu}-{self.slot}"


@dataclass(frozen=True, kw_only=True)
class Target:
    """`counts` has every VDU; `members` those whose VDUs are machines, since pods get their names when they are made.

    `zones` (by member), `images` and `flavours` (by VDU) are what an NFVO granted; what stands keeps what it has.
    """

    flavour: Flavour
    scale: Mapping[str, int]
    counts: Mapping[str, int]
    members: tuple[Member, ...] = ()
    links: tuple[ExtVirtualLink, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    zones: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    flavours: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Renewal:
    """Members, by their former ids, that are made anew in their slots; with `everything` also what hangs on them."""

    members: frozenset[str] = frozenset()
    everything: bool = False


@dataclass(frozen=True, kw_only=True)
class Change:
    """From one target to another. No `before`: nothing was instantiated. No `after`: nothing is to be left.

    `inventory` is what the record has. `reconnects`: ports follow the links of `after`. A VIM that can't change some
    nodes while others wait makes one change for each of `batches`, in that order; none: all at once.
    """

    instance_id: str
    version: int
    inventory: Found
    before: Target | None = None
    after: Target | None = None
    renewal: Renewal = Renewal()
    reconnects: bool = False
    grace_seconds: int = 0
    batches: tuple[tuple[str, ...], ...] = ()

    @property
    def members(self) -> dict[str, Member]:
        """By id: those there are and those that will be."""
        return {one.id: one for target in (self.before, self.after) if target for one in target.members}

    def new_id(self, *names: str) -> str:
        return new_id(self.instance_id, self.version, *names)


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a change leaves on the VIM, as an NFVO is asked for it. `of`: the member that it belongs to."""

    id: str
    type: ResourceType
    template: str
    of: str | None = None


def new_id(instance_id: str, version: int, *names: str) -> str:
    """An id for something to be made: the same each time it is asked for, until the instance's record changes."""
    return str(uuid.uuid5(uuid.UUID(instance_id), "/".join((*names, str(version)))))
