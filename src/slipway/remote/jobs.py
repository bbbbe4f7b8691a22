"""Long commands, detached under a name: a crash of Slipway or a lost connection finds them again.

A job is a directory on the machine: its `command`, `began`, `group`, `stdout`, `stderr`, `end`, and a `lock` that is
held while it runs. The directory appears in one move, the lock lets one runner through, and the kernel frees it
however that runner ends. So two callers at once, or one that comes back, share one run and one result.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipway.model.errors import StepError
from slipway.remote import failure
from slipway.remote.output import Result
from slipway.remote.quoting import command_line
from slipway.remote.scripting import run_script, script

if TYPE_CHECKING:
    from slipway.remote.hands import Hands

TAKEN = 65
RUNS = NOT_YET = 75
MARGIN = 60.0  # seconds that a machine may take beyond a job's limit to kill it and to say so
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_ENDED = re.compile(rb"ended (\d+) (itself|expired)")


@dataclass(frozen=True)
class Job:
    name: str
    command: str  # the whole line, variables included: another one is another job
    limit: int  # seconds
    sudo: bool
    told: str


async def run_named(
    hands: Hands,
    name: str,
    argv: Sequence[str],
    *,
    limit: float,
    sudo: bool,
    env: Mapping[str, str] | None,
    check: bool,
    told: str | None,
) -> Result:
    told = f"{told or failure.told(argv)} (job {_checked(name)})"
    job = Job(name, command_line(argv, env=env), math.ceil(limit), sudo, told)
    try:
        async with asyncio.timeout(limit + MARGIN):
            return await _until_ended(hands, job, check=check)
    except TimeoutError:
        raise StepError(f"'{told}' on {hands.target}: no end after {limit:g} s.", temporary=True) from None


async def forget(hands: Hands, name: str, *, sudo: bool, kill: bool) -> None:
    command, told = run_script("job_forget", _checked(name), "kill" if kill else "ended"), f"forget job {name}"
    result = await hands.run(command, sudo=sudo, check=False, told=told)
    if result.exit_code == RUNS:
        raise StepError(f"Job {name} on {hands.target} still runs.", temporary=True, cure="wait for it, or kill it.")
    if not result.ok:
        raise failure.command_failed(hands.target, told, result)


async def _until_ended(hands: Hands, job: Job, *, check: bool) -> Result:
    """Start and watch. The machine may be out of reach for a while: the job does not mind, so neither do we."""
    now = asyncio.get_running_loop().time
    started, reached, wait = False, now(), 0.2
    while True:
        try:
            if not started:
                await _start(hands, job)
                started = True
            ended = await _watch(hands, job, check=check)
            reached, wait = now(), 0.2
        except _OutOfReach as lost:
            if now() - reached > hands.limits.patience:
                raise lost.error from None
            await asyncio.sleep(wait)
            wait = min(2 * wait, 5.0)
            continue
        if ended:
            return ended


async def _start(hands: Hands, job: Job) -> None:
    arguments = [job.name, job.command, str(job.limit), script("job_run")]
    told = f"start {job.told}"
    result = await _ask(hands, run_script("job_start", *arguments), job.sudo, told)
    if result.exit_code == TAKEN:
        raise StepError(
            f"On {hands.target} the job name {job.name} belongs to another command than '{job.told}'.",
            cure="forget the old job, or take another name.",
        )
    if result.exit_code == NOT_YET:
        raise _OutOfReach(StepError(f"'{job.told}' on {hands.target} has not begun yet.", temporary=True))
    if not result.ok:
        raise failure.command_failed(hands.target, told, result)


async def _watch(hands: Hands, job: Job, *, check: bool) -> Result | None:
    """How it ended, or None while it runs."""
    keep, wait, told = hands.limits.kept_output, hands.limits.watch, f"watch {job.told}"
    command = run_script("job_watch", job.name, f"{wait:g}", str(keep))
    result = await _ask(hands, command, job.sudo, told, wait=wait)
    if not result.ok:
        raise failure.command_failed(hands.target, told, result)
    state, _, stdout = result.stdout.partition(b"\n")
    if state == b"running":
        return None
    found = _ENDED.fullmatch(state)
    ended = Result(int(found[1]) if found else -1, stdout, result.stderr)
    if (error := _error(hands, job, ended, found and found[2], check=check)) is None:
        return ended
    with contextlib.suppress(StepError):  # told; what is tried next is a new run
        await forget(hands, job.name, sudo=job.sudo, kill=False)
    raise error


def _error(hands: Hands, job: Job, ended: Result, how: bytes | None, *, check: bool) -> StepError | None:
    if how is None:
        why = "it was killed or the machine restarted; the next try starts it anew"
        return failure.took_too_long(hands.target, job.told, why, ended)
    if how == b"expired":
        return failure.took_too_long(hands.target, job.told, f"no end after {job.limit} s", ended)
    return failure.command_failed(hands.target, job.told, ended) if check and not ended.ok else None


class _OutOfReach(Exception):
    """Not known at the moment: ask again."""

    def __init__(self, error: StepError) -> None:
        self.error = error


async def _ask(hands: Hands, command: list[str], sudo: bool, told: str, wait: float = 0.0) -> Result:
    """One question about a job. Temporary is only what lies between us and the machine: it can be asked again."""
    try:
        limit = wait + hands.limits.connect
        keep = hands.limits.kept_output + 1024
        return await hands.run(command, sudo=sudo, limit=limit, silence=limit, keep=keep, check=False, told=told)
    except StepError as error:
        if error.temporary:
            raise _OutOfReach(error) from None
        raise


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise StepError(f"{name!r} can't be a job's name: letters, digits, '-' and '_', at most 100.")
    return name
