"""Which Kubernetes releases an image can hold, and what each of them asks for. go/*/VERSION.mod and .sum pin the rest.

From 1.35 on a kubelet refuses v1 cgroups, which hybrid hosts have, unless it is told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slipway.model.errors import VimError, VimFault

REPOSITORY = "registry.slipway.test"  # images are imported under this name; nothing answers there
COREDNS = "v1.12.1"
FLANNEL = "v0.26.7"
FLANNEL_PLUGIN = "v0.9.1"  # the last that is a part of the CNI project
TOOLS = "1"
PAUSE = "v1"


@dataclass(frozen=True)
class Release:
    """The tags are those that this kubeadm asks for."""

    version: str
    etcd: str
    coredns: str
    pause: str


RELEASES = {
    release.version: release
    for release in (
        # CoreDNS 1.12.1 serves here as well, under the tag that is asked for.
        Release("1.33.13", etcd="3.5.24", coredns="v1.12.0", pause="3.10"),
        Release("1.34.4", etcd="3.6.5", coredns="v1.12.1", pause="3.10.1"),
    )
}
DEFAULT = "1.34.4"


def releases(versions: Iterable[str]) -> tuple[Release, ...]:
    """The named ones, oldest first, each once; the usual one if none is named."""
    wanted = {version.removeprefix("v") for version in versions} or {DEFAULT}
    if unknown := sorted(wanted - RELEASES.keys()):
        raise VimError(
            f"An image can't be made with Kubernetes {', '.join(unknown)}.",
            VimFault.PERMANENT,
            cure=f"name one of {', '.join(RELEASES)}.",
        )
    return tuple(release for version, release in RELEASES.items() if version in wanted)
