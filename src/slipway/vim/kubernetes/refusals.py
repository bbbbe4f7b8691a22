"""What a Kubernetes VIM can't hold, known from the VNFD and the request alone."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.model.descriptor import Vdu
from slipway.model.errors import Unprocessable
from slipway.model.machine import FoundObject
from slipway.model.target import Change, VnfTarget
from slipway.vim.kubernetes.cluster_api import CONTROL_PLANE
from slipway.vim.kubernetes.cnf_parameters import cnf_parameters
from slipway.vim.kubernetes.helm.parameters import uses_helm


def refuse_machines(target: VnfTarget) -> None:
    """A Vdu.Compute is a machine, but in packages that bring manifests for it: there it names an object."""
    machines = [vdu.name for vdu in target.flavour.vdus.values() if not vdu.container]
    if machines and not uses_helm(target) and not cnf_parameters(target).files:
        raise Unprocessable(
            f"A Kubernetes VIM runs containers, and {', '.join(machines)} are machines; choose another VIM, or a "
            "package that brings manifests for them (additionalParams.lcm-kubernetes-def-files)."
        )


def refuse_dependencies(target: VnfTarget) -> None:
    for vdu in target.flavour.vdus.values():
        if vdu.depends_on:
            raise Unprocessable(
                f"VDU {vdu.name}: the VNFD wants {', '.join(vdu.depends_on)} to be there before it, and a Kubernetes "
                "VIM starts all workloads at once; leave the dependency out, and let containers wait for each other."
            )


def refuse_last_of_a_control_plane(change: Change) -> None:
    """The state of a workload cluster is on its masters: with the last of them it is lost, whatever comes after."""
    healed = change.renewal.members
    if change.after is None or change.renewal.everything or not healed:
        return
    planes = [one for one in change.inventory.objects if (one.api_version or "").startswith(f"{CONTROL_PLANE}/")]
    for vdu in _vdus_of(planes, change.after):
        machines = {one.id for one in change.inventory.machines if one.vdu == vdu.name}
        if machines and machines <= healed:
            raise Unprocessable(
                f"vnfcInstanceId: all machines of the control plane {vdu.name} would be replaced, and the cluster's "
                "state with them; leave one of them out, or heal the whole VNF."
            )


def _vdus_of(objects: Sequence[FoundObject], target: VnfTarget) -> list[Vdu]:
    """Of objects that charts made it is recorded which VDU they are; manifests and parameters say it of theirs."""
    vdus = target.flavour.vdus.values()
    if uses_helm(target):
        return [vdu for vdu in vdus if any(one.vdu == vdu.name for one in objects)]
    mapping, names = cnf_parameters(target).mapping, {one.name for one in objects}
    return [vdu for vdu in vdus if (mapping[vdu.name].name if vdu.name in mapping else vdu.title or vdu.name) in names]


def refuse_connectivity(change: Change) -> None:
    """Pods get their networks from the cluster and from the manifests."""
    target = change.after
    if change.reconnects or (target and target.links):
        raise Unprocessable(
            "extVirtualLinks: a Kubernetes VIM connects pods to its own networks; leave it out, and say in the "
            "manifests (Services, annotations of pods) what they are connected to."
        )
    if target and target.managed_networks:
        raise Unprocessable("extManagedVirtualLinks: a Kubernetes VIM has no networks of a VNF's own; leave it out.")
