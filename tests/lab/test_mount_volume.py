"""The script that mounts a data volume, on loop devices in a mount namespace: what it formats, and what it leaves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.cluster.steps.machine import SCRIPTS

pytestmark = pytest.mark.journey

OURS, OTHER = "0c5d1c0e-8d5a-4f0b-9c4a-000000000001", "slipway-volume-other"
WORLD = """
set -eu
mkdir -p "$1/etc" "$1/work" "$1/volume"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/work" /etc
: >/etc/fstab
mount -t tmpfs tmpfs /var/lib
mkdir -p /dev/disk
mount -t tmpfs tmpfs /dev/disk
mkdir /dev/disk/by-id
ln -s "$2" "/dev/disk/by-id/virtio-$(printf %.20s "$4")"
ln -s "$3" "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_$5"
ln -s "$3" "/dev/disk/by-id/virtio-unrelated"
mount_volume() { sh "$script" "$@"; }
id=$4 other=$5 device=$2 volume=$1/volume
"""


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two empty disks."""
    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    made = []
    for name in ("one", "two"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(64 << 20)
        shown = subprocess.run(
            ["losetup", "--find", "--show", tmp_path / name], capture_output=True, text=True, check=True
        )
        made.append(shown.stdout.strip())
    yield made[0], made[1]
    for device in made:
        subprocess.run(["losetup", "--detach", device], check=True)


def run(tmp_path: Path, devices: tuple[str, str], what: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", WORLD + what, "sh", str(tmp_path / "world"), *devices, OURS, OTHER],
        env={**os.environ, "script": str(SCRIPTS / "mount_volume.sh")},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_an_empty_volume_is_formatted_once_and_keeps_its_data(tmp_path: Path, devices: tuple[str, str]) -> None:
    done = run(tmp_path, devices, """
        first=$(mount_volume "$id" "$volume")
        echo data >"$volume/file"
        umount "$volume"
        [ "$(mount_volume "$id" "$volume")" = "$first" ]
        [ "$(mount_volume "$id" "$volume")" = "$first" ]
        cat "$volume/file"
        grep -c "^UUID=$first $volume ext4 defaults,nofail 0 2$" /etc/fstab
        blkid -p -s LABEL -o value "$device"
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["data", "1", "slipway"]), done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('mkfs.ext4 -q "$device"', "TYPE=ext4"),
        ('echo raw | dd of="$device" bs=1 seek=5000', "data without a file system"),
        ('echo raw | dd of="$device" bs=1 seek=67108000', "data without a file system"),
        ('mkswap "$device"', "TYPE=swap"),
    ],
)
def test_what_somebody_else_wrote_stays(tmp_path: Path, devices: tuple[str, str], content: str, said: str) -> None:
    done = run(tmp_path, devices, f"""
        {{ {content}; }} >/dev/null 2>&1
        before=$(sha256sum <"$device")
        mount_volume "$id" "$volume" || echo "$?"
        [ "$before" = "$(sha256sum <"$device")" ] && ! mountpoint -q "$volume" && [ ! -s /etc/fstab ]
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["65"]), done.stderr
    assert said in done.stderr


def test_a_file_system_that_was_half_made_is_made_again_and_on_no_other_disk(
    tmp_path: Path, devices: tuple[str, str]
) -> None:
    done = run(tmp_path, devices, """
        mkdir -p /var/lib/slipway/formatting
        : >"/var/lib/slipway/formatting/$id"
        echo half | dd of="$device" bs=1 seek=2000 2>/dev/null
        echo theirs | dd of="$3" bs=1 seek=2000 2>/dev/null
        mount_volume "$other" "$1/other" || echo "$?"
        mount_volume "$id" "$volume" >/dev/null
        mountpoint -q "$volume" && [ ! -e "/var/lib/slipway/formatting/$id" ] && echo made
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["65", "made"]), done.stderr


@pytest.mark.parametrize(("label", "said"), [("theirs", "65"), ("slipway", "data")])
def test_what_came_to_the_disk_after_a_file_system_that_could_not_be_made_stays(
    tmp_path: Path, devices: tuple[str, str], label: str, said: str
) -> None:
    """Somebody has put data there by hand since, in a file system of their own."""
    done = run(tmp_path, devices, f"""
        blockdev --setro "$device"
        mount_volume "$id" "$volume" && exit 1
        blockdev --setrw "$device"
        mkdir "$1/theirs"
        mkfs.ext4 -q -L {label} "$device"
        mount "$device" "$1/theirs"
        echo data >"$1/theirs/file"
        umount "$1/theirs"
        {{ mount_volume "$id" "$volume" >/dev/null && cat "$volume/file"; }} || echo "$?"
        mount "$device" "$1/theirs"
        cat "$1/theirs/file"
        ls /var/lib/slipway/formatting
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, [said, "data"]), done.stderr


def test_a_file_system_that_is_ours_is_made_again_if_its_end_was_not_seen(
    tmp_path: Path, devices: tuple[str, str]
) -> None:
    done = run(tmp_path, devices, """
        mkdir "$1/bin"
        printf '#!/bin/sh\n/sbin/mkfs.ext4 "$@"; dd if=/dev/zero of="%s" bs=1M seek=1 count=8 conv=notrunc; exit 1\n' \
            "$device" >"$1/bin/mkfs.ext4"
        chmod +x "$1/bin/mkfs.ext4"
        (PATH=$1/bin:$PATH mount_volume "$id" "$volume") && exit 1
        mount_volume "$id" "$volume" >/dev/null
        umount "$volume"
        e2fsck -fn "$device" >/dev/null && echo sound
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["sound"]), done.stderr


def test_beside_another_disk_that_is_mounted_there_fstab_has_no_word_of_ours(
    tmp_path: Path, devices: tuple[str, str]
) -> None:
    done = run(tmp_path, devices, """
        mount -t tmpfs tmpfs "$volume"
        mount_volume "$id" "$volume" || echo "$?"
        cat /etc/fstab
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["73"]), done.stderr
    assert "another disk is mounted" in done.stderr


def test_a_place_that_is_taken_is_left(tmp_path: Path, devices: tuple[str, str]) -> None:
    done = run(tmp_path, devices, """
        touch "$volume/theirs"
        mount_volume "$id" "$volume" || echo "$?"
        [ ! -s /etc/fstab ] || echo "the next boot would hide it"
        rm "$volume/theirs"
        mount_volume "$id" "$volume" >/dev/null
        mount_volume "$other" "$volume" || echo "$?"
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["73", "73"]), done.stderr
    assert "what is in it would be hidden" in done.stderr


def test_a_disk_that_can_not_be_read_is_not_an_empty_one(tmp_path: Path, devices: tuple[str, str]) -> None:
    """blkid says of it what it says of an empty one."""
    done = run(tmp_path, devices, """
        truncate --size=1M "$1/../one"
        mkdir "$1/bin"
        printf '#!/bin/sh\necho "$*" >>%s\n' "$1/formatted" >"$1/bin/mkfs.ext4"
        printf '#!/bin/sh\nexit 2\n' >"$1/bin/blkid"
        printf '#!/bin/sh\ncase "$*" in *getsize64*) echo 67108864 ;; esac\n' >"$1/bin/blockdev"
        chmod +x "$1"/bin/*
        PATH=$1/bin:$PATH
        losetup --set-capacity "$device"
        mount_volume "$id" "$volume" || echo "$?"
        [ ! -e "$1/formatted" ] || echo formatted
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["65"]), done.stderr


def test_a_last_line_of_fstab_without_its_end_stays_a_line(tmp_path: Path, devices: tuple[str, str]) -> None:
    done = run(tmp_path, devices, """
        printf '/dev/vda1 / ext4 defaults 0 1' >/etc/fstab
        uuid=$(mount_volume "$id" "$volume")
        grep -cx "/dev/vda1 / ext4 defaults 0 1" /etc/fstab
        grep -cx "UUID=$uuid $volume ext4 defaults,nofail 0 2" /etc/fstab
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["1", "1"]), done.stderr


def test_a_disk_without_a_size_is_not_taken_for_an_empty_one(tmp_path: Path, devices: tuple[str, str]) -> None:
    """Such is one that is being attached or detached. What it holds shows later, and must be there then."""
    done = run(tmp_path, devices, """
        mount_volume "$id" "$volume" >/dev/null
        echo data >"$volume/file"
        umount "$volume"
        : >/etc/fstab
        cp "$1/../one" "$1/../kept"
        : >"$1/../one"
        losetup --set-capacity "$device"
        mount_volume "$id" "$volume" && exit 1
        echo "code $?"
        cat "$1/../kept" >"$1/../one"
        losetup --set-capacity "$device"
        mount_volume "$id" "$volume" >/dev/null
        cat "$volume/file"
    """)  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, ["code", "66", "data"]), done.stderr
    assert "has no size" in done.stderr
