"""What the steps of Helm releases are told. Secrets among values stay references; charts are named, with digests."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.vim.kubernetes.arguments import Placed
from slipway.vim.kubernetes.object_plan import FileObjects, PlanStruct

UPGRADE, UNINSTALL = "kubernetes.helm_upgrade", "kubernetes.helm_uninstall"


class VduObject(PlanStruct, frozen=True, kw_only=True):
    """Which object of a chart a VDU is. `value`: the path of the value that has its number."""

    name: str
    kind: str | None = None
    replicas: int | None = None
    value: str | None = None


class ChartSource(PlanStruct, frozen=True, kw_only=True):
    """A chart of a package: `path`, and the digests of its files. Or one of a repository."""

    vnfd_id: str | None = None
    path: str | None = None
    files: dict[str, str] = msgspec.field(default_factory=dict)
    url: str | None = None
    chart: str | None = None
    version: str | None = None
    ca: str | None = None
    username: str | None = None
    password: Any = None


class Upgrade(PlanStruct, frozen=True, kw_only=True):
    """`revision`: the one that stood before, which undo goes back to; None: there was none, and undo removes it.

    `former`: its VDUs then. `objects`: those that it had, and which `fields` Helm had
    set in them, by their ids. `pods`: those known of its VDUs. `rules`: files of the package with readiness rules;
    `former_rules`: those that the revision which stood before is ready by.
    """

    key: str
    release: str
    source: ChartSource
    values: dict[str, Any]
    digest: str
    vdus: dict[str, VduObject]
    namespace: str | None = None
    revision: int | None = None
    former: dict[str, VduObject] = msgspec.field(default_factory=dict)
    force: bool = False  # also a release that somebody else has changed
    objects: tuple[Placed, ...] = ()
    fields: dict[str, str] = msgspec.field(default_factory=dict)
    pods: tuple[str, ...] = ()
    rules: tuple[FileObjects, ...] = ()
    former_rules: tuple[FileObjects, ...] = ()


class Uninstall(PlanStruct, frozen=True, kw_only=True):
    """`releases`: name and namespace by id. `all`: also those that nobody has recorded."""

    releases: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    objects: tuple[Placed, ...] = ()
    pods: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    namespace: str | None = None
    all: bool = False
    grace_seconds: int | None = None
