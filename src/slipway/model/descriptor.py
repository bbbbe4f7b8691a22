"""The VNFD after reading: one immutable value that planners compute with. `package/` makes it from a CSAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from slipway.model.errors import BadRequest
from slipway.model.instance import InstantiatedVnfInfo, ScaleInfo
from slipway.model.package import Artifact, SoftwareImage


class VnfdStruct(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class ConnectionPoint(VnfdStruct, frozen=True, kw_only=True):
    """`virtual_link` is an internal link of the VNFD; None when the CP is connected from outside (extVirtualLinks)."""

    name: str
    vdu: str
    order: int = 0
    virtual_link: str | None = None
    vnic_type: str | None = None


class VirtualLink(VnfdStruct, frozen=True, kw_only=True):
    name: str
    cidr: str | None = None


class Storage(VnfdStruct, frozen=True, kw_only=True):
    """`kind` is block, object or file."""

    name: str
    kind: str = "block"
    size_bytes: int = 0
    image: SoftwareImage | None = None


class Vdu(VnfdStruct, frozen=True, kw_only=True):
    """A kind of VNFC. `container` when it is an OS container deployable unit rather than a machine."""

    name: str
    title: str | None = None  # properties.name: what packages for Kubernetes call the object that it is
    minimum: int = 0
    maximum: int = 1
    container: bool = False
    image: SoftwareImage | None = None
    flavour: str | None = None  # requested_additional_capabilities: the VIM's name for the size
    cpus: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    boot_data: str | None = None
    metadata: dict[str, str] = {}  # kvp_data of its boot data: what its machines are told beside that
    storages: tuple[str, ...] = ()
    boot_order: tuple[str, ...] = ()  # those of the storages that its machines boot from, the first one first
    depends_on: tuple[str, ...] = ()  # VDUs whose machines are made before its own
    initial: int | None = None  # VduInitialDelta


class Aspect(VnfdStruct, frozen=True, kw_only=True):
    """`deltas[vdu]` is what each step adds, first step first; one entry counts for every step."""

    name: str
    max_level: int
    deltas: dict[str, tuple[int, ...]] = {}


class Level(VnfdStruct, frozen=True, kw_only=True):
    """An instantiation level: scale levels of aspects, and counts of VDUs given outright."""

    name: str
    scale: dict[str, int] = {}
    counts: dict[str, int] = {}


class PlacementRule(VnfdStruct, frozen=True, kw_only=True):
    name: str
    apart: bool  # anti-affinity
    scope: str
    targets: tuple[str, ...]


class Hook(VnfdStruct, frozen=True, kw_only=True):
    """What the VNFD wants done at `instantiate_end`, `scale_start`, ...: a management driver's name, or a script.

    `inputs` are the operation's, as TOSCA has them: what the package says to whoever does it.
    """

    operation: str
    implementation: str
    file: str | None = None
    type: str | None = None
    inputs: dict[str, Any] = {}


class Flavour(VnfdStruct, frozen=True, kw_only=True):
    id: str
    vdus: dict[str, Vdu] = {}
    connection_points: dict[str, ConnectionPoint] = {}
    virtual_links: dict[str, VirtualLink] = {}
    storages: dict[str, Storage] = {}
    aspects: dict[str, Aspect] = {}
    levels: dict[str, Level] = {}
    default_level: str | None = None
    placement: tuple[PlacementRule, ...] = ()
    hooks: dict[str, Hook] = {}
    manifests: tuple[str, ...] = ()  # Kubernetes manifests of the package, in the order of the VNFD
    charts: tuple[str, ...] = ()  # Helm charts of the package: archives, or directories

    def dependencies(self) -> dict[str, tuple[str, ...]]:
        return {name: vdu.depends_on for name, vdu in self.vdus.items() if vdu.depends_on}

    def level(self, name: str | None) -> Level:
        """The instantiation level asked for, or the default one; an empty one when the VNFD declares none."""
        if name is None:
            return self.levels[self.default_level] if self.default_level else Level(name="")
        if name not in self.levels:
            known = ", ".join(self.levels) or "none"
            raise BadRequest(f"instantiationLevelId: flavour {self.id!r} has no level {name!r}; it has: {known}.")
        return self.levels[name]

    def level_of(self, info: InstantiatedVnfInfo | None) -> Level:
        """The instantiation level that a VNF was made at: counts given outright hold from there."""
        return self.level(info.instantiation_level_id if info else None)

    @property
    def max_scale_levels(self) -> tuple[ScaleInfo, ...]:
        return tuple(ScaleInfo(aspect_id=one.name, scale_level=one.max_level) for one in self.aspects.values())

    def scale_status(self, levels: Mapping[str, int]) -> tuple[ScaleInfo, ...]:
        """All of its aspects at the given levels; those not given are at 0."""
        return tuple(ScaleInfo(aspect_id=name, scale_level=levels.get(name, 0)) for name in self.aspects)

    def counts(self, scale: Mapping[str, int], level: Level) -> dict[str, int]:
        """How many VNFCs of each VDU there are at the given scale levels."""
        return {name: self.members(name, scale, level) for name in self.vdus}

    def members(self, vdu_name: str, scale: Mapping[str, int], level: Level | None = None) -> int:
        """How many VNFCs of a VDU there are at the given scale levels.

        A count given outright by the instantiation level holds at that level's own scale levels. Otherwise it is the
        initial number plus what each step of the VDU's aspects added. A VDU about which the policies say nothing gets
        its profile's minimum.
        """
        vdu = self.vdus[vdu_name]
        if level is not None and vdu_name in level.counts:
            base, start = level.counts[vdu_name], level.scale
        else:
            base, start = vdu.initial if vdu.initial is not None else vdu.minimum, {}
        for aspect in self.aspects.values():
            if deltas := aspect.deltas.get(vdu_name):
                now, then = scale.get(aspect.name, 0), start.get(aspect.name, 0)
                base += _added(deltas, now) - _added(deltas, then)
        return base


def _added(deltas: tuple[int, ...], level: int) -> int:
    """The sum of the first `level` steps; the last delta goes on for ever."""
    listed = deltas[:level]
    return sum(listed) + deltas[-1] * (level - len(listed))


class Descriptor(VnfdStruct, frozen=True, kw_only=True):
    vnfd_id: str
    provider: str
    product_name: str
    software_version: str
    vnfd_version: str
    flavours: dict[str, Flavour] = {}
    default_flavour: str | None = None  # the flavour_id of the VNF itself, or the only one
    artifacts: tuple[Artifact, ...] = ()
    configurable_properties: dict[str, Any] = {}

    def flavour(self, flavour_id: str) -> Flavour:
        if flavour_id not in self.flavours:
            known = ", ".join(self.flavours) or "none"
            raise BadRequest(f"flavourId: the VNFD has no flavour {flavour_id!r}; it has: {known}.")
        return self.flavours[flavour_id]
