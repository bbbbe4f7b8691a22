"""A cluster's storage server in tests on whatever VIM: what a request says of it, and data written and read by NFS.

The kernels of the labs have neither an NFS server nor a client: nfs-ganesha serves, and tools of libnfs read and write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from slipway.kube.interface import KubeApi

T = TypeVar("T")
SLOT = "storageServer-0"
VOLUMES = [
    {"pv_manifest_file_path": f"Files/kubernetes/nfs-pv{number}.yaml", "nfs_server_cp": "storageServer_CP1"}
    for number in (1, 2)
]


class StorageLab(Protocol):
    def address(self, slot: str) -> str: ...

    def inside(self, slot: str, *command: str) -> str:
        """What a command prints on a machine, by root."""

    def kube(self, work: Callable[[KubeApi], Awaitable[T]]) -> T: ...


def storage_server(network: str, **login: str) -> dict[str, Any]:
    """With one volume and two directories of it, for all who are in the network."""
    return {
        "ssh_cp_name": "storageServer_CP1",
        **login,
        "cinder_volume_setup_params": [{"volume_resource_id": "storageServer_volume", "mount_to": "/volume"}],
        "nfs_server_setup_params": [
            {"export_dir": f"/volume/nfs/pv{number}", "export_to": network} for number in (1, 2)
        ],
    }


def volumes(lab: StorageLab) -> dict[str, tuple[str, str]]:
    """Phase and server, by name."""
    found = lab.kube(lambda api: api.list("/api/v1/persistentvolumes"))
    return {one["metadata"]["name"]: (one["status"]["phase"], one["spec"]["nfs"]["server"]) for one in found}


def available(lab: StorageLab) -> dict[str, tuple[str, str]]:
    address = lab.address(SLOT)
    return {"nfs-pv1": ("Available", address), "nfs-pv2": ("Available", address)}


def url(lab: StorageLab, file: str) -> str:
    return f"nfs://{lab.address(SLOT)}/volume/nfs/pv1/{file}?version=4"


def write(lab: StorageLab, slot: str, file: str, text: str) -> None:
    lab.inside(slot, "sh", "-c", f"echo '{text}' >/tmp/{file} && nfs-cp /tmp/{file} '{url(lab, file)}'")


def read(lab: StorageLab, slot: str, file: str) -> str:
    return lab.inside(slot, "nfs-cat", url(lab, file)).strip()
