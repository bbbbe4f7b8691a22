"""Programs as files, from a URL or from the package. On the node each is what its digest says before any is used."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from slipway.cluster.steps.machine import run, run_named
from slipway.cluster.steps.world import Hands, World
from slipway.model.action import StepContext

SECONDS = 1800.0
SENT = "-"  # in place of a URL: the file was sent by us


class WantedFile(Protocol):
    """One of `source.files`, or Helm's archive."""

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str | None: ...
    @property
    def path(self) -> str | None: ...
    @property
    def sha256(self) -> str: ...


async def install_programs(
    world: World,
    hands: Hands,
    wanted: Sequence[WantedFile],
    ctx: StepContext,
    *,
    beside: str = "",
    vnfd: str | None = None,
) -> None:
    """Send what the package brings, let the node fetch the rest, check all, then put all in place.

    `beside`: programs of that version of Kubernetes, beside those in use. `vnfd`: of another package than the
    instance's own.
    """
    absent = set((await run(hands, "absent_files", *(file.sha256 for file in wanted))).text.splitlines())
    for file in wanted:
        if file.path is not None and file.sha256 in absent:
            await _send(world, hands, file.path, file.sha256, ctx, vnfd)
    arguments = [beside, *(part for file in wanted for part in (file.name, file.sha256, file.url or SENT))]
    job = f"programs-{hashlib.sha256(' '.join(arguments).encode()).hexdigest()[:16]}"
    await run_named(hands, "install_programs", *arguments, limit=SECONDS, job=job)


async def _send(world: World, hands: Hands, path: str, sha256: str, ctx: StepContext, vnfd: str | None) -> None:
    """Piece by piece: neither we nor a command line hold a whole archive of images."""
    sent = 0
    async for piece in world.files.pieces(ctx.instance_id, path, vnfd):
        await run(hands, "receive", sha256, str(sent), str(len(piece)), stdin=piece)
        sent += len(piece)
