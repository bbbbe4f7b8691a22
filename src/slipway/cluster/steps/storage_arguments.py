"""Arguments of the steps of a storage server and of the volumes that it serves."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.cluster.nfs_config import Export
from slipway.cluster.persistent_volumes import VolumeManifest
from slipway.cluster.spec import Node, StepArguments
from slipway.cluster.steps.arguments import OfCluster, OnNode


class Mount(StepArguments, frozen=True, kw_only=True):
    """`storage`: its name in the VNFD, and in the VIM's template."""

    storage: str
    path: str


class MountVolumes(OnNode, frozen=True, kw_only=True):
    """`node` is the storage server, here and below: a machine of the VNF, and no node of the cluster."""

    mounts: tuple[Mount, ...]


class ServeNfs(OnNode, frozen=True, kw_only=True):
    """`setup` is for the proxy by which packages come."""

    exports: tuple[Export, ...]
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class NfsClient(OnNode, frozen=True, kw_only=True):
    """On a node of the cluster."""

    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class RegisterVolumes(OfCluster, frozen=True, kw_only=True):
    """`cluster_stays` if the operation is rolled back: else its volumes go with it."""

    server: Node
    volumes: tuple[VolumeManifest, ...]
    cluster_stays: bool


class CheckVolumes(OfCluster, frozen=True, kw_only=True):
    """Whether anybody uses the volumes that were registered for the VNF."""


class DeleteVolumes(OfCluster, frozen=True, kw_only=True):
    """Those that were registered for the VNF. The rest is for its undo, which serves and registers them again."""

    server: Node
    mounts: tuple[Mount, ...]
    exports: tuple[Export, ...]
    volumes: tuple[VolumeManifest, ...]
    setup: dict[str, Any] = msgspec.field(default_factory=dict)
