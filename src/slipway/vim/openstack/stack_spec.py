"""What an instance's stack is to be made of: the wanted value of the OpenStack driver, as its steps carry it.

A template of the package is named by path and digest, and not carried: a step's action reads it and renders it
(`base_hot.rendered`). A generated one is carried, once in a plan (`stack_change.FollowingChange`).
"""

from __future__ import annotations

from typing import Any

import msgspec


class FileRef(msgspec.Struct, frozen=True):
    """A file of the package, by the digest that it had when the step was planned."""

    path: str
    digest: str


class StackSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Either `template` (generated; `boot_files` are what it gets by get_file), or `top` and `nested` of `vnfd_id`.

    `copies`: VDUs whose members have a resource of their own each (`VDU1-0`), and the members' slots. `capacities`:
    groups by the names of their resources, and how many members each has. `networks`: internal links whose networks
    exist, and Neutron's ids of these.
    """

    template: dict[str, Any] | None = None
    boot_files: dict[str, str] = {}
    vnfd_id: str | None = None
    top: FileRef | None = None
    nested: tuple[FileRef, ...] = ()
    copies: dict[str, tuple[int, ...]] = {}
    capacities: dict[str, int] = {}
    networks: dict[str, str] = {}
    parameters: dict[str, Any] = {}

    @property
    def files(self) -> tuple[FileRef, ...]:
        """Those of the package that `rendered` needs the content of."""
        return (self.top, *self.nested) if self.top else ()
