"""What a machine says about itself."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.cluster.reading import Refusal
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.machine import run
from slipway.cluster.steps.world import Hands
from slipway.cluster.versions import Version, version
from slipway.model.errors import StepError


@dataclass(frozen=True)
class Facts:
    """`versions` can be chosen from; `interface` carries the cluster's traffic; `missing` are the system's programs."""

    machine: str | None = None
    kubeadm: str | None = None
    containerd: str | None = None
    interface: str | None = None
    prefix: int | None = None
    versions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


async def facts_of(hands: Hands, address: str) -> Facts:
    printed = (await run(hands, "facts", address)).text
    words = [line.split() for line in printed.splitlines() if line.strip()]
    one = {name: rest for name, *rest in words if rest}
    interface = one.get("interface", [])
    return Facts(
        machine=one.get("machine", [None])[0],
        kubeadm=one.get("kubeadm", [None])[0],
        containerd=one.get("containerd", [None])[0],
        interface=interface[0] if interface else None,
        prefix=int(interface[1]) if len(interface) > 1 else None,
        versions=tuple(rest[0] for name, *rest in words if name == "version" and rest),
        missing=tuple(rest[0] for name, *rest in words if name == "missing" and rest),
    )


def kubernetes_version(facts: Facts, site: Site, node: Node) -> Version:
    """The version that the machine will have: the one asked for, or the one it has. StepError when neither can be."""
    if facts.kubeadm is None:
        raise StepError(
            f"{node.slot} has no kubeadm.",
            cure="use an image that has Kubernetes, or name a source of packages or files.",
        )
    if site.version is not None and site.version not in (*facts.versions, facts.kubeadm.removeprefix("v")):
        has = ", ".join(facts.versions) or facts.kubeadm.removeprefix("v")
        raise StepError(
            f"{node.slot} has Kubernetes {has}, and {site.version} is wanted.",
            cure="use an image that has it, name a source of packages or files, or another kubernetes_version.",
        )
    try:
        return version(site.version or facts.kubeadm)
    except Refusal as refusal:
        raise StepError(f"{node.slot}: {refusal.what}.", cure=f"{refusal.cure}.") from None
