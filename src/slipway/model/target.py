"""What an operation makes of an instance, in the terms that all VIMs share. Each driver turns it into its own.

`lcm/` decides levels, members, who leaves, who is renewed and the batches. Nothing here says what a machine, a stack or
an object is: that is the driver's business (docs/contracts/vim.md).
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from slipway.model.descriptor import Flavour
from slipway.model.grant import ResourceType
from slipway.model.instance import ExtVirtualLink
from slipway.model.machine import Found, FoundVolume


class VnfcMember(msgspec.Struct, frozen=True, kw_only=True):
    """A VNFC that is a machine. Its id is ours, and known before anything is made; its slot stays over a heal."""

    id: str
    vdu: str
    slot: int

    @property
    def name(self) -> str:
        return f"{self.vdu}-{self.slot}"


class PackageFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a VNF package, read before anything is planned. Steps carry path and digest, and not the content."""

    content: bytes
    digest: str  # SHA-256, in hex

    def __repr__(self) -> str:
        return f"PackageFile({len(self.content)} bytes, {self.digest})"


# In the metadata of a modification: manifests whose ConfigMaps and Secrets are to follow the package.
CONFIGURATION_PATHS = "configmap_secret_paths"

# Of packages, by their VNFD ids, and then by path.
LoadedFiles = Mapping[str, Mapping[str, PackageFile]]


@dataclass(frozen=True, kw_only=True)
class VnfTarget:
    """`counts` has every VDU; `members` those whose VDUs are machines, since pods get their names when they are made.

    `managed_networks` are the VIM's ids of networks that internal links (by their names in the VNFD) are: not made.
    `zones` (by member), `images` (by VDU or storage) and `flavours` (by VDU) are what an NFVO granted; what stands
    keeps what it has.
    `files` are those of the package `vnfd_id` that the driver asked for, by path; they are there when it plans.
    `file_names` are the names of all of them, of `after` only; they are there also when it refuses.
    """

    vnfd_id: str
    flavour: Flavour
    scale: Mapping[str, int]
    counts: Mapping[str, int]
    members: tuple[VnfcMember, ...] = ()
    links: tuple[ExtVirtualLink, ...] = ()
    managed_networks: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    zones: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    flavours: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, PackageFile] = field(default_factory=dict)
    file_names: frozenset[str] = frozenset()

    def with_files(self, files: LoadedFiles) -> VnfTarget:
        return dataclasses.replace(self, files=files.get(self.vnfd_id, {}))


@dataclass(frozen=True, kw_only=True)
class Renewal:
    """Members, by their former ids, that are made anew in their slots; with `everything` also what hangs on them.

    `cause` is what the request says; a VIM that keeps reasons is told it. `reversible`: a rollback makes the former
    ones again, from what they were made from.
    """

    members: frozenset[str] = frozenset()
    everything: bool = False
    cause: str | None = None
    reversible: bool = False


@dataclass(frozen=True, kw_only=True)
class Change:
    """From one target to another. No `before`: nothing was instantiated. No `after`: nothing is to be left.

    `inventory` is what the record has. `reconnects`: ports follow the links of `after`. `additional_params` are of this
    request alone; what lasts is in the targets. `grant_follows`: an NFVO is still to be asked, and may choose images,
    flavours and zones that nobody has named yet. `retains_data`: only the volumes are left. A VIM that can't
    change some nodes while others wait makes one change for each of `batches`, in that order; none: all at once.
    `configuration_files`: of these files of the package the ConfigMaps and Secrets follow, with what uses them, and
    nothing else; none: all that differs. `chosen_vdus`: of a change of package, the VDUs that follow it now; None: all.
    `namespace`: where the VIM, by its connection, has what is new; what stands stays where it is.
    """

    instance_id: str
    version: int
    inventory: Found
    before: VnfTarget | None = None
    after: VnfTarget | None = None
    renewal: Renewal = Renewal()
    reconnects: bool = False
    grace_seconds: int = 0
    additional_params: Mapping[str, Any] = field(default_factory=dict)
    grant_follows: bool = False
    retains_data: bool = False
    batches: tuple[tuple[str, ...], ...] = ()
    configuration_files: tuple[str, ...] = ()
    chosen_vdus: frozenset[str] | None = None
    namespace: str | None = None

    @property
    def members(self) -> dict[str, VnfcMember]:
        """By id: those there are and those that will be."""
        return {one.id: one for target in (self.before, self.after) if target for one in target.members}

    @property
    def data_volumes(self) -> tuple[FoundVolume, ...]:
        """Whether or not a machine has them. What came from an image is no data."""
        held = (volume for machine in self.inventory.machines for volume in machine.volumes)
        return tuple(volume for volume in (*held, *self.inventory.volumes) if volume.image is None)

    @property
    def retained(self) -> frozenset[str]:
        """Ids of volumes that stay when all else goes."""
        return frozenset(volume.id for volume in self.data_volumes if self.retains_data)

    def with_files(self, files: LoadedFiles) -> Change:
        before, after = (target.with_files(files) if target else None for target in (self.before, self.after))
        return dataclasses.replace(self, before=before, after=after)

    def new_id(self, *names: str) -> str:
        return new_id(self.instance_id, self.version, *names)


class VimResource(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a change leaves on the VIM, as an NFVO is asked for it.

    `of` a port or volume: the member that holds it.
    """

    id: str
    type: ResourceType
    template: str
    of: str | None = None


def new_id(instance_id: str, version: int, *names: str) -> str:
    """An id for something to be made: the same each time it is asked for, until the instance's record changes."""
    return str(uuid.uuid5(uuid.UUID(instance_id), "/".join((*names, str(version)))))
