"""Which objects belong to which, by owner references (uids), never by their names.

    pods = await find_owned(api, [deployment, stateful_set], PODS, namespace="default")   # {root uid: [pods]}
    machines = await find_owned(api, [machine_deployment], MACHINES, namespace="default")
    owned = owned_by(roots, candidates)                                                   # pure

A chain is walked through the kinds that are named: Deployment -> ReplicaSet -> Pod needs ReplicaSet and Pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slipway.kube.interface import Object, ObjectApi, Objects

Kinds = tuple[tuple[str, str], ...]  # apiVersion and kind, what is wanted last
PODS: Kinds = (("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("v1", "Pod"))
MACHINES: Kinds = (("cluster.x-k8s.io/v1beta1", "MachineSet"), ("cluster.x-k8s.io/v1beta1", "Machine"))


async def find_owned(
    api: ObjectApi, roots: Sequence[Object], kinds: Kinds, namespace: str | None = None
) -> dict[str, Objects]:
    """The objects of the last of `kinds` under each root, by the root's uid; a root that is of that kind is its own."""
    ...


def owned_by(roots: Iterable[str], candidates: Iterable[Object]) -> dict[str, str]:
    """By the uid of a candidate, the uid of the nearest root that it belongs to."""
    ...
