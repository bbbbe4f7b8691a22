"""What a VNF's record says about its cluster: the version of Kubernetes that nodes get which come later.

It is that of the control plane, from the moment it is upgraded. While nodes may be left behind, that is recorded too.
"""

from __future__ import annotations

from typing import Any

from slipway.cluster.schema import Refusal
from slipway.cluster.versions import Version, version
from slipway.model.instance import VnfInstance

VERSION = "kubernetesVersion"  # in instantiatedVnfInfo.metadata, as the next
UNFINISHED = "kubernetesUpgradeUnfinished"


def recorded_version(vnf: VnfInstance) -> Version | None:
    said = _metadata(vnf).get(VERSION)
    return version(said) if said is not None else None


def upgrade_is_unfinished(vnf: VnfInstance) -> bool:
    """An upgrade was begun and given up."""
    return bool(_metadata(vnf).get(UNFINISHED))


def record_reported_version(git_version: str) -> dict[str, Any]:
    """A patch of the record from what the API server says. One that Slipway did not install may say anything."""
    try:
        return record_version(version(git_version))
    except Refusal:
        return {}


def record_version(now: Version) -> dict[str, Any]:
    """A patch of the record: every node has it."""
    return {"instantiatedVnfInfo": {"metadata": {VERSION: str(now), UNFINISHED: None}}}


def record_upgrade_begun(new: Version) -> dict[str, Any]:
    """A patch of the record: the control plane has it, and the nodes will."""
    return {"instantiatedVnfInfo": {"metadata": {VERSION: str(new), UNFINISHED: True}}}


def _metadata(vnf: VnfInstance) -> dict[str, Any]:
    return vnf.instantiated_vnf_info.metadata if vnf.instantiated_vnf_info else {}
