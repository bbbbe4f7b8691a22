"""What a Kubernetes VIM can't hold, known from the VNFD and the request alone."""

from __future__ import annotations

from slipway.model.errors import Unprocessable
from slipway.model.target import Change, VnfTarget
from slipway.vim.kubernetes.cnf_parameters import cnf_parameters


def refuse_machines(target: VnfTarget) -> None:
    """A Vdu.Compute is a machine, but in packages that bring manifests for it: there it names an object."""
    machines = [vdu.name for vdu in target.flavour.vdus.values() if not vdu.container]
    if machines and not cnf_parameters(target).files:
        raise Unprocessable(
            f"A Kubernetes VIM runs containers, and {', '.join(machines)} are machines; choose another VIM, or a "
            "package that brings manifests for them (additionalParams.lcm-kubernetes-def-files)."
        )


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
