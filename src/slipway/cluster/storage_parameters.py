"""A storage server beside the cluster, and the persistent volumes that it gives."""

from __future__ import annotations

from typing import Annotated

from slipway.cluster.reading import Parameters, Several
from slipway.cluster.values import Secret, key_text, name, network, node_path, package_path, secret, user


class VolumeSetup(Parameters, frozen=True, kw_only=True):
    volume_resource_id: Annotated[str, name]
    mount_to: Annotated[str, node_path]


class NfsExport(Parameters, frozen=True, kw_only=True):
    export_dir: Annotated[str, node_path]
    export_to: Annotated[str, network]


class StorageServerParameters(Parameters, frozen=True, kw_only=True):
    ssh_cp_name: Annotated[str, name]
    nic_cp_name: Annotated[str | None, name] = None
    username: Annotated[str, user]
    password: Annotated[Secret | None, secret] = None
    private_key: Annotated[Secret | None, key_text] = None
    cinder_volume_setup_params: Annotated[tuple[VolumeSetup, ...], Several(VolumeSetup, at_least=1)]
    nfs_server_setup_params: Annotated[tuple[NfsExport, ...], Several(NfsExport, at_least=1)]


class PersistentVolumeParameters(Parameters, frozen=True, kw_only=True):
    pv_manifest_file_path: Annotated[str, package_path]
    nfs_server_cp: Annotated[str, name]
