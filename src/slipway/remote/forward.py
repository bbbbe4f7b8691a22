"""A way through a machine to what only it can reach: a UNIX socket here that ends at an address as seen from there.

A socket in a private directory instead of a port on loopback: no other user of this host can use it.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh

from slipway.model.errors import StepError
from slipway.remote import errors
from slipway.remote.pool import Pool
from slipway.remote.target import SshTarget


@asynccontextmanager
async def forwarded(pool: Pool, target: SshTarget, host: str, port: int) -> AsyncIterator[Path]:
    """Whoever connects to the socket is connected with `host`:`port`. A connection that is lost later closes it."""
    doing = f"forward to {f'[{host}]' if ':' in host else host}:{port}"
    async with pool.hold(target) as connection:
        directory = Path(tempfile.mkdtemp(prefix="slipway-"))  # mode 0700
        try:
            listener = await _listen(connection, target, directory / "s", host, port, doing, pool.limits.connect)
            try:
                yield directory / "s"
            finally:
                listener.close()
        finally:
            shutil.rmtree(directory, ignore_errors=True)


async def _listen(
    connection: asyncssh.SSHClientConnection,
    target: SshTarget,
    path: Path,
    host: str,
    port: int,
    doing: str,
    limit: float,
) -> asyncssh.SSHListener:
    try:
        async with asyncio.timeout(limit):
            await _try_once(connection, host, port)
            return await connection.forward_local_path_to_port(str(path), host, port)
    except TimeoutError:
        raise StepError(f"timed out after {limit:g} s waiting for {target} to {doing}.", temporary=True) from None
    except asyncssh.ChannelOpenError as error:
        raise _refused(connection, target, doing, error) from None
    except (asyncssh.Error, OSError) as error:
        raise errors.connection_lost(target, doing, error) from error


async def _try_once(connection: asyncssh.SSHClientConnection, host: str, port: int) -> None:
    """The forward itself could only close its socket, without a word why."""
    _, writer = await connection.open_connection(host, port)
    writer.close()


def _refused(
    connection: asyncssh.SSHClientConnection, target: SshTarget, doing: str, error: asyncssh.ChannelOpenError
) -> StepError:
    if connection.is_closed():
        return errors.connection_lost(target, doing, error)
    if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
        return StepError(
            f"sshd of {target} does not {doing}.", cure="set AllowTcpForwarding and PermitOpen to allow it."
        )
    return StepError(f"{target} could not {doing}: {errors.describe_command([error.reason])}.", temporary=True)
