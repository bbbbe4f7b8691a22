"""A registry and a cluster that uses it, on simulated hosts: what to ask for, and what is seen on a node."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.model.operation import OperationType, State
from slipway.model.requests import CreateRequest, InstantiateRequest
from slipway.simulator.cluster.host import SimulatedHost, find_host
from tests.functional.cluster_rig import CLUSTER, ClusterRig, parameters
from tests.functional.next_package import NEXT_ID, OTHER_ID, onboard_next
from tests.functional.rig import SIMULATED_VIM

REGISTRY = Path(__file__).parents[2] / "samples" / "registry-sandbox"
INSTALLATION = "private_registry_installation_param"
CONNECTION = "private_registry_connection_info"
USER, PASSWORD = "puller", "let me: \"in\" % 'please'"
LOGIN = {"ssh_cp_name": "CP1", "ssh_username": "root", "ssh_password": "over the hills"}
SECURE = {"tls": {}, "users": [{"username": USER, "password": PASSWORD}], "data_volume": "registryData"}
SLOT = "PrivateRegistryVDU-0"


def docker_archive(name: str, files: Mapping[str, bytes] | None = None) -> bytes:
    """As `docker save` makes it; `files` take the place of its own."""
    layer = tar_of({"hello": b"world"})
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = json.dumps({"rootfs": {"type": "layers", "diff_ids": [digest]}, "os": "linux"}).encode()
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["one/layer.tar"]}]
    own = {"manifest.json": json.dumps(manifest).encode(), "config.json": config, "one/layer.tar": layer}
    return tar_of(own | dict(files or {}))


def tar_of(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def installation(**more: Any) -> InstantiateRequest:
    asked = {**LOGIN, "source": "package", **more}
    return InstantiateRequest(flavour_id="simple", additional_params={INSTALLATION: asked})


async def onboard_registry(rig: ClusterRig, directory: Path, files: Mapping[str, bytes]) -> None:
    await onboard_next(rig.rig, with_files(REGISTRY, directory / "registry", files), directory / "next", NEXT_ID)


async def onboard_cluster(rig: ClusterRig, directory: Path, files: Mapping[str, bytes], sample: Path = CLUSTER) -> None:
    await onboard_next(rig.rig, with_files(sample, directory / "cluster", files), directory / "next", OTHER_ID)


def with_files(sample: Path, tree: Path, files: Mapping[str, bytes]) -> Path:
    shutil.copytree(sample, tree)
    for path, content in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content)
    return tree


async def created(rig: ClusterRig, vnfd_id: str) -> str:
    return (await rig.rig.slipway.lcm.create_instance(CreateRequest(vnfd_id=vnfd_id))).vnf.id


async def a_registry(rig: ClusterRig, **more: Any) -> tuple[str, dict[str, Any]]:
    """Its instance, and what the record says of it."""
    instance_id = await created(rig, NEXT_ID)
    done = await rig.rig.run(OperationType.INSTANTIATE, instance_id, installation(**more))
    assert done.operation_state is State.COMPLETED, done.error
    return instance_id, await outputs(rig, instance_id)


async def outputs(rig: ClusterRig, instance_id: str) -> dict[str, Any]:
    info = (await rig.rig.instance(instance_id)).vnf.instantiated_vnf_info
    assert info is not None
    found: dict[str, Any] = info.metadata["registry"]
    return found


def connection(server: str, **more: Any) -> dict[str, Any]:
    return {"connection_type": "1", "server": server, "username": USER, "password": PASSWORD,
            "certificate_path": "Files/registries/ca.crt", "image": "tools/shell:1", **more}  # fmt: skip


def asking(*registries: Mapping[str, Any], **more: Any) -> InstantiateRequest:
    asked = parameters(private_registry_connection_info=list(registries), **more)
    return InstantiateRequest(flavour_id="simple", additional_params=asked)


async def host_at(rig: ClusterRig, instance_id: str, slot: str) -> SimulatedHost:
    machine = (await rig.machines(instance_id))[slot]
    return rig.connector.simulation.look(SIMULATED_VIM, lambda db, _: find_host(db, machine))
