"""Data volumes of machines: found by what the VIM calls them, and mounted now and at each boot."""

from __future__ import annotations

import re

from slipway.cluster.spec import Node
from slipway.cluster.steps.dependencies import RemoteHost
from slipway.cluster.steps.machine import line
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.remote.output import readable

SECONDS = 300.0  # 30 until the disk is seen; a file system is made in seconds, whatever its size
CURES = {  # by the exit codes of mount_volume.sh
    65: "empty the volume if nobody needs what is on it (wipefs --all, and zeros over its first 16 MB), or give it the "
    "label slipway (e2label) if it is an ext4 whose files are to be served; then retry.",
    66: "see that the volume is attached and that the machine shows it in /dev/disk/by-id; then retry.",
    69: "use an image that has it; then retry.",
    73: "choose a mount_to that is free.",
}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{7,127}")  # it is searched for in names of disks


async def mount_volume(host: RemoteHost, node: Node, storage: str, path: str, ctx: StepContext) -> None:
    """Mount a volume of the machine, by the storage's name in the VNFD. An empty one gets a file system."""
    volume_id = await _volume_id(node, storage, ctx)
    done = await host.run(
        line("mount_volume", volume_id, path), sudo=True, limit=SECONDS, check=False, description="mount volume"
    )
    if not done.ok:
        said = readable(done.stderr).strip()[-500:] or f"exit code {done.exit_code}"
        raise StepError(f"The volume {storage} of {node.slot} can't be mounted at {path}: {said}.",
                        cure=CURES.get(done.exit_code))  # fmt: skip


async def _volume_id(node: Node, storage: str, ctx: StepContext) -> str:
    machine = await ctx.machine(node.machine)
    found = [volume.resource_id for volume in machine.volumes if volume.name == storage]
    if len(found) != 1:
        names = ", ".join(volume.name for volume in machine.volumes) or "none"
        raise StepError(
            f"{node.slot} has {len(found)} volumes {storage}; the VIM shows: {names}.",
            cure="see that the VIM's template attaches the volume to that machine.",
        )
    if not _ID.fullmatch(found[0]):
        raise StepError(
            f"The VIM calls the volume {storage} of {node.slot} {found[0][:80]!r}, which is no id of a disk."
        )
    return found[0]
