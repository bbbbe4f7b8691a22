"""One machine over SSH: commands, files, long jobs, forwarded ports.

    host = SshHost(pool, target)
    await host.run(["kubeadm", "version", "-o", "short"])
    await host.put("/etc/kubernetes/token.csv", token, sudo=True)
    await host.run_job("init", ["kubeadm", "init", "--config", "/etc/kubernetes/init.yaml"], limit=900, sudo=True)

Nothing is tried twice in here, for only the step knows what may be: a temporary StepError says that the engine may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from slipway.remote import errors, files, forward, jobs
from slipway.remote.command import Command, execute
from slipway.remote.output import OnLine, Result
from slipway.remote.pool import Pool
from slipway.remote.quoting import command_line
from slipway.remote.target import SshTarget


class SshHost:
    def __init__(self, pool: Pool, target: SshTarget) -> None:
        self._pool = pool
        self.target = target
        self.limits = pool.limits

    async def run(
        self,
        argv: Sequence[str],
        *,
        sudo: bool = False,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limit: float | None = None,
        unreachable: float | None = None,
        keep: int | None = None,
        on_line: OnLine | None = None,
        check: bool = True,
        description: str | None = None,
    ) -> Result:
        """Run a command to its end. Arguments and variables are seen by all on the machine: secrets go by `stdin`.

        `limit`: seconds until it is ended, here and there. `unreachable`: seconds without output before it is taken for
        dead. `keep`: bytes of each output that are kept, from the end. `check`: an exit code other than 0 is a
        StepError. `description`: what errors call it instead of `argv`.
        """
        limit = self.limits.command if limit is None else limit
        command = Command(
            line=command_line(argv, sudo=sudo and self.target.username != "root", env=env, limit=limit),
            description=description or errors.describe_command(argv),
            limit=limit,
            unreachable=min(limit, self.limits.unreachable) if unreachable is None else unreachable,
            keep=self.limits.kept_output if keep is None else keep,
            stdin=stdin,
            on_line=on_line,
        )
        async with self._pool.borrow(self.target) as connection:
            result = await execute(connection, self.target, command)
        if check and not result.ok:
            raise errors.command_failed(self.target, command.description, result, stdin)
        return result

    async def put(self, path: str, content: bytes | str, *, mode: int = 0o600, sudo: bool = False) -> None:
        """Write a file, whole or not at all. One that is replaced keeps its owner."""
        await files.put(self, path, content, mode, sudo=sudo)

    async def get(self, path: str, *, sudo: bool = False) -> bytes | None:
        """A file's content; None when there is no such file."""
        return await files.get(self, path, sudo=sudo)

    async def run_job(
        self,
        name: str,
        argv: Sequence[str],
        *,
        limit: float,
        sudo: bool = False,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        description: str | None = None,
    ) -> Result:
        """Run a long command apart from the connection, once: whoever gives the same name finds it, or how it ended.

        A failure that is raised here frees the name, so that a retry runs the command again; a success stays until
        it is removed, and so does any end with `check=False`.
        """
        return await jobs.run(self, name, argv, limit=limit, sudo=sudo, env=env, check=check, description=description)

    async def remove_job(self, name: str, *, sudo: bool = False, kill: bool = False) -> None:
        """Free the name of a job that has ended, or that is to be killed. One that is not there is no error."""
        await jobs.remove(self, name, sudo=sudo, kill=kill)

    def forwarded(self, host: str, port: int) -> AbstractAsyncContextManager[Path]:
        """A UNIX socket here that leads to `host`:`port` as seen from the machine, while the context is open."""
        return forward.forwarded(self._pool, self.target, host, port)
