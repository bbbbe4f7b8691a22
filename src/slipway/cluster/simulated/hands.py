"""Hands on a simulated host: the same words as those on a real one, and the same errors."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from slipway.cluster.simulated import programs
from slipway.cluster.simulated.host import Host, Job, find_host, save_host, stands
from slipway.cluster.simulated.simulation import Simulation
from slipway.model.action import Connection
from slipway.model.errors import StepError, VimFault
from slipway.remote import failure
from slipway.remote.output import Result
from slipway.remote.quoting import command_line
from slipway.remote.target import Target
from slipway.vim.simulated.remote import Rules
from slipway.vim.simulated.rules import Rule, RuleKind
from slipway.vim.simulated.rules import Target as Slot

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True)
class SimulatedHands:
    simulation: Simulation
    connection: Connection
    machine: str
    slot: Slot
    target: Target

    async def run(
        self,
        argv: Sequence[str],
        *,
        sudo: bool = False,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limit: float | None = None,
        check: bool = True,
        told: str | None = None,
    ) -> Result:
        words = told or failure.told(argv)

        def work(db: sqlite3.Connection, host: Host) -> Result:
            return programs.run(db, host, argv, stdin or b"")

        result = await self._ask(programs.script_of(argv), words, work)
        if check and not result.ok:
            raise failure.command_failed(self.target, words, result, stdin)
        return result

    async def put(self, path: str, content: bytes | str, *, mode: int = 0o600, sudo: bool = False) -> None:
        await self._ask(f"put {_absolute(path)}", f"write {path}", lambda _, host: host.write(path, content, mode))

    async def get(self, path: str, *, sudo: bool = False) -> bytes | None:
        def work(_: sqlite3.Connection, host: Host) -> bytes | None:
            return host.files[path].content if path in host.files else None

        return await self._ask(f"get {_absolute(path)}", f"read {path}", work)

    async def run_named(
        self,
        name: str,
        argv: Sequence[str],
        *,
        limit: float,
        sudo: bool = False,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        told: str | None = None,
    ) -> Result:
        told, command = f"{told or failure.told(argv)} (job {_checked(name)})", command_line(argv, env=env)

        def work(db: sqlite3.Connection, host: Host) -> Result:
            job = host.jobs.get(name)
            if job is not None and job.command != command:
                raise StepError(
                    f"On {self.target} the job name {name} belongs to another command than '{told}'.",
                    cure="forget the old job, or take another name.",
                )
            ended = Result(job.exit_code, job.stdout, job.stderr) if job else programs.run(db, host, argv, b"")
            if check and not ended.ok:
                host.jobs.pop(name, None)  # told; what is tried next is a new run
            else:
                host.jobs[name] = Job(command, ended.exit_code, ended.stdout, ended.stderr)
            return ended

        result = await self._ask(programs.script_of(argv), told, work)
        if check and not result.ok:
            raise failure.command_failed(self.target, told, result)
        return result

    async def forget(self, name: str, *, sudo: bool = False, kill: bool = False) -> None:
        await self._ask(f"forget {_checked(name)}", f"forget job {name}", lambda _, host: host.jobs.pop(name, None))

    async def _ask(self, asked: str, told: str, work: Callable[[sqlite3.Connection, Host], T]) -> T:
        def inside(db: sqlite3.Connection, _: Rules) -> T:
            if not stands(db, self.machine):
                raise failure.not_reached(self.target, OSError("No route to host"))
            host = find_host(db, self.machine)
            answer = work(db, host)
            save_host(db, host)
            return answer

        def explain(rule: Rule, _: str) -> StepError:
            return self._fault(rule, told)

        return await self.simulation.call(self.connection, "host", inside, self.slot, asked, explain)

    def _fault(self, rule: Rule, told: str) -> StepError:
        if rule.kind is RuleKind.TIMEOUT_AFTER_WORK:
            return failure.connection_lost(self.target, told, OSError(rule.message or ""))
        if rule.fault is VimFault.TEMPORARY:
            return failure.not_reached(self.target, OSError(rule.message or "Connection timed out"))
        if rule.fault is VimFault.AUTH:
            return failure.login_refused(self.target)
        said = (rule.message or "so a rule says").encode()
        return failure.command_failed(self.target, told, Result(1, b"", said))


def _absolute(path: str) -> str:
    if not path.startswith("/") or path.endswith("/"):
        raise StepError(f"{path!r} is not the absolute path of a file.")
    return path


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise StepError(f"{name!r} can't be a job's name: letters, digits, '-' and '_', at most 100.")
    return name
