"""What a registry's steps have in common on their machine: scripts, files of the package, the request's words."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from slipway.cluster.schema import read
from slipway.cluster.steps import machine
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.model.action import StepContext
from slipway.registry.arguments import OnRegistry
from slipway.registry.parameters import NAME, InstallationParameters
from slipway.remote.output import Result

SCRIPTS = Path(__file__).parent.parent / "scripts"


async def opened(args: OnRegistry, ctx: StepContext) -> InstallationParameters:
    """With passwords in clear: for this step only."""
    return read(InstallationParameters, await ctx.decrypt_secrets(args.given), NAME)


async def run(host: RemoteHost, name: str, *arguments: str, stdin: bytes | None = None, limit: float = 120.0) -> Result:
    return await machine.run(host, name, *arguments, stdin=stdin, limit=limit, folder=SCRIPTS)


async def run_job(host: RemoteHost, name: str, *arguments: str, limit: float, job: str) -> Result:
    return await machine.run_job(host, name, *arguments, limit=limit, job=job, folder=SCRIPTS)


async def send(deps: Dependencies, host: RemoteHost, path: str, ctx: StepContext) -> str:
    """A file of the package, piece by piece: it may be larger than memory. The name that scripts know it by.

    What is there already stays as it is: a job that goes on from before Slipway was killed may be reading it.
    """
    name, sent = digest(ctx.instance_id, path), 0
    there = int((await run(host, "received", name)).text)
    async for piece in deps.files.pieces(ctx.instance_id, path):
        if sent + len(piece) > there:
            await machine.run(host, "receive", name, str(sent), str(len(piece)), stdin=piece)
        sent += len(piece)
        ctx.progress(f"{path}: {sent >> 20} MiB sent")
    if not sent:
        await machine.run(host, "receive", name, "0", "0", stdin=b"")
    return name


def digest(*parts: Any) -> str:
    return hashlib.sha256("\0".join(str(part) for part in parts).encode()).hexdigest()
