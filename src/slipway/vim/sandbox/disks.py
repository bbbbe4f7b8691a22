"""Block volumes: sparse files behind loop devices, which a machine sees as /dev/vdb and so on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Volume
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox import records
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.records import VOLUME, Record

COMMAND_SECONDS = 30.0
MOST_DISKS = 24  # vdb to vdy


def ensure_disk(engine: Engine, volume: Volume, maker: Maker) -> Record:
    """The volume with its file in full size; whatever was in it stays."""
    record = records.written(engine, VOLUME, volume.id, volume.name, maker, size=str(volume.size_bytes))
    try:
        with record.disk.open("ab") as file:
            if file.tell() < volume.size_bytes:
                os.truncate(file.fileno(), volume.size_bytes)
    except OSError as error:
        raise VimError(f"Volume {volume.name} of {volume.size_bytes} bytes can't be made: {error}.", VimFault.QUOTA,
                       cure="free some room on the disk.") from None  # fmt: skip
    return record


def loop_of(record: Record) -> tuple[int, int]:
    """Major and minor number of the loop device before the file; set up unless there is one."""
    found = _loops(record.disk)
    if not found:
        _losetup("--find", "--show", str(record.disk))
        found = _loops(record.disk)
    _, major, minor = found[0]
    return major, minor


def detach(record: Record) -> None:
    for device, _, _ in _loops(record.disk):
        _losetup("--detach", device)


def disk_table(disks: list[Record]) -> bytes:
    """What the machine's init reads: a line for each disk, with the VIM's id of it as its serial number."""
    if len(disks) > MOST_DISKS:
        raise VimError(f"A machine holds at most {MOST_DISKS} volumes.", VimFault.PERMANENT)
    lines = (
        "vd{} {} {} {}\n".format(chr(ord("b") + place), *loop_of(disk), disk.engine_name)
        for place, disk in enumerate(disks)
    )
    return "".join(lines).encode()


def _loops(file: Path) -> list[tuple[str, int, int]]:
    """The devices before a file, with their numbers. There is at most one, unless another program made more."""
    said = _losetup("--list", "--noheadings", "--output", "NAME", "--associated", str(file))
    numbers = ((device, Path(device).stat().st_rdev) for device in said.split())
    return [(device, os.major(number), os.minor(number)) for device, number in numbers]


def _losetup(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["losetup", *arguments], capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except FileNotFoundError:
        raise VimError("There is no losetup.", VimFault.PERMANENT, cure="apt-get install mount") from None
    except subprocess.TimeoutExpired:
        raise VimError(f"losetup did not end within {COMMAND_SECONDS:.0f} s.", VimFault.TEMPORARY) from None
    if done.returncode:
        denied = "denied" in done.stderr or "not permitted" in done.stderr
        raise VimError(
            f"losetup failed: {done.stderr.strip()}.",
            VimFault.AUTH if denied else VimFault.TEMPORARY,
            cure="block volumes need root and loop devices: slipway sandbox check",
        )
    return done.stdout
