"""The machines of a workload cluster: whether all are as their MachineDeployments want them.

After a change of a MachineDeployment's template its counters and conditions say "done" for a while before its
controller has begun. So the machines themselves are looked at: by which MachineSet each was made, and from what.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.cluster.cluster_api.credentials import recorded_objects
from slipway.kube.interface import Object, ObjectApi, ObjectRef, ReportProgress
from slipway.kube.watch import Selection, wait_until
from slipway.model.instance import VnfInstance
from slipway.model.machine import FoundMachine
from slipway.vim.kubernetes.inventory import labelled
from slipway.vim.kubernetes.object_plan import VDU
from slipway.vim.kubernetes.vnfcs import list_vnfcs
from slipway.waiting import Observation

KINDS = ("MachineDeployment", "MachineSet", "Machine")
CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"
DEPLOYMENT_LABEL = "cluster.x-k8s.io/deployment-name"
COUNTERS = ("readyReplicas", "availableReplicas")


async def wait_for_machines(api: ObjectApi, cluster: ObjectRef, limit: float, report: ReportProgress) -> None:
    """All of its MachineDeployments: no machine of a former template is left, and all that are wanted work."""
    selections = [
        Selection(
            await api.discovery.resource(cluster.api_version, kind),
            cluster.namespace,
            labels=f"{CLUSTER_LABEL}={cluster.name}",
        )
        for kind in KINDS
    ]
    what = f"the machines of workload cluster {cluster.name} to be as the package says"
    await wait_until(api, selections, machines_settled, what, limit, keep=_kept, report=report)


async def cluster_machines(api: ObjectApi, vnf: VnfInstance) -> list[FoundMachine]:
    """The VNFCs of a workload cluster, by the objects that the record has."""
    kinds = {
        (one.api_version, one.kind, one.namespace)
        for one in recorded_objects(vnf)
        if one.api_version and one.api_version.partition("/")[0].endswith("cluster.x-k8s.io")
    }
    ours = await labelled(api, vnf.id, kinds)
    return await list_vnfcs(api, [one for one in ours if VDU in (one["metadata"].get("annotations") or {})])


def machines_settled(found: Mapping[ObjectRef, Object]) -> Observation:
    """Pure: by the objects as the management cluster has them."""
    sets = {one["uid"]: one for ref, one in found.items() if ref.kind == "MachineSet"}
    machines = [(ref.name, one) for ref, one in found.items() if ref.kind == "Machine"]
    for ref, deployment in found.items():
        if ref.kind != "MachineDeployment":
            continue
        own = [(name, one) for name, one in machines if one["labels"].get(DEPLOYMENT_LABEL) == ref.name]
        if late := _not_settled(ref, deployment, own, sets):
            return Observation(False, late)
    return Observation(True, "")


def _not_settled(
    ref: ObjectRef, deployment: Object, machines: list[tuple[str, Object]], sets: Mapping[str, Object]
) -> str | None:
    for name, machine in machines:
        if machine["deleting"]:
            return f"Machine {name} is being deleted"
        made_by = sets.get(machine["owner"])
        if made_by is None or made_by["template"] != deployment["template"]:
            return f"Machine {name} is of a former version or template"
    wanted, status = deployment["replicas"], deployment["status"]
    if len(machines) != wanted:
        return f"{ref} has {len(machines)} of {wanted} machines"
    for counter in COUNTERS:
        if status.get(counter, 0) != wanted:
            return f"{ref}: {counter} is {status.get(counter, 0)} of {wanted}"
    return None


def _kept(found: Object) -> Object:
    """What is needed of an object of any of the three kinds."""
    metadata, spec = found["metadata"], found.get("spec") or {}
    owners = [one for one in metadata.get("ownerReferences") or [] if one.get("controller")]
    return {
        "uid": str(metadata.get("uid")),
        "labels": metadata.get("labels") or {},
        "deleting": bool(metadata.get("deletionTimestamp")),
        "owner": str(owners[0].get("uid")) if owners else "",
        "replicas": spec.get("replicas", 1),
        "template": _template(spec),
        "status": found.get("status") or {},
    }


def _template(spec: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Version, infrastructure and bootstrap: what makes a machine another one."""
    inner = (spec.get("template") or {}).get("spec") or {}
    references = (inner.get("infrastructureRef") or {}, (inner.get("bootstrap") or {}).get("configRef") or {})
    return (inner.get("version"), *(one.get("name") for one in references))
