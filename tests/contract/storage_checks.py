"""What a storage server needs: disks that are found by their ids, NFS, persistent volumes and their claims."""

from __future__ import annotations

from slipway.cluster.nfs_config import Export
from slipway.cluster.steps.machine import line, run
from slipway.cluster.steps.storage import mount_volumes, nfs_client, serve_nfs
from slipway.cluster.steps.storage_arguments import Mount, MountVolumes, NfsClient, ServeNfs
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi, Object
from tests.contract.cluster_world import CIDR, Check, Stage, refused

VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
EXPORT = Export(directory="/volume/nfs/pv1", mount="/volume", clients=(CIDR,))


async def a_volume_is_found_by_its_id_and_keeps_its_file_system(stage: Stage) -> None:
    host = await stage.host(stage.worker)
    (volume,) = (await stage.ctx.machine(stage.worker.machine)).volumes
    first = await run(host, "mount_volume", volume.resource_id, "/volume", limit=120)
    again = await run(host, "mount_volume", volume.resource_id, "/volume", limit=120)
    assert first.text == again.text != ""
    unknown = await host.run(line("mount_volume", "0c5d1c0e-8d5a", "/other"), sudo=True, limit=120, check=False)
    assert (unknown.exit_code, b"no disk bears the id" in unknown.stderr) == (66, True)
    other = MountVolumes(node=stage.worker, cluster=stage.cluster, mounts=(Mount(storage="other", path="/other"),))
    await refused(mount_volumes(stage.world, other, stage.ctx), "has 0 volumes other; the VIM shows: data")


async def directories_are_served_only_from_a_volume(stage: Stage) -> None:
    serve = ServeNfs(node=stage.worker, cluster=stage.cluster, exports=(EXPORT,))
    for _ in range(2):
        await serve_nfs(stage.world, serve, stage.ctx)
    host = await stage.host(stage.worker)
    kind, *missing = (await run(host, "nfs_facts", "server")).text.split()
    assert kind in ("kernel", "ganesha")
    assert missing == []
    nowhere = Export(directory="/nowhere/pv1", mount="/nowhere", clients=(CIDR,))
    elsewhere = ServeNfs(node=stage.worker, cluster=stage.cluster, exports=(nowhere,))
    await refused(serve_nfs(stage.world, elsewhere, stage.ctx), "no volume is mounted at /nowhere")
    await serve_nfs(stage.world, serve, stage.ctx)


async def a_node_becomes_a_client(stage: Stage) -> None:
    for _ in range(2):
        await nfs_client(stage.world, NfsClient(node=stage.master, cluster=stage.cluster), stage.ctx)
    assert (await run(await stage.host(stage.master), "nfs_facts", "client")).text == ""


async def a_bound_volume_stays_until_its_claim_is_gone(stage: Stage) -> None:
    async with stage.api() as api:
        for name in ("contract-1", "contract-2"):
            await api.create(VOLUMES, _volume(name))
            await stage.until(lambda name=name: _is(api, name, "Available"), f"{name} is Available")  # type: ignore[misc]
            await api.create(CLAIMS, _claim(name))
            await stage.until(lambda name=name: _is(api, name, "Bound"), f"{name} is Bound")  # type: ignore[misc]
        await api.delete(f"{VOLUMES}/contract-1")
        assert (await api.get(f"{VOLUMES}/contract-1"))["metadata"]["deletionTimestamp"]
        for name in ("contract-1", "contract-2"):
            await api.delete(f"{CLAIMS}/{name}")
        await stage.until(lambda: _is(api, "contract-1", None), "contract-1 is gone")
        await stage.until(lambda: _is(api, "contract-2", "Released"), "contract-2 is Released")
        await api.delete(f"{VOLUMES}/contract-2")
        await stage.until(lambda: _is(api, "contract-2", None), "contract-2 is gone")


async def _is(api: KubeApi, name: str, phase: str | None) -> bool:
    """None: it is gone."""
    try:
        found = (await api.get(f"{VOLUMES}/{name}"))["status"].get("phase")
    except KubeError as error:
        if error.status != 404:
            raise
        found = None
    return bool(found == phase)


def _volume(name: str) -> Object:
    nfs = {"server": "192.0.2.9", "path": "/volume/nfs/pv1"}
    spec = {"capacity": {"storage": "100Mi"}, "accessModes": ["ReadWriteMany"], "nfs": nfs,
            "persistentVolumeReclaimPolicy": "Retain"}  # fmt: skip
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def _claim(name: str) -> Object:
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": name,
            "resources": {"requests": {"storage": "50Mi"}}}  # fmt: skip
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


STORAGE_HOST_CHECKS: tuple[Check, ...] = (
    a_volume_is_found_by_its_id_and_keeps_its_file_system,
    directories_are_served_only_from_a_volume,
    a_node_becomes_a_client,
)
STORAGE_KUBE_CHECKS: tuple[Check, ...] = (a_bound_volume_stays_until_its_claim_is_gone,)
