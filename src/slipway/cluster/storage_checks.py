"""Whether a storage server can be set up as asked: its machine, its volumes, what it serves, and to whom.

All of it is known at the request, but for what the package's manifests say (persistent_volumes.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from slipway.cluster.parameters import PATH, ClusterParameters, StorageServerParameters
from slipway.cluster.roles import unknown
from slipway.cluster.schema import Problems, Refusal
from slipway.model.descriptor import Flavour

SERVER = f"{PATH}.storage_server"
VOLUMES = f"{SERVER}.cinder_volume_setup_params"
EXPORTS = f"{SERVER}.nfs_server_setup_params"


def check_storage(
    parameters: ClusterParameters,
    flavour: Flavour,
    counts: Mapping[str, int],
    nodes: Collection[str],
    *,
    has_template: bool,
    problems: Problems,
) -> str | None:
    """The VDU of the storage server, if there is one. `nodes`: the VDUs of masters and workers."""
    server = parameters.storage_server
    if server is None:
        return None
    vdu = _vdu(server, flavour, has_template=has_template, problems=problems)
    if vdu is None:
        return None
    if vdu in nodes:
        what = f"{vdu!a} is a VDU of the cluster's nodes"
        problems.add(f"{SERVER}.ssh_cp_name", Refusal(what, "name a connection point of the storage server's own VDU"))
    elif counts.get(vdu) != 1:
        what = f"there would be {counts.get(vdu)} machines of {vdu!a}, and one serves the volumes"
        problems.add(f"{SERVER}.ssh_cp_name", Refusal(what, "choose a flavour or level with one"))
    _check_volumes(server, vdu, flavour, problems)
    _check_exports(server, problems)
    _check_manifests(parameters, vdu, flavour, problems)
    return vdu


def is_within(directory: str, place: str) -> bool:
    return PurePosixPath(directory).is_relative_to(place)


def _vdu(server: StorageServerParameters, flavour: Flavour, *, has_template: bool, problems: Problems) -> str | None:
    """By the connection point of its traffic: SSH may go to a floating IP of the VIM's template."""
    points = flavour.connection_points
    floating = has_template and server.nic_cp_name is not None
    for parameter, point in (("ssh_cp_name", server.ssh_cp_name), ("nic_cp_name", server.nic_cp_name)):
        if point is not None and point not in points and not (floating and parameter == "ssh_cp_name"):
            problems.add(f"{SERVER}.{parameter}", unknown("connection point", point, points))
            return None
    vdu = points[server.traffic_cp_name].vdu
    if server.ssh_cp_name in points and points[server.ssh_cp_name].vdu != vdu:
        what = f"the connection points {server.ssh_cp_name!a} and {server.nic_cp_name!a} belong to different VDUs"
        problems.add(f"{SERVER}.nic_cp_name", Refusal(what, "name two of one VDU, or leave it out"))
    return vdu


def _check_volumes(server: StorageServerParameters, vdu: str, flavour: Flavour, problems: Problems) -> None:
    own = [name for name in flavour.vdus[vdu].storages if flavour.storages[name].kind == "block"]
    asked = server.cinder_volume_setup_params
    for at, volume in enumerate(asked):
        if volume.volume_resource_id not in own:
            what = f"{vdu!a} has no block storage {volume.volume_resource_id!a} in the VNFD"
            cure = f"write one of: {', '.join(own) or '(there is none)'}"
            problems.add(f"{VOLUMES}[{at}].volume_resource_id", Refusal(what, cure))
        elif image := flavour.storages[volume.volume_resource_id].image:
            what = f"the VNFD fills that storage with the image {image.name!a}"
            problems.add(f"{VOLUMES}[{at}].volume_resource_id", Refusal(what, "name one that is empty"))
        if volume.volume_resource_id in [one.volume_resource_id for one in asked[:at]]:
            problems.add(f"{VOLUMES}[{at}].volume_resource_id", Refusal("it is there twice", "mount a volume once"))
        for other in asked[:at]:
            if is_within(volume.mount_to, other.mount_to) or is_within(other.mount_to, volume.mount_to):
                what = f"it overlaps with {other.mount_to}"
                problems.add(f"{VOLUMES}[{at}].mount_to", Refusal(what, "mount volumes side by side"))


def _check_exports(server: StorageServerParameters, problems: Problems) -> None:
    places = [volume.mount_to for volume in server.cinder_volume_setup_params]
    seen: list[tuple[str, str]] = []
    for at, export in enumerate(server.nfs_server_setup_params):
        if not any(is_within(export.export_dir, place) for place in places):
            what = "it is on none of the volumes, so it would be lost with the machine"
            cure = f"choose a directory below {' or '.join(places)}"
            problems.add(f"{EXPORTS}[{at}].export_dir", Refusal(what, cure))
        if (export.export_dir, export.export_to) in seen:
            problems.add(f"{EXPORTS}[{at}]", Refusal("it is there twice", "leave one out"))
        seen.append((export.export_dir, export.export_to))


def _check_manifests(parameters: ClusterParameters, vdu: str, flavour: Flavour, problems: Problems) -> None:
    own: Sequence[str] = [point.name for point in flavour.connection_points.values() if point.vdu == vdu]
    for at, volume in enumerate(parameters.pv_registration_params):
        if volume.nfs_server_cp not in own:
            what = f"the storage server's VDU {vdu!a} has no connection point {volume.nfs_server_cp!a}"
            problems.add(f"{PATH}.pv_registration_params[{at}].nfs_server_cp",
                         Refusal(what, f"write one of: {', '.join(own)}"))  # fmt: skip
