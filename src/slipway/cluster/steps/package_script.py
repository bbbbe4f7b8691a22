"""A script of the package on a node: brought there for root only, run once under a name, and removed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import install, run, run_job
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.remote.quoting import quoted

DIRECTORY = "/var/lib/slipway/script"
MARGIN = 60.0  # seconds for our own script around it


async def run_package_script(
    deps: Dependencies,
    host: RemoteHost,
    path: str,
    options: Sequence[str],
    variables: Mapping[str, str],
    ctx: StepContext,
    *,
    job: str,
    limit: float,
) -> None:
    """Options and variables lie in a file, for they hold secrets. What it prints is told without them.

    Its own time limit ends it for good: that is no reason to try again, as a lost connection is.
    """
    text = await deps.files.read(ctx.instance_id, path)
    place = f"{DIRECTORY}/{job}"
    await run(host, "private_directory", place)
    await install(host, {f"{place}/script": text, f"{place}/given": given(options, variables)}, mode=0o700)
    try:
        await run_job(host, "own_script", place, f"{limit:g}", limit=limit + MARGIN, job=job)
    except StepError as error:
        if error.temporary:
            raise  # it may still run
        await _remove(host, place)
        raise StepError(f"{path} failed. {error.detail}") from None
    await _remove(host, place)


async def _remove(host: RemoteHost, place: str) -> None:
    """It does so itself, unless it ended before this time."""
    with contextlib.suppress(StepError):  # only root could read it
        await run(host, "remove_directory", place)


def given(options: Sequence[str], variables: Mapping[str, str]) -> str:
    """For a shell to read: the variables, and the options as its arguments."""
    lines = [f"export {name}={quoted(value)}" for name, value in variables.items()]
    return "\n".join([*lines, " ".join(["set --", *(quoted(option) for option in options)]), ""])
