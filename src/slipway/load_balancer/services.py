"""Which ports a CNF exposes: those of its Services of type NodePort, as manifests say and as the cluster chose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from slipway.cluster.kubernetes_names import DNS_LABEL
from slipway.kube import paths
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi
from slipway.load_balancer.routes import FrontEnd
from slipway.model.errors import StepError
from slipway.model.instance import VnfInstance
from slipway.model.machine import FoundObject
from slipway.model.target import VnfTarget
from slipway.vim.kubernetes.cnf_parameters import cnf_parameters
from slipway.vim.kubernetes.manifests import manifests_of

OBJECTS = "objects"  # in instantiatedVnfInfo.metadata
NODE_PORT = "NodePort"
ANY_NAMESPACE = "default"  # shown where a manifest does not say; what counts is where the cluster has it


class NotBalanced(Exception):
    """A port that HAProxy can't take: it knows TCP alone."""

    def __init__(self, service: str, port: str) -> None:
        super().__init__(f"Service {service} has the NodePort {port}, and the load balancer knows TCP only")


def declared(target: VnfTarget) -> tuple[FrontEnd, ...]:
    """Those whose number the manifests name. NotBalanced for what could never be exposed."""
    parameters = cnf_parameters(target)
    found = [
        (one.name, parameters.namespace or one.namespace or ANY_NAMESPACE, one.content.get("spec"))
        for one in manifests_of(target.files, parameters.files)
        if (one.api_version, one.kind) == ("v1", "Service")
    ]
    return tuple(port for name, namespace, spec in found for port in front_ends(name, namespace, spec))


def front_ends(name: str, namespace: str, spec: Any) -> Iterator[FrontEnd]:
    """Of a Service; ports without a number yet are left out. NotBalanced names what is not TCP."""
    if not isinstance(spec, dict) or spec.get("type") != NODE_PORT:
        return
    ports = spec.get("ports")
    for one in ports if isinstance(ports, list) else ():  # the cluster refuses anything else
        if not isinstance(one, dict):
            continue
        port, protocol = one.get("nodePort"), one.get("protocol") or "TCP"
        if protocol != "TCP":
            raise NotBalanced(f"{namespace}/{name}"[:200], f"{port or one.get('port')}/{protocol}"[:40])
        if type(port) is int and 1 <= port <= 65535 and DNS_LABEL.fullmatch(name):  # a bool is an int, too
            yield FrontEnd(port=port, namespace=namespace, service=name)


async def exposed_by(vnf: VnfInstance, api: KubeApi) -> tuple[FrontEnd, ...]:
    """As the cluster has them now. StepError names a Service that is gone, or can't be exposed."""
    found = list[FrontEnd]()
    for service in _services(vnf):
        namespace = service.namespace or ANY_NAMESPACE
        path = paths.namespaced("/api/v1", namespace, "services", service.name)
        try:
            found += front_ends(service.name, namespace, (await api.get(path)).get("spec"))
        except NotBalanced as error:
            raise StepError(f"{error}.", cure="expose its TCP ports in a Service of their own.") from None
        except KubeError as error:
            if error.status != 404:
                raise
            raise StepError(f"Service {namespace}/{service.name} of the VNF is gone.", cure="heal the VNF.") from None
    return tuple(sorted(found))


def _services(vnf: VnfInstance) -> Iterable[FoundObject]:
    info = vnf.instantiated_vnf_info
    objects = msgspec.convert(info.metadata.get(OBJECTS) or [] if info else [], list[FoundObject])
    return (one for one in objects if (one.api_version, one.kind) == ("v1", "Service"))
