"""Parameters that are understood and that nothing is done about: refused by name, so that nobody counts on them."""

from __future__ import annotations

from collections.abc import Iterator

from slipway.cluster.parameters import DEFAULT_CNI, NOT_YET, PATH, ClusterParameters
from slipway.cluster.registry_parameters import HTTP, RegistryParameters
from slipway.cluster.source_parameters import SourceParameters
from slipway.model.errors import Unprocessable

NOTHING = "it does nothing yet; leave it out"
BY_SCRIPT = "with script_path the package's script decides this, and is not told; leave it out"
NOT_TOLD = "with script_path only HTTP registries without login are told to the package's script; leave it out"


def refuse_unsupported(parameters: ClusterParameters) -> None:
    """Unprocessable that names all of them."""
    found = [f"{PATH}.{name}: {why}." for name, why in (*_not_yet(parameters), *_by_script(parameters))]
    if found:
        raise Unprocessable(" ".join(found))


def _not_yet(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    for name in NOT_YET:
        if getattr(parameters, name):
            yield name, NOTHING
    if parameters.master_node.cluster_fip_name is not None:
        yield "master_node.cluster_fip_name", NOTHING


def _by_script(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    if parameters.script_path is None:
        return
    given = {
        "kubernetes_version": parameters.kubernetes_version is not None,
        "cni": parameters.cni != DEFAULT_CNI,
        "image_repository": parameters.image_repository is not None,
        "source": parameters.source != SourceParameters(),
        "master_node.taints": parameters.master_node.taints is not None,
        "worker_node.taints": parameters.worker_node.taints is not None,
    }
    yield from ((name, BY_SCRIPT) for name, is_given in given.items() if is_given)
    for at, registry in enumerate(parameters.private_registry_connection_info):
        yield from ((f"private_registry_connection_info[{at}].{name}", NOT_TOLD) for name in _beyond_http(registry))


def _beyond_http(registry: RegistryParameters) -> Iterator[str]:
    if registry.connection_type != HTTP:
        yield "connection_type"
    for name in ("username", "password", "certificate_path", "hosts_string"):
        if getattr(registry, name) is not None:
            yield name
