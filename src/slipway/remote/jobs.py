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
from slipway.remote import errors
from slipway.remote.output import Result
from slipway.remote.quoting import command_line, run_script, script
from slipway.waiting import Backoff

if TYPE_CHECKING:
    from slipway.remote.ssh_host import SshHost

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
    description: str


async def run(
    host: SshHost,
    name: str,
    argv: Sequence[str],
    *,
    limit: float,
    sudo: bool,
    env: Mapping[str, str] | None,
    check: bool,
    description: str | None,
) -> Result:
    description = f"{description or errors.describe_command(argv)} (job {_checked(name)})"
    job = Job(name, command_line(argv, env=env), math.ceil(limit), sudo, description)
    try:
        async with asyncio.timeout(limit + MARGIN):
            return await _wait_for_end(host, job, check=check)
    except TimeoutError:
        raise StepError(f"'{description}' on {host.target} timed out after {limit:g} s.", temporary=True) from None


async def remove(host: SshHost, name: str, *, sudo: bool, kill: bool) -> None:
    command, description = run_script("job_remove", _checked(name), "kill" if kill else "ended"), f"remove job {name}"
    result = await host.run(command, sudo=sudo, check=False, description=description)
    if result.exit_code == RUNS:
        raise StepError(f"Job {name} on {host.target} still runs.", temporary=True, cure="wait for it, or kill it.")
    if not result.ok:
        raise errors.command_failed(host.target, description, result)


async def _wait_for_end(host: SshHost, job: Job, *, check: bool) -> Result:
    """Start and watch. The machine may be out of reach for a while: the job does not mind, so neither do we."""
    started, backoff = False, _reconnecting(host)
    while True:
        try:
            if not started:
                await _start(host, job)
                started = True
            ended = await _watch(host, job, check=check)
            backoff = _reconnecting(host)
        except _Unreachable as lost:
            if not await backoff.pause():
                raise lost.error from None
            continue
        if ended:
            return ended


def _reconnecting(host: SshHost) -> Backoff:
    return Backoff(0.2, 5.0, factor=2.0, timeout=host.limits.reconnect)


async def _start(host: SshHost, job: Job) -> None:
    arguments = [job.name, job.command, str(job.limit), script("job_run")]
    description = f"start {job.description}"
    result = await _query(host, run_script("job_start", *arguments), job.sudo, description)
    if result.exit_code == TAKEN:
        raise StepError(
            f"On {host.target} the job name {job.name} belongs to another command than '{job.description}'.",
            cure="remove the old job, or take another name.",
        )
    if result.exit_code == NOT_YET:
        raise _Unreachable(StepError(f"'{job.description}' on {host.target} has not begun yet.", temporary=True))
    if not result.ok:
        raise errors.command_failed(host.target, description, result)


async def _watch(host: SshHost, job: Job, *, check: bool) -> Result | None:
    """How it ended, or None while it runs."""
    keep, wait, description = host.limits.kept_output, host.limits.watch, f"watch {job.description}"
    command = run_script("job_watch", job.name, f"{wait:g}", str(keep))
    result = await _query(host, command, job.sudo, description, wait=wait)
    if not result.ok:
        raise errors.command_failed(host.target, description, result)
    state, _, stdout = result.stdout.partition(b"\n")
    if state == b"running":
        return None
    found = _ENDED.fullmatch(state)
    ended = Result(int(found[1]) if found else -1, stdout, result.stderr)
    if (error := _error(host, job, ended, found and found[2], check=check)) is None:
        return ended
    with contextlib.suppress(StepError):  # told; what is tried next is a new run
        await remove(host, job.name, sudo=job.sudo, kill=False)
    raise error


def _error(host: SshHost, job: Job, ended: Result, how: bytes | None, *, check: bool) -> StepError | None:
    if how is None:
        how_it_ended = "was killed, or the machine restarted; the next try starts it anew"
        return errors.interrupted(host.target, job.description, how_it_ended, ended)
    if how == b"expired":
        return errors.interrupted(host.target, job.description, f"timed out after {job.limit} s", ended)
    return errors.command_failed(host.target, job.description, ended) if check and not ended.ok else None


class _Unreachable(Exception):
    """Not known at the moment: ask again."""

    def __init__(self, error: StepError) -> None:
        self.error = error


async def _query(host: SshHost, command: list[str], sudo: bool, description: str, wait: float = 0.0) -> Result:
    """One question about a job. Temporary is only what lies between us and the machine: it can be asked again."""
    try:
        limit = wait + host.limits.connect
        keep = host.limits.kept_output + 1024
        return await host.run(
            command, sudo=sudo, limit=limit, unreachable=limit, keep=keep, check=False, description=description
        )
    except StepError as error:
        if error.temporary:
            raise _Unreachable(error) from None
        raise


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise StepError(f"{name!r} can't be a job's name: letters, digits, '-' and '_', at most 100.")
    return name
