"""Plans that run forward: order, parallelism, retries, failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import update

from slipway.engine.operation_control import fail, retry
from slipway.model.errors import BadRequest, StepError
from slipway.model.journal import StepState
from slipway.model.machine import Outcome
from slipway.model.operation import State
from slipway.model.plan import Plan
from slipway.store.database import Database
from slipway.store.tables import steps
from tests.unit.engine.world import Yard, chain, step


async def test_a_chain_runs_in_order_and_completes(database: Database) -> None:
    async with Yard(database) as yard:
        operation = await yard.rest(await yard.accept(chain("a", "b", "c")))
        assert operation.operation_state is State.COMPLETED
        assert operation.error is None
        assert yard.world.done == ["a", "b", "c"]
        assert yard.handler.settled == [State.COMPLETED]


async def test_a_plan_without_steps_completes(database: Database) -> None:
    async with Yard(database) as yard:
        assert (await yard.rest(await yard.accept(Plan()))).operation_state is State.COMPLETED


async def test_steps_without_an_order_between_them_run_at_once_within_the_bound(database: Database) -> None:
    async with Yard(database, steps_at_once=3) as yard:
        names = [f"n{number}" for number in range(10)]
        await yard.rest(await yard.accept(Plan.of(*(step(name) for name in names))))
        assert sorted(yard.world.done) == sorted(names)
        assert yard.world.most_at_once == 3


async def test_the_journal_tells_start_end_node_attempt_and_outcome(database: Database) -> None:
    async with Yard(database) as yard:
        operation_id = await yard.accept(Plan.of(step("a", nodes=("worker-1", "worker-2"))))
        await yard.rest(operation_id)
        record = (await yard.journal(operation_id))["a"]
        assert (record.state, record.nodes, record.attempt) == (StepState.DONE, ("worker-1", "worker-2"), 1)
        assert record.started_at is not None
        assert record.ended_at is not None
        assert record.started_at <= record.ended_at
        assert record.outcome is not None
        assert record.outcome.data == {"by": "a"}


async def test_a_step_may_go_on_from_the_arguments_of_another(database: Database) -> None:
    """After a crash as well: they are in the journal."""
    async with Yard(database) as yard:
        operation_id = await yard.accept(Plan.chain(Plan.of(step("a")), Plan.of(step("b", action="like a"))))
        assert (await yard.rest(operation_id)).operation_state is State.COMPLETED
        assert yard.world.done == ["a", "a"]


async def test_a_step_that_names_no_step_of_its_plan_fails(database: Database) -> None:
    async with Yard(database) as yard:
        operation = await yard.rest(await yard.accept(Plan.of(step("b", action="like a"))))
        assert operation.operation_state is State.FAILED_TEMP
        assert operation.error is not None
        assert "The plan has no step 'a' to go on from." in operation.error.detail


async def test_zero_characters_of_a_vim_are_replaced_where_they_are_written(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["a"] = [StepError("no host \0", data={r"a\u0000\\": "\\\0\0"})]
        operation_id = await yard.accept(chain("a"))
        operation = await yard.rest(operation_id)
        assert operation.operation_state is State.FAILED_TEMP
        assert operation.error is not None
        assert "no host \ufffd" in operation.error.detail
        record = (await yard.journal(operation_id))["a"]
        assert record.error == "no host \ufffd"
        assert record.outcome is not None
        assert record.outcome.data == {r"a\u0000\\": "\\\ufffd\ufffd"}


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(removed=(5,)), "Expected `str`, got `int` - at `$.removed[0]`"),  # type: ignore[arg-type]
        (Outcome(data={"key": object()}), "unsupported"),
        (Outcome(data={"key": "\ud800"}), "surrogates not allowed"),
    ],
)
async def test_what_could_not_be_read_again_fails_its_step_and_the_operation_can_be_ended(
    database: Database, outcome: Outcome, words: str
) -> None:
    async with Yard(database) as yard:
        yard.world.outcomes["a"] = outcome
        operation_id = await yard.accept(chain("a"))
        operation = await yard.rest(operation_id)
        assert operation.operation_state is State.FAILED_TEMP
        assert operation.error is not None
        assert "'a'" in operation.error.detail
        assert words in operation.error.detail
        assert (await yard.journal(operation_id))["a"].state is StepState.FAILED
        ended = await database.write(fail, operation_id, yard.handler)
        assert ended.operation_state is State.FAILED


async def test_an_operation_with_an_outcome_that_an_earlier_version_stored_unreadable_can_be_ended(
    database: Database,
) -> None:
    async with Yard(database) as yard:
        yard.world.failures["b"] = [StepError("no")]
        operation_id = await yard.accept(chain("a", "b"))
        await yard.rest(operation_id)
        unreadable: Any = Outcome(removed=(5,))  # type: ignore[arg-type]
        await database.write(lambda c: c.execute(update(steps).where(steps.c.id == "a").values(outcome=unreadable)))
        assert (await yard.journal(operation_id))["a"].outcome is None
        ended = await database.write(fail, operation_id, yard.handler)
        assert ended.operation_state is State.FAILED


async def test_progress_is_readable_while_a_step_runs(database: Database) -> None:
    async with Yard(database) as yard:
        gate = yard.world.hold("slow")
        operation_id = await yard.accept(chain("quick", "slow", "last"))
        await yard.world.begun["slow"].wait()
        states = {name: record.state for name, record in (await yard.journal(operation_id)).items()}
        assert states == {"quick": StepState.DONE, "slow": StepState.RUNNING, "last": StepState.WAITING}
        gate.set()
        await yard.rest(operation_id)


async def test_a_temporary_error_is_tried_again(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["a"] = [StepError("busy", temporary=True)]
        operation_id = await yard.accept(chain("a"))
        assert (await yard.rest(operation_id)).operation_state is State.COMPLETED
        assert (await yard.journal(operation_id))["a"].attempt == 2


async def test_a_permanent_error_is_not_tried_again_and_names_step_node_and_answer(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["join"] = [StepError("port 6443 refused", cure="open the port.")]
        operation = await yard.rest(await yard.accept(Plan.of(step("join", nodes=("worker-7",)))))
        assert operation.operation_state is State.FAILED_TEMP
        assert yard.world.began["join"] == 1
        assert operation.error is not None
        for word in ("'join'", "worker-7", "port 6443 refused", "open the port"):
            assert word in operation.error.detail


async def test_a_failed_node_does_not_stop_the_others_and_a_retry_does_only_that_node(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["n7"] = [StepError("no answer")]
        nodes = Plan.of(*(step(f"n{number}") for number in range(20)))
        operation_id = await yard.accept(Plan.chain(nodes, chain("last")))
        assert (await yard.rest(operation_id)).operation_state is State.FAILED_TEMP
        assert len(yard.world.done) == 19
        await yard.database.write(retry, operation_id)
        yard.worker.wake()
        assert (await yard.rest(operation_id)).operation_state is State.COMPLETED
        assert yard.world.done[19:] == ["n7", "last"]


async def test_a_step_past_its_time_fails_and_says_so(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.hold("stuck")
        operation = await yard.rest(await yard.accept(Plan.of(step("stuck", action="hasty"))))
        assert operation.operation_state is State.FAILED_TEMP
        assert operation.error is not None
        assert "Timed out after 0.05 s" in operation.error.detail


async def test_an_unexpected_exception_names_its_type_and_not_its_text(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["a"] = [RuntimeError("hunter2")]
        operation = await yard.rest(await yard.accept(chain("a")))
        assert operation.error is not None
        assert "RuntimeError" in operation.error.detail
        assert "hunter2" not in operation.error.detail


async def test_a_plan_that_can_not_be_made_ends_rolled_back_with_the_reason(database: Database) -> None:
    async with Yard(database) as yard:
        operation = await yard.rest(await yard.accept(BadRequest("no such flavour")))
        assert operation.operation_state is State.ROLLED_BACK
        assert operation.error is not None
        assert operation.error.detail == "no such flavour"


async def test_a_fault_of_ours_never_leaves_an_operation_without_a_resting_state(database: Database) -> None:
    async with Yard(database) as yard:
        assert (await yard.rest(await yard.accept(KeyError("x")))).operation_state is State.ROLLED_BACK
        yard.handler.settle_error = KeyError("y")
        operation = await yard.rest(await yard.accept(chain("a")))
        assert operation.operation_state is State.FAILED_TEMP
        assert operation.error is not None
        assert "KeyError" in operation.error.detail


async def test_what_a_long_step_is_at_is_shown_until_it_ends(database: Database) -> None:
    async with Yard(database) as yard:
        go = yard.world.hold("upload")
        yard.world.progress["upload"] = "312 of 1024 MiB"
        operation_id = await yard.accept(chain("upload"))
        await yard.world.begun["upload"].wait()
        async with asyncio.timeout(10):
            while True:
                running = (await yard.journal(operation_id))["upload"]
                if running.progress is not None:
                    break
                await asyncio.sleep(0.005)
        assert (running.state, running.progress) == (StepState.RUNNING, "312 of 1024 MiB")
        go.set()
        await yard.rest(operation_id)
        assert (await yard.journal(operation_id))["upload"].progress is None
