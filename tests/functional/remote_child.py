"""A Slipway that is about to be killed: runs one named job. Arguments: port, host key, private key, name, command."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from slipway.remote.target import SshTarget
from tests.functional.remote_sshd import ME, ssh_host_on


async def main(port: str, host_key: str, private_key: str, name: str, *argv: str) -> None:
    key = Path(private_key).read_text()  # noqa: ASYNC240 - nothing else runs here
    target = SshTarget("127.0.0.1", ME, int(port), private_key=key, host_key=host_key)
    async with ssh_host_on(target) as host:
        await host.run_job(name, argv, limit=60)


asyncio.run(main(*sys.argv[1:]))
