"""The pods (or machines of Cluster API) that a VDU's object has made, by owner references: its VNFCs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from slipway.kube.interface import Object, ObjectApi, ObjectRef, ReportProgress, ref_of, uid_of
from slipway.kube.owners import PODS, PODS_OF_WORKLOADS, Kinds, find_owned, machines_in, owned_by
from slipway.kube.pods import condition
from slipway.kube.watch import MOST_SELECTIONS, Selection, wait_until
from slipway.model.machine import FoundMachine
from slipway.vim.kubernetes.cluster_api import CLUSTER_API, MACHINE, MACHINE_SET, is_cluster_api, is_of_former_template
from slipway.vim.kubernetes.object_plan import VDU
from slipway.vim.kubernetes.pod_references import at
from slipway.vim.kubernetes.waves import Wave, wave_of
from slipway.waiting import Observation


async def list_vnfcs(api: ObjectApi, roots: Sequence[Object]) -> list[FoundMachine]:
    """Of objects with the annotation that says which VDU they are."""
    return [vnfc for vnfc, _ in await list_placed_vnfcs(api, roots)]


async def list_placed_vnfcs(api: ObjectApi, roots: Sequence[Object]) -> list[tuple[FoundMachine, ObjectRef]]:
    """And the object that each is: of a root without a namespace it may be in any."""
    found = list[tuple[FoundMachine, ObjectRef]]()
    for kinds, some in _by_kinds(roots).items():
        owned = await find_owned(api, some, kinds)
        for root in some:
            found += ((_vnfc(one, root), ref_of(one)) for one in owned[uid_of(root)] if _counts(one))
    return sorted(found, key=lambda one: (one[0].vdu, one[0].name))


async def wait_for_vnfcs(
    api: ObjectApi,
    roots: Sequence[Object],
    limit: float,
    *,
    gone: Collection[str] = (),
    report: ReportProgress | None = None,
) -> list[FoundMachine]:
    """Once each root has as many as it wants, all of them ready and none of those that are to be gone.

    Machines must be made from what their root says now: its counters say so for a while before anything has begun.
    """
    found = list[FoundMachine]()
    for kinds, some in _by_kinds(roots).items():
        found += await _wait(api, kinds, some, limit, frozenset(gone), report)
    return sorted(found, key=lambda one: (one.vdu, one.name))


async def _wait(
    api: ObjectApi,
    kinds: Kinds,
    roots: Sequence[Object],
    limit: float,
    gone: frozenset[str],
    report: ReportProgress | None,
) -> list[FoundMachine]:
    by_uid = {uid_of(root): root for root in roots}
    selections = [
        Selection(
            await api.discovery.resource(*kind),
            namespace,
            metadata_only=kind != kinds[-1] and kind[1] != MACHINE_SET,
        )
        for kind in kinds
        for namespace in _namespaces(roots, MOST_SELECTIONS // len(kinds))
    ]
    wanted_kind = kinds[-1][1]

    def of_roots(found: Mapping[ObjectRef, Object]) -> dict[str, list[Object]]:
        owned = owned_by(by_uid, found.values())
        vnfcs: dict[str, list[Object]] = {uid: [] for uid in by_uid}
        for ref, one in found.items():
            if ref.kind == wanted_kind and (root := owned.get(uid_of(one))):
                vnfcs[root].append(one)
        return vnfcs

    def look(found: Mapping[ObjectRef, Object]) -> Observation:
        sets = {uid_of(one): one for ref, one in found.items() if ref.kind == MACHINE_SET}
        for uid, there in of_roots(found).items():
            root = by_uid[uid]
            name = f"{root['kind']} {root['metadata']['name']}"
            if old := [one for one in there if uid_of(one) in gone]:
                return Observation(False, f"{wanted_kind} {old[0]['metadata']['name']} of {name} is still there")
            if former := [one for one in there if wanted_kind == MACHINE and is_of_former_template(one, root, sets)]:
                former_name = former[0]["metadata"]["name"]
                return Observation(False, f"{MACHINE} {former_name} of {name} is of a former version or template")
            counted = [one for one in there if _counts(one)]
            ready = sum(is_ready(one) for one in counted)
            number = _number(root)
            if number is not None and not len(counted) == ready == number:
                return Observation(False, f"{name} has {ready} of {number} ready, and {len(counted)} in all")
        return Observation(True, "")

    names = ", ".join(f"{root['kind']} {root['metadata']['name']}" for root in roots[:5])
    found = await wait_until(api, selections, look, f"the {wanted_kind}s of {names}", limit, keep=slim, report=report)
    return [_vnfc(one, by_uid[uid]) for uid, some in of_roots(found).items() for one in some if _counts(one)]


def _namespaces(roots: Sequence[Object], most: int) -> list[str | None]:
    """Where what belongs to them may be: everywhere (None) when one of them is in no namespace, or there are many."""
    places = {root["metadata"].get("namespace") for root in roots}
    return [None] if None in places or len(places) > most else sorted(places)


def is_ready(vnfc: Object) -> bool:
    return _pod_phase(vnfc) == "Succeeded" or condition(vnfc, "Ready").get("status") == "True"


def _counts(vnfc: Object) -> bool:
    """One that is going, or that failed and was left there to be looked at, is no VNFC any more."""
    return "deletionTimestamp" not in vnfc["metadata"] and _pod_phase(vnfc) != "Failed"


def _pod_phase(vnfc: Object) -> str | None:
    """Machines have a phase as well, which is for people alone."""
    return at(vnfc, "status").get("phase") if vnfc.get("kind") != MACHINE else None


def _number(root: Object) -> int | None:
    """How many there are to be; None where that is not for the object to say."""
    spec, status = at(root, "spec"), at(root, "status")
    if is_cluster_api(root):
        return spec.get("replicas") if isinstance(spec.get("replicas"), int) else None
    number: Any = {
        "Pod": 1,
        "DaemonSet": status.get("desiredNumberScheduled", 0),
        "Deployment": spec.get("replicas", 1),
        "StatefulSet": spec.get("replicas", 1),
        "ReplicaSet": spec.get("replicas", 1),
    }.get(root["kind"])
    return number if isinstance(number, int) else None


def _by_kinds(roots: Iterable[Object]) -> dict[Kinds, list[Object]]:
    """Roots by the chain that leads to what they have made."""
    sorted_: dict[Kinds, list[Object]] = {}
    for root in roots:
        sorted_.setdefault(_kinds(root), []).append(root)
    return sorted_


def _kinds(root: Object) -> Kinds:
    if is_cluster_api(root):
        return machines_in(f"{CLUSTER_API}/{root['apiVersion'].rpartition('/')[2]}")
    return PODS_OF_WORKLOADS if wave_of(root["apiVersion"], root["kind"]) is Wave.CUSTOM_RESOURCES else PODS


def slim(found: Object) -> Object:
    """What is kept of each while they are watched: there may be thousands."""
    metadata = found["metadata"]
    kept = ("name", "namespace", "uid", "ownerReferences", "deletionTimestamp")
    spec, status = at(found, "spec"), at(found, "status")
    return {
        "apiVersion": found.get("apiVersion"),
        "kind": found.get("kind"),
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {
            "nodeName": spec.get("nodeName"),
            **({key: spec.get(key) for key in ("version", "template")} if is_cluster_api(found) else {}),
        },
        "status": {key: status[key] for key in ("phase", "conditions", "nodeRef") if key in status},
    }


def _vnfc(found: Object, root: Object) -> FoundMachine:
    metadata = found["metadata"]
    annotations = root["metadata"].get("annotations") or {}
    spec, status = at(found, "spec"), at(found, "status")
    return FoundMachine(
        id=uid_of(found),
        name=metadata["name"],
        vdu=annotations.get(VDU, root["metadata"]["name"]),
        type=found.get("kind") or "Pod",
        resource_id=metadata["name"],
        ready=is_ready(found),
        host=spec.get("nodeName") or at(status, "nodeRef").get("name"),
    )
