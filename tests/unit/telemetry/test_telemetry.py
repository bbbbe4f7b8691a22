"""What the engine does is counted, and what it logs has its context."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

import prometheus_client as prometheus
import pytest

from slipway.engine import operation_control
from slipway.engine.journal_writer import JournalWriter
from slipway.model.errors import BadRequest, StepError
from slipway.model.operation import CancelMode, State
from slipway.model.plan import Plan
from slipway.store.database import Database
from slipway.telemetry.logs import LOG_CONTEXT, add_log_context, log_context
from slipway.telemetry.telemetry import Telemetry
from tests.unit.engine.world import Yard, chain, step


def counted(metric: prometheus.Counter | prometheus.Histogram, suffix: str) -> dict[tuple[str, ...], float]:
    samples = [sample for family in metric.collect() for sample in family.samples]
    return {tuple(one.labels.values()): one.value for one in samples if one.name.endswith(suffix)}


def steps_of(telemetry: Telemetry) -> dict[tuple[str, ...], float]:
    return counted(telemetry.metrics.step_seconds, "_count")


async def entered(telemetry: Telemetry, **wanted: int) -> None:
    """Each of these states so often, and no other. A state is told just after it is on disk: that may take a moment."""
    async with asyncio.timeout(20):
        while True:
            transitions = counted(telemetry.metrics.transitions, "_total")
            if {state: n for (_, state), n in transitions.items()} == wanted:
                return
            await asyncio.sleep(0.005)


async def test_states_steps_and_retries_are_counted(database: Database) -> None:
    telemetry = Telemetry()
    async with Yard(database, observer=telemetry) as yard:
        yard.world.failures["a"] = [StepError("busy", temporary=True)]
        await yard.rest(await yard.accept(chain("a", "b")))
        await entered(telemetry, PROCESSING=1, COMPLETED=1)
    assert steps_of(telemetry) == {("work", "done"): 2}
    assert counted(telemetry.metrics.retries, "_total") == {("work",): 1}


async def test_a_failure_and_its_rollback_are_counted(database: Database) -> None:
    telemetry = Telemetry()
    async with Yard(database, observer=telemetry) as yard:
        yard.world.failures["b"] = [StepError("no")]
        yard.world.undo_failures["a"] = [StepError("locked")]
        operation_id = await yard.accept(chain("a", "b"))
        await yard.rest(operation_id)
        for expected in (State.FAILED_TEMP, State.ROLLED_BACK):
            await yard.database.write(operation_control.roll_back, operation_id)
            yard.worker.wake()
            assert (await yard.rest(operation_id)).operation_state is expected
        await entered(telemetry, PROCESSING=1, FAILED_TEMP=2, ROLLED_BACK=1)
    assert steps_of(telemetry) == {
        ("work", "done"): 1, ("work", "failed"): 1, ("work", "undone"): 2, ("work", "undo_failed"): 1,
    }  # fmt: skip


async def test_a_refused_plan_and_a_fault_of_ours_are_counted_as_what_they_end_in(database: Database) -> None:
    telemetry = Telemetry()
    async with Yard(database, observer=telemetry) as yard:
        await yard.rest(await yard.accept(BadRequest("no such flavour")))
        yard.handler.settle_error = KeyError("y")
        await yard.rest(await yard.accept(chain("a")))
        await entered(telemetry, ROLLED_BACK=1, PROCESSING=1, FAILED_TEMP=1)


async def test_a_step_that_is_broken_off_is_counted_as_such(database: Database) -> None:
    telemetry = Telemetry()
    async with Yard(database, observer=telemetry) as yard:
        yard.world.hold("stuck")
        operation_id = await yard.accept(chain("stuck"))
        await yard.world.begun["stuck"].wait()
        await yard.database.write(operation_control.cancel, operation_id, CancelMode.FORCEFUL)
        yard.worker.cancel(operation_id, CancelMode.FORCEFUL)
        await yard.rest(operation_id)
    assert steps_of(telemetry) == {("work", "broken_off"): 1}


async def test_steps_that_wait_for_a_slot_are_seen(database: Database) -> None:
    async with Yard(database, steps_at_once=1) as yard:
        gate = yard.world.hold("first")
        operation_id = await yard.accept(Plan.of(step("first"), step("second"), step("third")))
        await yard.world.begun["first"].wait()
        assert (yard.worker.slots.taken, yard.worker.slots.waiting) == (1, 2)
        gate.set()
        await yard.rest(operation_id)
        assert (yard.worker.slots.taken, yard.worker.slots.waiting) == (0, 0)


async def test_a_record_of_a_step_names_instance_operation_and_step(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = Telemetry()
    caplog.handler.addFilter(add_log_context)
    try:
        async with Yard(database, observer=telemetry) as yard:
            yard.world.failures["one"] = [RuntimeError("hunter2")]
            yard.world.failures["other"] = [RuntimeError("hunter2")]
            ids = [await yard.accept(chain(name)) for name in ("one", "other")]
            ended = [await yard.rest(operation_id) for operation_id in ids]
            await entered(telemetry, PROCESSING=2, FAILED_TEMP=2)
    finally:
        caplog.handler.removeFilter(add_log_context)
    steps = [getattr(r, "context", None) for r in caplog.records if r.name == "slipway.engine.retry"]
    wanted = [
        {"instance": operation.vnf_instance_id, "operation": operation.id, "step": name}
        for operation, name in zip(ended, ("one", "other"), strict=True)
    ]
    assert sorted(map(str, steps)) == sorted(map(str, wanted))
    states = [r for r in caplog.records if r.name == "slipway.operations"]
    assert Counter(r.levelno for r in states) == {logging.WARNING: 2}
    assert all(r.context["operation"] in r.getMessage() for r in states)  # type: ignore[attr-defined]


async def test_writes_that_share_a_transaction_keep_their_own_log_context(database: Database) -> None:
    journal = JournalWriter(database)

    async def written(name: str) -> str:
        with log_context(operation=name):
            return await journal.write(lambda connection: LOG_CONTEXT.get()["operation"])

    names = [f"o{number}" for number in range(20)]
    assert await asyncio.gather(*map(written, names)) == names
