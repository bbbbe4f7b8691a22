"""What is refused of a storage server before anything is made."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slipway.cluster.checks import check_cluster
from slipway.cluster.parameters import NAME, PATH, read_parameters
from slipway.model.descriptor import Flavour
from slipway.model.errors import BadRequest
from slipway.model.package import SoftwareImage
from tests.unit.cluster.documents import VOLUMES
from tests.unit.cluster.flavours import flavour

SERVER = VOLUMES["storage_server"]
VOLUME, EXPORT = SERVER["cinder_volume_setup_params"][0], SERVER["nfs_server_setup_params"][0]


def refused(shape: Flavour | None = None, **server: Any) -> str:
    given = {key: value for key, value in {**SERVER, **server}.items() if value is not None}
    with pytest.raises(BadRequest) as caught:
        check_cluster(read_parameters({NAME: {**VOLUMES, "storage_server": given}}), shape or flavour(), {})
    return caught.value.detail


def test_the_machine_is_found_by_its_connection_point() -> None:
    assert check_cluster(read_parameters({NAME: VOLUMES}), flavour(), {}).storage == "storage_server"
    without = {key: value for key, value in VOLUMES.items() if key not in ("storage_server", "pv_registration_params")}
    assert check_cluster(read_parameters({NAME: without}), flavour(), {}).storage is None


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"password": None}, "storage_server.password: there is neither password nor private_key"),
        ({"username": "ubuntu\nroot"}, "storage_server.username: "),
        ({"ssh_cp_name": "workerNode_CP2"}, "storage_server.ssh_cp_name: 'workerNode' is a VDU of the cluster's nodes"),
        ({"cinder_volume_setup_params": []}, "storage_server.cinder_volume_setup_params: 0 entries"),
        (
            {"cinder_volume_setup_params": [{**VOLUME, "volume_resource_id": "other"}]},
            "[0].volume_resource_id: 'storage_server' has no block storage 'other' in the VNFD; write one of: "
            "storage_server_volume.",
        ),
        (
            {"cinder_volume_setup_params": [VOLUME, {**VOLUME, "mount_to": "/other"}]},
            "[1].volume_resource_id: it is there twice",
        ),
        (
            {"cinder_volume_setup_params": [VOLUME, {**VOLUME, "mount_to": "/volume/below"}]},
            "[1].mount_to: it overlaps with /volume",
        ),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/etc/x"}]}, "the system itself lives there"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/var/lib"}]}, "the system itself lives there"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/var/lib/dpkg"}]}, "the system itself lives there"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/var/lib/slipway/x"}]}, "the system itself lives"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/home"}]}, "keys that let us in"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/home/ubuntu"}]}, "keys that let us in"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/home/ubuntu/.ssh"}]}, "keys that let us in"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/var/spool/cron/crontabs"}]}, "the system itself"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/var/run/volume"}]}, "the system itself"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/var"}]}, "the system itself lives there"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/"}]}, "it is all of the machine"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/vol ume"}]}, "it is not an absolute path"),
        ({"cinder_volume_setup_params": [{**VOLUME, "mount_to": "/volume\n/etc ext4"}]}, "mount_to: "),
        ({"nfs_server_setup_params": [{**EXPORT, "export_dir": "/"}]}, "[0].export_dir: it is all of the machine"),
        ({"nfs_server_setup_params": [{**EXPORT, "export_dir": "//"}]}, "[0].export_dir: it is all of the machine"),
        ({"nfs_server_setup_params": [{**EXPORT, "export_dir": '/volume/a"b'}]}, "[0].export_dir: it is not"),
        ({"nfs_server_setup_params": [{**EXPORT, "export_dir": "/volume/../etc"}]}, "[0].export_dir: it is not"),
        (
            {"nfs_server_setup_params": [{**EXPORT, "export_dir": "/volumes/pv1"}]},
            "[0].export_dir: it is on none of the volumes, so it would be lost with the machine; choose a directory "
            "below /volume.",
        ),
        ({"nfs_server_setup_params": [EXPORT, EXPORT]}, "nfs_server_setup_params[1]: it is there twice"),
        ({"nfs_server_setup_params": [{**EXPORT, "export_to": "*"}]}, "[0].export_to: it is not a network"),
        ({"nfs_server_setup_params": [{**EXPORT, "export_to": "0.0.0.0/0"}]}, "[0].export_to: it is not a network"),
        ({"nfs_server_setup_params": [{**EXPORT, "export_to": "10.0.0.0/24(rw)"}]}, "[0].export_to: "),
    ],
)
def test_what_can_be_known_is_refused_with_its_path(server: dict[str, Any], said: str) -> None:
    detail = refused(**server)
    assert detail.startswith(f"{PATH}.storage_server")
    assert said in detail


def test_several_storage_servers_are_not_one() -> None:
    shape = flavour()
    two = replace(shape, vdus={**shape.vdus, "storage_server": replace(shape.vdus["storage_server"], initial=2)})
    assert "there would be 2 machines of 'storage_server', and one serves the volumes" in refused(two)


def test_a_volume_that_the_vnfd_fills_is_not_empty() -> None:
    shape = flavour()
    image = SoftwareImage(id="1", name="ubuntu")
    filled = replace(shape.storages["storage_server_volume"], image=image)
    detail = refused(replace(shape, storages={"storage_server_volume": filled}))
    assert "the VNFD fills that storage with the image 'ubuntu'" in detail
