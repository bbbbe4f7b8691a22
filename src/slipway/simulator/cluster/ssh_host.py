"""A simulated host as SSH would show it: the same calls as on a real one, and the same errors."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from slipway.model.action import VimConnection
from slipway.model.errors import StepError, VimFault
from slipway.remote import errors
from slipway.remote.output import Result
from slipway.remote.quoting import command_line
from slipway.remote.target import SshTarget
from slipway.simulator.cluster import scripts
from slipway.simulator.cluster.host import SimulatedHost, SimulatedJob, find_host, is_running, save_host
from slipway.simulator.cluster.simulation import Simulation
from slipway.simulator.vim.calls import Rules
from slipway.vim.fault_rules import FaultTarget as Slot
from slipway.vim.fault_rules import Rule, RuleKind

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True)
class SimulatedSshHost:
    simulation: Simulation
    connection: VimConnection
    machine: str
    slot: Slot
    target: SshTarget
    always_on: bool = False  # a server that is no machine of the VIM

    async def run(
        self,
        argv: Sequence[str],
        *,
        sudo: bool = False,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limit: float | None = None,
        check: bool = True,
        description: str | None = None,
    ) -> Result:
        words = description or errors.describe_command(argv)

        def work(db: sqlite3.Connection, host: SimulatedHost) -> Result:
            return scripts.run(db, host, argv, stdin or b"")

        result = await self._ask(scripts.script_of(argv), words, work)
        if check and not result.ok:
            raise errors.command_failed(self.target, words, result, stdin)
        return result

    async def put(self, path: str, content: bytes | str, *, mode: int = 0o600, sudo: bool = False) -> None:
        await self._ask(f"put {_absolute(path)}", f"write {path}", lambda _, host: host.write(path, content, mode))

    async def get(self, path: str, *, sudo: bool = False) -> bytes | None:
        def work(_: sqlite3.Connection, host: SimulatedHost) -> bytes | None:
            return host.files[path].content if path in host.files else None

        return await self._ask(f"get {_absolute(path)}", f"read {path}", work)

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
        description = f"{description or errors.describe_command(argv)} (job {_checked(name)})"
        command = command_line(argv, env=env)

        def work(db: sqlite3.Connection, host: SimulatedHost) -> Result:
            job = host.jobs.get(name)
            if job is not None and job.command != command:
                raise StepError(
                    f"On {self.target} the job name {name} belongs to another command than '{description}'.",
                    cure="remove the old job, or take another name.",
                )
            ended = Result(job.exit_code, job.stdout, job.stderr) if job else scripts.run(db, host, argv, b"")
            if check and not ended.ok:
                host.jobs.pop(name, None)  # told; what is tried next is a new run
            else:
                host.jobs[name] = SimulatedJob(command, ended.exit_code, ended.stdout, ended.stderr)
            return ended

        result = await self._ask(scripts.script_of(argv), description, work)
        if check and not result.ok:
            raise errors.command_failed(self.target, description, result)
        return result

    async def remove_job(self, name: str, *, sudo: bool = False, kill: bool = False) -> None:
        await self._ask(f"remove_job {_checked(name)}", f"remove job {name}", lambda _, host: host.jobs.pop(name, None))

    async def _ask(self, asked: str, description: str, work: Callable[[sqlite3.Connection, SimulatedHost], T]) -> T:
        def inside(db: sqlite3.Connection, _: Rules) -> T:
            if not self.always_on and not is_running(db, self.machine):
                raise errors.unreachable(self.target, OSError("No route to host"))
            host = find_host(db, self.machine)
            answer = work(db, host)
            save_host(db, host)
            return answer

        def explain(rule: Rule, _: str) -> StepError:
            return self._fault(rule, description)

        return await self.simulation.call(self.connection, "host", inside, self.slot, asked, explain)

    def _fault(self, rule: Rule, description: str) -> StepError:
        if rule.kind is RuleKind.TIMEOUT_AFTER_WORK:
            return errors.connection_lost(self.target, description, OSError(rule.message or ""))
        if rule.fault is VimFault.TEMPORARY:
            return errors.unreachable(self.target, OSError(rule.message or "Connection timed out"))
        if rule.fault is VimFault.AUTH:
            return errors.login_refused(self.target)
        said = (rule.message or "so a rule says").encode()
        return errors.command_failed(self.target, description, Result(1, b"", said))


def _absolute(path: str) -> str:
    if not path.startswith("/") or path.endswith("/"):
        raise StepError(f"{path!r} is not the absolute path of a file.")
    return path


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise StepError(f"{name!r} can't be a job's name: letters, digits, '-' and '_', at most 100.")
    return name
