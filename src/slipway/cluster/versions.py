"""Which versions of Kubernetes are supported, what differs between them, and which may run in one cluster."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from slipway.cluster.schema import Refusal
from slipway.cluster.values import text

V1BETA3 = "kubeadm.k8s.io/v1beta3"
V1BETA4 = "kubeadm.k8s.io/v1beta4"

# A kubelet may be this many minor versions older than the API server it talks to; never newer.
OLDEST_KUBELET = 3


class Minor(msgspec.Struct, frozen=True, kw_only=True):
    """What a minor version needs of us. `pause` is the image that its kubeadm asks for."""

    kubeadm_api: str
    pause: str
    refuses_cgroup_v1: bool = False


# A new minor version is one line here. The lab has 1.33 and 1.34; no cluster of the others was built yet.
SUPPORTED: dict[tuple[int, int], Minor] = {
    (1, 29): Minor(kubeadm_api=V1BETA3, pause="3.9"),
    (1, 30): Minor(kubeadm_api=V1BETA3, pause="3.9"),
    (1, 31): Minor(kubeadm_api=V1BETA4, pause="3.10"),
    (1, 32): Minor(kubeadm_api=V1BETA4, pause="3.10"),
    (1, 33): Minor(kubeadm_api=V1BETA4, pause="3.10"),
    (1, 34): Minor(kubeadm_api=V1BETA4, pause="3.10.1"),
    (1, 35): Minor(kubeadm_api=V1BETA4, pause="3.10.1", refuses_cgroup_v1=True),
}

SYNTAX = re.compile(r"v?(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})", re.ASCII)


class Version(msgspec.Struct, frozen=True, order=True):
    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def tag(self) -> str:
        """As kubeadm and the names of images write it."""
        return f"v{self}"

    @property
    def needs(self) -> Minor:
        return SUPPORTED[self.major, self.minor]


def version(value: Any) -> Version:
    """The reader of `kubernetes_version`: 1.34.4 or v1.34.4, of a supported minor version."""
    match = SYNTAX.fullmatch(text(value))
    if not match:
        raise Refusal("it is not a version of Kubernetes", "write all three numbers, like 1.34.4")
    made = Version(int(match[1]), int(match[2]), int(match[3]))
    if (made.major, made.minor) not in SUPPORTED:
        known = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
        raise Refusal(f"Kubernetes {made} is not supported", f"choose a version of: {known}")
    return made


def refuse_upgrade(old: Version, new: Version) -> Refusal | None:
    """Control planes go up one minor version at a time, and never down."""
    if new < old:
        return Refusal(f"the cluster has Kubernetes {old}, and {new} is older", f"choose {old} or newer")
    if new.major != old.major or new.minor > old.minor + 1:
        cure = f"go to a version {old.major}.{old.minor + 1} first"
        return Refusal(f"from Kubernetes {old} to {new} minor versions would be left out", cure)
    return None


def refuse_node(control_plane: Version, kubelet: Version) -> Refusal | None:
    """Whether a node with that kubelet may be in a cluster with that control plane."""
    if (kubelet.major, kubelet.minor) > (control_plane.major, control_plane.minor):
        cure = "upgrade the masters first, or give the node an older kubelet"
        return Refusal(f"the kubelet {kubelet} is newer than the control plane {control_plane}", cure)
    if kubelet.major != control_plane.major or kubelet.minor < control_plane.minor - OLDEST_KUBELET:
        cure = f"give the node at least {control_plane.major}.{control_plane.minor - OLDEST_KUBELET}"
        return Refusal(f"the kubelet {kubelet} is too old for the control plane {control_plane}", cure)
    return None
