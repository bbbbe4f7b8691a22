"""Which objects belong to which, by owner references (uids), never by their names.

    pods = await find_owned(api, [deployment, stateful_set], PODS)             # {root uid: [pods]}
    machines = await find_owned(api, [machine_deployment], machines_in("cluster.x-k8s.io/v1beta1"))
    owned = owned_by(root_uids, candidates)                                    # pure: {uid: root uid}

A chain is walked through the kinds that are named: Deployment -> ReplicaSet -> Pod needs ReplicaSet and Pod.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from slipway.kube.drain import gather_or_cancel
from slipway.kube.interface import Object, ObjectApi, Objects

Kinds = tuple[tuple[str, str], ...]  # apiVersion and kind; the last one is what is wanted
PODS: Kinds = (("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("v1", "Pod"))
# Of a custom resource, whose controller makes workloads of whatever kind.
PODS_OF_WORKLOADS: Kinds = (*(("apps/v1", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet")), *PODS)


def machines_in(api_version: str) -> Kinds:
    """Of Cluster API: MachineDeployment -> MachineSet -> Machine, control plane -> Machine."""
    return ((api_version, "MachineSet"), (api_version, "Machine"))


async def find_owned(api: ObjectApi, roots: Sequence[Object], kinds: Kinds) -> dict[str, Objects]:
    """The objects of the last of `kinds` under each root, by the root's uid. A root of that kind is its own."""
    namespaces = sorted({root["metadata"].get("namespace") or "" for root in roots})
    *between, wanted = [await api.discovery.resource(*kind) for kind in kinds]
    in_use = [resource for resource in between if any(root.get("kind") != wanted.kind for root in roots)]
    # Cluster-wide for roots without a namespace: what belongs to them may be in any.
    places: list[str | None] = [None] if "" in namespaces else [*namespaces]
    links = await gather_or_cancel(
        api.list(resource.collection(place), metadata_only=True) for resource in in_use for place in places
    )
    leaves = await gather_or_cancel(api.list(wanted.collection(place)) for place in places)
    found = [leaf for page in leaves for leaf in page]
    owned = owned_by((_uid(root) for root in roots), [*(link for page in links for link in page), *found])
    by_root: dict[str, Objects] = {_uid(root): [] for root in roots}
    for leaf in found:
        if root := owned.get(_uid(leaf)):
            by_root[root].append({"apiVersion": wanted.api_version, "kind": wanted.kind, **leaf})
    return by_root


def owned_by(roots: Iterable[str], candidates: Iterable[Object]) -> dict[str, str]:
    """By the uid of a candidate, the uid of the nearest root that it belongs to; a root belongs to itself."""
    owned_of: dict[str, list[str]] = {}
    for one in candidates:
        for reference in one["metadata"].get("ownerReferences") or []:
            owned_of.setdefault(str(reference.get("uid")), []).append(_uid(one))
    found = {root: root for root in roots}
    waiting = deque(found)
    while waiting:
        owner = waiting.popleft()
        for uid in owned_of.get(owner, ()):
            if uid not in found:
                found[uid] = found[owner]
                waiting.append(uid)
    return found


def _uid(found: Object) -> str:
    return str((found.get("metadata") or {}).get("uid"))
