"""What an NFS server is told: nothing but the directories asked for, to nobody but the networks asked for."""

from __future__ import annotations

from slipway.cluster.nfs_config import GANESHA, KERNEL, Export, server_files

EXPORTS = (
    Export(directory="/volume/nfs/pv1", mount="/volume", clients=("10.10.0.0/24", "fd00::/64")),
    Export(directory="/volume/nfs/pv2", mount="/volume", clients=("10.10.0.0/24",)),
)


def test_the_kernels_server_serves_only_what_is_mounted_and_nobody_is_root() -> None:
    files = server_files(KERNEL, EXPORTS)
    options = "rw,sync,no_subtree_check,all_squash,anonuid=65534,anongid=65534,mountpoint=/volume"
    assert files["/etc/exports.d/slipway.exports"].splitlines() == [
        f"/volume/nfs/pv1 10.10.0.0/24({options}) fd00::/64({options})",
        f"/volume/nfs/pv2 10.10.0.0/24({options})",
    ]
    assert files["/etc/systemd/system/nfs-server.service.d/slipway.conf"] == "[Unit]\nRequiresMountsFor=/volume\n"


def test_ganesha_refuses_everybody_but_the_clients() -> None:
    files = server_files(GANESHA, EXPORTS)
    text = files["/etc/ganesha/ganesha.conf"]
    assert text.count("EXPORT {") == text.count("Access_Type = NONE;") == text.count("PrivilegedPort = true;") == 2
    assert text.count("CLIENT { Clients = 10.10.0.0/24; Access_Type = RW; Squash = All_Squash;") == 2
    assert text.count("{") == text.count("}")
    assert 'Export_Id = 2; Path = "/volume/nfs/pv2"; Pseudo = "/volume/nfs/pv2";' in text
    assert "/etc/systemd/system/nfs-ganesha.service.d/slipway.conf" in files
