"""A cluster with a storage server on real machines: how it is asked for, and its volumes seen from outside and inside.

The kernel of the lab has neither an NFS server nor a client: nfs-ganesha serves, and tools of libnfs read and write.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.lab.cluster_lab import PASSWORD, ClusterLab, parameters

SERVER = {
    "ssh_cp_name": "storageServer_CP1",
    "username": "slipway",
    "password": PASSWORD,
    "cinder_volume_setup_params": [{"volume_resource_id": "storageServer_volume", "mount_to": "/volume"}],
    "nfs_server_setup_params": [
        {"export_dir": f"/volume/nfs/pv{number}", "export_to": "10.12.0.0/24"} for number in (1, 2)
    ],
}
VOLUMES = [
    {"pv_manifest_file_path": f"Files/kubernetes/nfs-pv{number}.yaml", "nfs_server_cp": "storageServer_CP1"}
    for number in (1, 2)
]


def instantiation(server: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """`server` over what the storage server is asked for, `more` over what the cluster is."""
    given = parameters(storage_server={**SERVER, **(server or {})}, pv_registration_params=VOLUMES, **more)
    return {"flavourId": "storage", "additionalParams": given}


def volumes(lab: ClusterLab) -> dict[str, tuple[str, str]]:
    """Phase and server, by name."""
    found = lab.kube(lambda api: api.list("/api/v1/persistentvolumes"))
    return {one["metadata"]["name"]: (one["status"]["phase"], one["spec"]["nfs"]["server"]) for one in found}


def available(lab: ClusterLab) -> dict[str, tuple[str, str]]:
    address = lab.address("storageServer-0")
    return {"nfs-pv1": ("Available", address), "nfs-pv2": ("Available", address)}


def url(lab: ClusterLab, file: str) -> str:
    return f"nfs://{lab.address('storageServer-0')}/volume/nfs/pv1/{file}?version=4"


def write(lab: ClusterLab, slot: str, file: str, text: str) -> None:
    lab.inside(slot, "sh", "-c", f"echo '{text}' >/tmp/{file} && nfs-cp /tmp/{file} '{url(lab, file)}'")


def read(lab: ClusterLab, slot: str, file: str) -> str:
    return lab.inside(slot, "nfs-cat", url(lab, file)).strip()


def until(look: Callable[[], bool], what: str, within: float = 120) -> None:
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, f"not within {within:g} s: {what}"
        time.sleep(0.5)
