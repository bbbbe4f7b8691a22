"""What steps do on one machine: our fixed scripts with values as arguments, files in one archive, addresses."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path

from slipway.cluster.site import Node
from slipway.cluster.steps.world import Hands
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.remote.output import Result
from slipway.remote.scripting import run_script

_PASSING = re.compile(
    "Client.Timeout exceeded|i/o timeout|connection refused|TLS handshake timeout|context deadline exceeded"
    "|etcdserver: (leader changed|request timed out)"
    '|is forbidden: User "system:node:'  # by an API server that has just started, and does not know its nodes yet
)
SCRIPTS = Path(__file__).parent.parent / "scripts"


async def run(hands: Hands, name: str, *arguments: str, stdin: bytes | None = None, limit: float = 120.0) -> Result:
    """One of our scripts, as root."""
    return await hands.run(line(name, *arguments), sudo=True, stdin=stdin, limit=limit, told=name.replace("_", " "))


async def run_named(hands: Hands, name: str, *arguments: str, limit: float, job: str | None = None) -> Result:
    """A long one, which goes on without us and is found again: by the script's name, or by another one."""
    command, told = line(name, *arguments), name.replace("_", " ")
    return await hands.run_named(job or name.replace("_", "-"), command, sudo=True, limit=limit, told=told)


def if_passing(error: StepError) -> StepError:
    """What kubeadm says when the API did not answer for a moment is worth another try; all else is for a person."""
    return StepError(error.detail, temporary=True) if _PASSING.search(error.detail) else error


def line(name: str, *arguments: str) -> list[str]:
    return run_script(name, *arguments, folder=SCRIPTS)


async def install(hands: Hands, files: Mapping[str, str | bytes], *, mode: int = 0o644) -> list[str]:
    """Files of root, all in one go; the paths of those that are new or have changed."""
    printed = await run(hands, "install_files", stdin=_archive(files, mode))
    return printed.text.splitlines()


def _archive(files: Mapping[str, str | bytes], mode: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in files.items():
            written = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(written), mode
            tar.addfile(entry, io.BytesIO(written))
    return packed.getvalue()


async def address_of(node: Node, ctx: StepContext, point: str | None = None) -> str:
    """Where the machine is reached: at the connection point of the cluster's traffic, or at another one."""
    machine = await ctx.machine(node.machine)
    wanted = point or node.nic
    for port in machine.ports:
        if port.name == wanted and port.address:
            return port.address
    raise StepError(
        f"{node.slot} has no address at the connection point {wanted}.",
        cure="name a connection point of its VDU in ssh_cp_name and nic_cp_name.",
    )
