"""What a request says about a cluster: `additionalParams.k8s_cluster_installation_param`, of either dialect.

Packages and requests written for other managers must be understood as they stand, so their names are kept. What they
leave out has a default that works, and one error names all that is wrong, with the path and the cure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from slipway.cluster.kubernetes_names import Taint, labels, taints
from slipway.cluster.schema import ListOf, Nested, Parameters, Refusal, read
from slipway.cluster.source_parameters import HelmInstallation, ProxyParameters, SourceParameters
from slipway.cluster.values import (
    Secret,
    address,
    choice,
    data_directory,
    flag,
    host_key,
    hosts_line,
    image,
    image_repository,
    key_text,
    name,
    network,
    optional_package_path,
    optional_text,
    package_path,
    registry_user,
    secret,
    server,
    text,
    user,
    whole,
)
from slipway.cluster.versions import Version, version
from slipway.model.errors import BadRequest
from slipway.model.json_documents import merge_patch

NAME = "k8s_cluster_installation_param"
PATH = f"additionalParams.{NAME}"
REGISTRIES = "private_registry_connection_info"
STORAGE = "storage_server"
VOLUME_SETUP, EXPORTS, VOLUMES = "cinder_volume_setup_params", "nfs_server_setup_params", "pv_registration_params"

DEFAULT_CNI = "flannel"
BUILT_IN_CNIS = (DEFAULT_CNI, "none")
HTTP, HTTPS = 0, 1  # `connection_type` of a registry
BY_KUBESPRAY = ("ansible", "external_lb_param")  # for clusters that kubespray builds: slipway/kubespray
OFTEN_EMPTY = (
    *BY_KUBESPRAY,
    STORAGE,
    VOLUMES,
)  # in requests that are made for other managers
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


class LoginParameters(Parameters, frozen=True, kw_only=True):
    """How SSH gets into machines of one role, by connection points of the VNFD."""

    ssh_cp_name: Annotated[str, name]
    nic_cp_name: Annotated[str | None, name] = None  # the CP of the cluster's own traffic; else that of SSH
    username: Annotated[str, user]
    password: Annotated[Secret | None, secret] = None
    private_key: Annotated[Secret | None, key_text] = None
    passphrase: Annotated[Secret | None, secret] = None
    ssh_port: Annotated[int, whole(1, 65535)] = 22

    @property
    def traffic_cp_name(self) -> str:
        return self.nic_cp_name or self.ssh_cp_name

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        yield from _login_contradictions(given)


class NodeParameters(LoginParameters, frozen=True, kw_only=True):
    """Machines of one role. They are named by aspect (v1) or by VDU (v2); otherwise by the CP that SSH uses."""

    aspect_id: Annotated[str | None, name] = None
    vdu_id: Annotated[str | None, name] = None
    labels: Annotated[dict[str, str], labels] = msgspec.field(default_factory=dict)
    taints: Annotated[tuple[Taint, ...] | None, taints] = None  # None: what Kubernetes does by itself


class MasterParameters(NodeParameters, frozen=True, kw_only=True):
    """`pod_cidr` and `cluster_cidr` (the Services' network) are chosen when not given: cluster/networks.py."""

    pod_cidr: Annotated[str | None, network] = None
    cluster_cidr: Annotated[str | None, network] = None
    cluster_cp_name: Annotated[str | None, name] = None
    cluster_ip: Annotated[str | None, address] = None
    cluster_fip_name: Annotated[str | None, name] = None


class WorkerParameters(NodeParameters, frozen=True, kw_only=True):
    pass


class RegistryParameters(Parameters, frozen=True, kw_only=True):
    """`connection_type` is 0 for HTTP and 1 for HTTPS, as number or text. `image`: each node pulls it as a check."""

    connection_type: Annotated[int, whole(HTTP, HTTPS)]
    server: Annotated[str, server]
    username: Annotated[str | None, registry_user] = None
    password: Annotated[Secret | None, secret] = None
    certificate_path: Annotated[str | None, package_path] = None
    hosts_string: Annotated[str | None, hosts_line] = None
    image: Annotated[str | None, image] = None

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if ("username" in given) != ("password" in given):
            missing = "password" if "username" in given else "username"
            yield missing, Refusal("it is missing beside the other half of the login", "give both or neither")
        if "certificate_path" in given and given["connection_type"] == HTTP:
            cure = "set connection_type to 1 or leave the certificate out"
            yield "certificate_path", Refusal("HTTP has no certificate", cure)


class RegistryList(Parameters, frozen=True, kw_only=True):
    """The registries alone, as a modification gives them."""

    private_registry_connection_info: Annotated[tuple[RegistryParameters, ...], ListOf(RegistryParameters)] = ()

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        yield from _repeated_registries(given)


def _repeated_registries(given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
    servers = [one.server.lower() for one in given.get(REGISTRIES, ())]
    for at, name_ in enumerate(servers):
        if name_ in servers[:at]:
            refusal = Refusal("the server is in the list twice", "say each once, with everything about it")
            yield f"{REGISTRIES}[{at}].server", refusal


class VolumeSetup(Parameters, frozen=True, kw_only=True):
    volume_resource_id: Annotated[str, name]
    mount_to: Annotated[str, data_directory]


class NfsExport(Parameters, frozen=True, kw_only=True):
    export_dir: Annotated[str, data_directory]
    export_to: Annotated[str, network]


class StorageServerParameters(LoginParameters, frozen=True, kw_only=True):
    cinder_volume_setup_params: Annotated[tuple[VolumeSetup, ...], ListOf(VolumeSetup, at_least=1)]
    nfs_server_setup_params: Annotated[tuple[NfsExport, ...], ListOf(NfsExport, at_least=1)]


class PersistentVolumeParameters(Parameters, frozen=True, kw_only=True):
    pv_manifest_file_path: Annotated[str, package_path]
    nfs_server_cp: Annotated[str, name]


class AnsibleParameters(Parameters, frozen=True, kw_only=True):
    """Empty paths are accepted, as documents print them; whoever runs Ansible asks for them."""

    ip_address: Annotated[str, name]
    username: Annotated[str, user]
    password: Annotated[Secret | None, secret] = None
    private_key: Annotated[Secret | None, key_text] = None
    passphrase: Annotated[Secret | None, secret] = None
    ssh_port: Annotated[int, whole(1, 65535)] = 22
    host_key: Annotated[str | None, host_key] = None
    kubespray_root_path: Annotated[str | None, optional_text] = None
    transferring_inventory_path: Annotated[str | None, optional_text] = None

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        yield from _login_contradictions(given)


class ExternalLoadBalancerParameters(Parameters, frozen=True, kw_only=True):
    """`ssh_cp_name`: a connection point, a floating IP of the VIM's template, or the VDU or its aspect by name."""

    ssh_cp_name: Annotated[str, name]
    ssh_username: Annotated[str, user]
    ssh_password: Annotated[Secret | None, secret] = None
    ssh_private_key: Annotated[Secret | None, key_text] = None
    ssh_passphrase: Annotated[Secret | None, secret] = None
    ssh_port: Annotated[int, whole(1, 65535)] = 22
    script_path: Annotated[str | None, optional_package_path] = None  # else Slipway's own template

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if "ssh_password" not in given and "ssh_private_key" not in given:
            cure = "give one of them to log in with"
            yield "ssh_password", Refusal("there is neither ssh_password nor ssh_private_key", cure)
        if "ssh_passphrase" in given and "ssh_private_key" not in given:
            yield "ssh_passphrase", Refusal("there is no ssh_private_key that it would open", "give it, too")


class ClusterParameters(Parameters, frozen=True, kw_only=True):
    script_path: Annotated[str | None, optional_package_path] = None
    vim_name: Annotated[str | None, name] = None
    master_node: Annotated[MasterParameters, Nested(MasterParameters)]
    worker_node: Annotated[WorkerParameters, Nested(WorkerParameters)]
    kubernetes_version: Annotated[Version | None, version] = None
    cni: Annotated[str, cni] = DEFAULT_CNI
    image_repository: Annotated[str | None, image_repository] = None
    source: Annotated[SourceParameters, Nested(SourceParameters)] = SourceParameters()
    helm: Annotated[HelmInstallation | None, Nested(HelmInstallation)] = None
    helm_installation_script_path: Annotated[str | None, optional_package_path] = None
    proxy: Annotated[ProxyParameters, Nested(ProxyParameters)] = ProxyParameters()
    drain: Annotated[DrainParameters, Nested(DrainParameters)] = DrainParameters()
    smoke_test: Annotated[bool, flag] = True
    private_registry_connection_info: Annotated[tuple[RegistryParameters, ...], ListOf(RegistryParameters)] = ()
    storage_server: Annotated[StorageServerParameters | None, Nested(StorageServerParameters)] = None
    pv_registration_params: Annotated[tuple[PersistentVolumeParameters, ...], ListOf(PersistentVolumeParameters)] = ()
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
        yield from _repeated_registries(given)

    def vim_name_for(self, instance_id: str) -> str:
        """The name under which the new cluster is registered as a VIM."""
        return self.vim_name or default_vim_name(instance_id)


def _login_contradictions(given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
    if "password" not in given and "private_key" not in given:
        yield "password", Refusal("there is neither password nor private_key", "give one of them to log in with")
    if "passphrase" in given and "private_key" not in given:
        yield "passphrase", Refusal("there is no private_key that it would open", "give private_key, too")


def default_vim_name(instance_id: str) -> str:
    return f"kubernetes_vim_{instance_id}"


def read_parameters(additional_params: dict[str, Any]) -> ClusterParameters:
    """Of an instantiate request. Keys beside the cluster's own belong to others."""
    if additional_params.get(NAME) is None:
        raise BadRequest(f"{PATH}: is missing; describe the cluster's master_node and worker_node in it.")
    given = additional_params[NAME]
    if isinstance(given, dict):
        given = {key: value for key, value in given.items() if value or key not in OFTEN_EMPTY}
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
    has_one = bool((stored.get(NAME) or {}).get(STORAGE))
    if has_one and not merged.get(STORAGE):  # nobody would ask who uses its volumes
        raise BadRequest(f"{PATH}.{STORAGE}: the cluster has one; leave it out, or say what is new of it.")
    if merged.get(STORAGE) and not has_one:  # nor of volumes that the next operation knows nothing of
        raise BadRequest(
            f"{PATH}.{STORAGE}: the cluster has none, and its nodes no NFS client; leave it out, or instantiate "
            "another cluster with it."
        )
    return read_parameters({NAME: merged})


def with_storage_said(stored: dict[str, Any], additional_params: dict[str, Any]) -> dict[str, Any]:
    """What the instance keeps after a scale or a heal: what its storage server was set up with, if that was said.

    Other words than the stored ones were refused unless the server was made with them.
    """
    given, kept = additional_params.get(NAME), stored.get(NAME)
    if not isinstance(given, dict) or not isinstance(kept, dict) or not kept.get(STORAGE):
        return stored
    server = given.get(STORAGE)
    of_server = server if isinstance(server, dict) else {}
    said = {name: given[name] for name in (VOLUMES,) if name in given}
    said[STORAGE] = {name: of_server[name] for name in (VOLUME_SETUP, EXPORTS) if name in of_server}
    return merge_patch(stored, {NAME: said})  # type: ignore[no-any-return]
