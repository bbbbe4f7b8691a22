"""A small world for the engine: actions that note what they do, and fail when told to."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.engine.worker import Worker
from slipway.model.access import DEFAULT_PROJECT
from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.clock import utcnow
from slipway.model.errors import SlipwayError, StepError
from slipway.model.instance import VimConnectionInfo
from slipway.model.journal import StepRecord
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.operation import RUNNING, Operation, OperationType, State
from slipway.model.package_content import PackageContent
from slipway.model.plan import Plan, Step
from slipway.store import operations, steps, workers
from slipway.store.database import Database


class Work(msgspec.Struct, frozen=True):
    name: str


class World:
    """What was done, in order; and, by name, how steps behave."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.undone: list[str] = []
        self.began: Counter[str] = Counter()
        self.failures: dict[str, list[StepError | Exception]] = {}
        self.undo_failures: dict[str, list[StepError]] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.begun: dict[str, asyncio.Event] = {}
        self.outcomes: dict[str, Outcome] = {}  # what steps leave
        self.progress: dict[str, str] = {}  # what steps tell of themselves
        self.at_once = self.most_at_once = 0

    def hold(self, name: str) -> asyncio.Event:
        """The step waits until the event is set; `await begun[name].wait()` for its beginning."""
        self.gates[name] = asyncio.Event()
        self.begun[name] = asyncio.Event()
        return self.gates[name]

    async def run(self, args: Work, context: StepContext) -> Outcome:
        self.began[args.name] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if args.name in self.progress:
                context.progress(self.progress[args.name])
            if args.name in self.begun:
                self.begun[args.name].set()
                await self.gates[args.name].wait()
            await asyncio.sleep(0)
            if queued := self.failures.get(args.name):
                raise queued.pop(0)
            self.done.append(args.name)
            return self.outcomes.get(args.name) or Outcome(data={"by": args.name})
        finally:
            self.at_once -= 1

    async def run_like_a(self, args: Work, context: StepContext) -> Outcome:
        return await self.run(msgspec.convert(context.arguments("a"), Work), context)

    async def undo(self, args: Work, context: StepContext) -> Outcome:
        if (claimed := f"undo {args.name}") in self.begun:
            self.begun[claimed].set()
            await self.gates[claimed].wait()
        if queued := self.undo_failures.get(args.name):
            raise queued.pop(0)
        self.undone.append(args.name)
        return Outcome()

    @property
    def actions(self) -> dict[str, Action[Any]]:
        return {
            "work": Action("work", Work, self.run, self.undo, timeout=5.0, attempts=3),
            "final": Action("final", Work, self.run, timeout=5.0, attempts=1),
            "like a": Action("like a", Work, self.run_like_a, timeout=5.0, attempts=1),
            "hasty": Action("hasty", Work, self.run, self.undo, timeout=0.05, attempts=1),
        }


class FixedPlans:
    """A lifecycle whose plans are given beforehand."""

    def __init__(self) -> None:
        self.plans: dict[str, Plan | Exception] = {}
        self.settled: list[State] = []
        self.announced: list[State] = []
        self.settle_error: Exception | None = None

    async def plan(self, operation: Operation, vim: VimConnectionInfo | None) -> Plan:
        plan = self.plans[operation.id]
        if isinstance(plan, Exception):
            raise plan
        return plan

    def settle(self, connection: Connection, operation: Operation, journal: Sequence[StepRecord]) -> Operation:
        if self.settle_error:
            raise self.settle_error
        self.settled.append(operation.operation_state)
        return operation

    def announce(self, connection: Connection, operation: Operation) -> None:
        self.announced.append(operation.operation_state)

    async def machine(self, operation: Operation, machine_id: str) -> FoundMachine | None:
        return None

    async def port(self, operation: Operation, name: str) -> FoundPort | None:
        return None

    async def package_file(self, operation: Operation, vnfd_id: str, path: str, digest: str) -> bytes:
        raise StepError(f"No file {path}: here is no package.")

    async def package_content(self, operation: Operation, vnfd_id: str, path: str, digest: str) -> PackageContent:
        raise StepError(f"No file {path}: here is no package.")

    async def decrypt_secrets(self, operation: Operation, document: Any) -> Any:
        return document

    def encrypt_secrets(self, connection: Connection, operation: Operation, outcome: Outcome) -> Outcome:
        return outcome

    async def connection(self, operation: Operation, vim: VimConnectionInfo | None) -> VimConnection:
        return VimConnection("none", {}, {}, {})


class Yard:
    """A database with one worker, and shorthand to use them."""

    def __init__(self, database: Database, **worker: Any) -> None:
        self.database = database
        self.world = World()
        self.handler = FixedPlans()
        self.worker = Worker(database, self.handler, self.world.actions, **{"poll": 0.05, **worker})
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Yard:
        await self.worker.take_lease()
        self._serving = asyncio.create_task(self.worker.serve())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.worker.shut_down(grace=0)
        if self._serving:
            await self._serving

    async def accept(
        self,
        plan: Plan | SlipwayError | Exception,
        instance_id: str | None = None,
        project: str = DEFAULT_PROJECT,
        state: State = State.STARTING,
    ) -> str:
        operation = replace(new_operation(instance_id), operation_state=state)
        self.handler.plans[operation.id] = plan
        await self.database.write(operations.accept, operation, None, project)
        self.worker.wake()
        return operation.id

    async def rest(self, operation_id: str) -> Operation:
        """The operation once no worker has work to do on it."""
        async with asyncio.timeout(20):
            while True:
                operation = await self.database.read(operations.get, operation_id)
                if operation.operation_state not in RUNNING:
                    return operation
                await asyncio.sleep(0.005)

    async def lease_renewed(self) -> None:
        async with asyncio.timeout(20):
            while True:
                if self.worker.id in await self.database.read(workers.alive):
                    return
                await asyncio.sleep(0.005)

    async def journal(self, operation_id: str) -> dict[str, StepRecord]:
        return {record.id: record for record in await self.database.read(steps.journal, operation_id)}


def new_operation(instance_id: str | None = None) -> Operation:
    return Operation(
        id=str(uuid.uuid4()),
        vnf_instance_id=instance_id or str(uuid.uuid4()),
        operation=OperationType.INSTANTIATE,
        operation_state=State.STARTING,
        state_entered_time=utcnow(),
        start_time=utcnow(),
        is_automatic_invocation=False,
        is_cancel_pending=False,
    )


def step(name: str, *after: str, action: str = "work", nodes: tuple[str, ...] = ()) -> Step:
    return Step(id=name, action=action, args={"name": name}, after=after, nodes=nodes, irreversible=action == "final")


def chain(*names: str) -> Plan:
    return Plan.chain(*(Plan.of(step(name)) for name in names))
