"""What is special about objects of Cluster API, all of it seen on its controllers.

A Cluster goes before all else, since only its controllers know in which order machines, load balancer and networks go:
deleted together with its Cluster, an infrastructure that machines still need leaves them hanging for ever.

After a change of a MachineDeployment's template its counters and conditions say "done" for about a second before its
controller has begun, so Machines are compared with what their owners want.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slipway.kube.interface import Object, uid_of

CLUSTER_API = "cluster.x-k8s.io"
CONTROL_PLANE = f"controlplane.{CLUSTER_API}"
MACHINE, MACHINE_SET = "Machine", "MachineSet"


def is_cluster_api(one: Object) -> bool:
    """Of any of its groups, those of providers included."""
    group = group_of(one)
    return group == CLUSTER_API or group.endswith(f".{CLUSTER_API}")


def is_cluster(one: Object) -> bool:
    return (group_of(one), one["kind"]) == (CLUSTER_API, "Cluster")


def group_of(one: Object) -> str:
    return str(one.get("apiVersion") or "").rpartition("/")[0]


def removal_rounds(objects: Sequence[Object]) -> list[list[Object]]:
    """Clusters first, and whatever else only owns others; each round is to be gone before the next one begins."""
    uids = {uid_of(one) for one in objects}
    owners = {uid_of(one): _owners(one) & uids for one in objects}
    owning = set[str]().union(*owners.values())
    first = [
        one for one in objects
        if is_cluster(one) or (uid_of(one) in owning and not owners[uid_of(one)])
    ]  # fmt: skip
    rest = [one for one in objects if one not in first]
    return [some for some in (first, rest) if some]


def is_of_former_template(machine: Object, root: Object, sets: Mapping[str, Object]) -> bool:
    """Made from a version or a template that its root no longer has. `sets`: MachineSets by uid."""
    made_by = next((sets[uid] for uid in _owners(machine) if uid in sets), None)
    if made_by is not None:
        return _template(made_by) != _template(root)
    version = (root.get("spec") or {}).get("version")  # of a control plane, which has Machines of its own
    return version is not None and (machine.get("spec") or {}).get("version") != version


def _owners(one: Object) -> set[str]:
    return {str(reference.get("uid")) for reference in one["metadata"].get("ownerReferences") or []}


def _template(one: Object) -> tuple[Any, ...]:
    """Version, infrastructure and bootstrap: what makes a machine another one."""
    inner = ((one.get("spec") or {}).get("template") or {}).get("spec") or {}
    references = (inner.get("infrastructureRef") or {}, (inner.get("bootstrap") or {}).get("configRef") or {})
    return (inner.get("version"), *(reference.get("name") for reference in references))
