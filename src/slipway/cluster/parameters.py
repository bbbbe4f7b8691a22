"""What a request says about a cluster: `additionalParams.k8s_cluster_installation_param`, of either dialect.

Packages and requests written for other managers must be understood as they stand, so their names are kept. What they
leave out has a default that works, and what is wrong is told all at once, with the path and the cure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from slipway.cluster.kubespray_parameters import AnsibleParameters, ExternalLoadBalancerParameters
from slipway.cluster.node_parameters import MasterParameters, WorkerParameters
from slipway.cluster.reading import Nested, Parameters, Refusal, Several, read
from slipway.cluster.registry_parameters import RegistryParameters
from slipway.cluster.source_parameters import HelmParameters, ProxyParameters, SourceParameters
from slipway.cluster.storage_parameters import PersistentVolumeParameters, StorageServerParameters
from slipway.cluster.values import (
    Secret,
    choice,
    flag,
    image_repository,
    name,
    optional_package_path,
    package_path,
    secret,
    text,
    user,
    whole,
)
from slipway.cluster.versions import Version, version
from slipway.model.errors import BadRequest
from slipway.model.merge import merge_patch

NAME = "k8s_cluster_installation_param"
PATH = f"additionalParams.{NAME}"

DEFAULT_CNI = "flannel"
BUILT_IN_CNIS = (DEFAULT_CNI, "none")
NOT_YET = ("storage_server", "pv_registration_params", "ansible", "external_lb_param")  # cluster/unsupported.py
_MANIFESTS = (".yaml", ".yml", ".json")


def cni(value: Any) -> str:
    """A built-in CNI by name, or a manifest of the package."""
    given = text(value)
    if given in BUILT_IN_CNIS:
        return given
    if not given.endswith(_MANIFESTS):
        known = ", ".join(BUILT_IN_CNIS)
        raise Refusal("it is no built-in CNI", f"write one of: {known}; or a manifest like Files/kubernetes/cni.yaml")
    return package_path(given)


class DrainParameters(Parameters, frozen=True, kw_only=True):
    """How pods leave a node. `empty_dir` says what happens to pods whose data would be lost with them."""

    timeout: Annotated[int, whole(1, 86400)] = 600
    empty_dir: Annotated[Literal["delete", "refuse"], choice("delete", "refuse")] = "delete"
    force: Annotated[bool, flag] = False


class ShortCredentials(Parameters, frozen=True, kw_only=True):
    """New credentials in scale and heal requests, directly under additionalParams."""

    master_node_username: Annotated[str | None, user] = None
    master_node_password: Annotated[Secret | None, secret] = None
    worker_node_username: Annotated[str | None, user] = None
    worker_node_password: Annotated[Secret | None, secret] = None


class ClusterParameters(Parameters, frozen=True, kw_only=True):
    script_path: Annotated[str | None, optional_package_path] = None
    vim_name: Annotated[str | None, name] = None
    master_node: Annotated[MasterParameters, Nested(MasterParameters)]
    worker_node: Annotated[WorkerParameters, Nested(WorkerParameters)]
    kubernetes_version: Annotated[Version | None, version] = None
    cni: Annotated[str, cni] = DEFAULT_CNI
    image_repository: Annotated[str | None, image_repository] = None
    source: Annotated[SourceParameters, Nested(SourceParameters)] = SourceParameters()
    helm: Annotated[HelmParameters | None, Nested(HelmParameters)] = None
    helm_installation_script_path: Annotated[str | None, optional_package_path] = None
    proxy: Annotated[ProxyParameters, Nested(ProxyParameters)] = ProxyParameters()
    drain: Annotated[DrainParameters, Nested(DrainParameters)] = DrainParameters()
    smoke_test: Annotated[bool, flag] = True
    private_registry_connection_info: Annotated[tuple[RegistryParameters, ...], Several(RegistryParameters)] = ()
    storage_server: Annotated[StorageServerParameters | None, Nested(StorageServerParameters)] = None
    pv_registration_params: Annotated[tuple[PersistentVolumeParameters, ...], Several(PersistentVolumeParameters)] = ()
    ansible: Annotated[AnsibleParameters | None, Nested(AnsibleParameters)] = None
    external_lb_param: Annotated[ExternalLoadBalancerParameters | None, Nested(ExternalLoadBalancerParameters)] = None

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        source = given.get("source") or SourceParameters()
        if source.kind == "packages" and given.get("kubernetes_version") is None:
            cure = "say which version to install, like 1.34.4"
            yield "kubernetes_version", Refusal("it is missing, and packages come in many versions", cure)
        if given.get("helm") is not None and given.get("helm_installation_script_path") is not None:
            yield "helm", Refusal("it contradicts helm_installation_script_path", "give one of them")
        if given.get("pv_registration_params") and given.get("storage_server") is None:
            cure = "describe storage_server, or leave the volumes out"
            yield "pv_registration_params", Refusal("there is no storage server for the volumes", cure)

    def vim_name_for(self, instance_id: str) -> str:
        """The name under which the new cluster is registered as a VIM."""
        return self.vim_name or f"kubernetes_vim_{instance_id}"


def read_parameters(additional_params: dict[str, Any]) -> ClusterParameters:
    """Of an instantiate request. Keys beside the cluster's own belong to others."""
    if additional_params.get(NAME) is None:
        raise BadRequest(f"{PATH}: is missing; describe the cluster's master_node and worker_node in it.")
    given = additional_params[NAME]
    if isinstance(given, dict):
        # Requests made for other managers carry some of them empty: that asks for nothing.
        given = {key: value for key, value in given.items() if value or key not in NOT_YET}
    return read(ClusterParameters, given, PATH)


def parameters_now(stored: dict[str, Any], additional_params: dict[str, Any]) -> ClusterParameters:
    """Of a later request: what was stored, and over it what the request says anew."""
    given = additional_params.get(NAME)
    if given is not None and not isinstance(given, dict):
        return read(ClusterParameters, given, PATH)
    merged = merge_patch(stored.get(NAME) or {}, given or {})
    short = {key: additional_params.get(key) for key in ShortCredentials.__struct_fields__}
    read(ShortCredentials, short, "additionalParams")
    for key, value in short.items():
        role, _, field = key.rpartition("_")
        merged = merge_patch(merged, {role: {field: value}}) if value is not None else merged
    return read_parameters({NAME: merged})
