"""What may be done with a pod when its node goes: decided from the pod alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from slipway.kube.interface import Object, uid_of

MIRROR = "kubernetes.io/config.mirror"  # of a static pod, which the kubelet runs from a file
FINISHED = ("Succeeded", "Failed")
NAMED = 10  # pods that a message names


@dataclass(frozen=True)
class Pod:
    namespace: str
    name: str
    uid: str
    terminating: bool = False  # it has been deleted already
    grace: float = 30.0  # seconds that it may take to end

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class PodsOfNode:
    """The pods of a node: those that must leave it, and those for which that would be a loss."""

    leaving: tuple[Pod, ...]
    with_empty_dir: tuple[Pod, ...]
    without_controller: tuple[Pod, ...]


def sort_pods(found: Iterable[Object]) -> PodsOfNode:
    """Mirror pods end with their kubelet, and a DaemonSet's would come back at once: both stay, and are in no list."""
    objects = [one for one in found if not is_mirror(one) and controller_kind(one) != "DaemonSet"]
    losing = [one for one in objects if not is_finished(one) and not is_terminating(one)]
    return PodsOfNode(
        leaving=tuple(pod_of(one) for one in objects),
        with_empty_dir=tuple(pod_of(one) for one in losing if has_empty_dir(one)),
        without_controller=tuple(pod_of(one) for one in losing if controller_kind(one) is None),
    )


def pod_of(found: Object) -> Pod:
    metadata, spec = found["metadata"], _part(found, "spec")
    grace = metadata.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 30))
    return Pod(metadata["namespace"], metadata["name"], uid_of(found), is_terminating(found), float(grace))


def is_mirror(pod: Object) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def is_finished(pod: Object) -> bool:
    return _part(pod, "status").get("phase") in FINISHED


def is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def has_empty_dir(pod: Object) -> bool:
    return any("emptyDir" in volume for volume in _part(pod, "spec").get("volumes") or [])


def controller_kind(pod: Object) -> str | None:
    """The controller that would make another one in its place, or None."""
    owners = pod["metadata"].get("ownerReferences") or []
    return next((owner.get("kind") for owner in owners if owner.get("controller")), None)


def condition(found: Object, kind: str) -> Object:
    """One of the conditions in an object's status; empty when it has none of that kind."""
    conditions = _part(found, "status").get("conditions")
    listed = conditions if isinstance(conditions, list) else []
    return next((one for one in listed if isinstance(one, dict) and one.get("type") == kind), {})


def names(pods: Iterable[object], joint: Literal[", ", "; "] = ", ") -> str:
    """As a person wants to read them: not hundreds."""
    words = [str(pod) for pod in pods]
    more = len(words) - NAMED
    return joint.join(words[:NAMED]) + (f"{joint}and {more} more" if more > 0 else "")


def _part(found: Object, name: str) -> dict[str, Any]:
    part = found.get(name)
    return part if isinstance(part, dict) else {}
