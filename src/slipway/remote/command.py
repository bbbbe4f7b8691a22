"""One command on one connection: all three streams at once; time, time without output and memory are limited."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass

import asyncssh

from slipway.remote import errors
from slipway.remote.output import OnLine, Result, Tail
from slipway.remote.target import SshTarget

CHUNK = 64 * 1024


@dataclass(frozen=True)
class Command:
    line: str  # made by quoting.command_line
    description: str  # for people
    limit: float
    unreachable: float
    keep: int
    stdin: bytes | None = None
    on_line: OnLine | None = None


async def execute(connection: asyncssh.SSHClientConnection, target: SshTarget, command: Command) -> Result:
    """Run it to its end. A time limit ends it on the machine too; so does `timeout` there if we are gone by then."""
    out, err = Tail(command.keep, command.on_line), Tail(command.keep, command.on_line)
    process: asyncssh.SSHClientProcess[bytes] | None = None
    whole, quiet = asyncio.timeout(command.limit), asyncio.timeout(command.unreachable)
    try:
        async with whole, quiet:
            process = await connection.create_process(command.line, encoding=None)
            await _exchange(process, command.stdin, out, err, quiet, command.unreachable)
            await process.wait_closed()
        return _result(process, target, command, out, err)
    except TimeoutError:
        printed = Result(-1, out.end(), err.end())
        expired = f"timed out after {command.limit:g} s" if whole.expired() else None
        how = expired or f"was ended after {command.unreachable:g} s without output"
        raise errors.interrupted(target, command.description, how, printed, command.stdin) from None
    except (asyncssh.Error, OSError) as error:
        raise errors.connection_lost(target, command.description, error) from error
    finally:
        if process and not process.is_closing():
            process.terminate()
            process.close()


async def _exchange(
    process: asyncssh.SSHClientProcess[bytes],
    stdin: bytes | None,
    out: Tail,
    err: Tail,
    quiet: asyncio.Timeout,
    unreachable: float,
) -> None:
    """Feed and read until both outputs end. Reading one stream before the other would block whoever fills the other."""
    now = asyncio.get_running_loop().time

    async def read(stream: asyncssh.SSHReader[bytes], tail: Tail) -> None:
        while chunk := await stream.read(CHUNK):
            quiet.reschedule(now() + unreachable)
            tail.feed(chunk)

    feeding = asyncio.create_task(_feed(process.stdin, stdin))
    reading = [asyncio.create_task(read(process.stdout, out)), asyncio.create_task(read(process.stderr, err))]
    try:
        await asyncio.gather(*reading)
    finally:
        for task in (feeding, *reading):
            task.cancel()
        await asyncio.gather(feeding, *reading, return_exceptions=True)


async def _feed(stream: asyncssh.SSHWriter[bytes], content: bytes | None) -> None:
    """A command that ends without reading all of it has decided so: its exit code tells."""
    try:
        for start in range(0, len(content or b""), CHUNK):
            stream.write((content or b"")[start : start + CHUNK])
            await stream.drain()
        stream.write_eof()
    except (asyncssh.Error, OSError):
        pass


def _result(
    process: asyncssh.SSHClientProcess[bytes], target: SshTarget, command: Command, out: Tail, err: Tail
) -> Result:
    stdout, stderr = out.end(), err.end()
    if process.exit_signal:
        name = process.exit_signal[0]
        return Result(128 + _number(name), stdout, stderr, signal=name, lost=out.lost)
    if process.exit_status is None:
        raise errors.connection_lost(target, command.description)
    return Result(process.exit_status, stdout, stderr, lost=out.lost)


def _number(name: str) -> int:
    return getattr(signal, f"SIG{name}", 0)
