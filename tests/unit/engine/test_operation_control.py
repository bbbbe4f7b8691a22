"""What a person decides: retry, rollback, fail, cancel."""

from __future__ import annotations

import pytest

from slipway.engine import operation_control
from slipway.model.errors import Conflict, NotFound, StepError
from slipway.model.journal import StepState
from slipway.model.operation import CancelMode, State
from slipway.model.plan import Plan
from slipway.store.database import Database
from tests.unit.engine.world import Yard, chain, step


async def test_a_rollback_undoes_newest_first_also_what_failed_half_way(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["c"] = [StepError("no")]
        operation_id = await yard.accept(chain("a", "b", "c", "d"))
        await yard.rest(operation_id)
        await yard.database.write(operation_control.roll_back, operation_id)
        yard.worker.wake()
        assert (await yard.rest(operation_id)).operation_state is State.ROLLED_BACK
        assert yard.world.undone == ["c", "b", "a"]


async def test_a_rollback_that_breaks_can_be_rolled_back_again_and_does_only_the_rest(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["c"] = [StepError("no")]
        yard.world.undo_failures["a"] = [StepError("locked")]
        operation_id = await yard.accept(chain("a", "b", "c"))
        await yard.rest(operation_id)
        await yard.database.write(operation_control.roll_back, operation_id)
        yard.worker.wake()
        broken = await yard.rest(operation_id)
        assert broken.operation_state is State.FAILED_TEMP
        assert broken.error is not None
        assert "Undoing step 'a'" in broken.error.detail
        await yard.database.write(operation_control.roll_back, operation_id)
        yard.worker.wake()
        assert (await yard.rest(operation_id)).operation_state is State.ROLLED_BACK
        assert yard.world.undone == ["c", "b", "a"]


async def test_a_retry_after_a_broken_rollback_does_again_what_was_undone(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["c"] = [StepError("no")]
        yard.world.undo_failures["a"] = [StepError("locked")]
        operation_id = await yard.accept(chain("a", "b", "c"))
        await yard.rest(operation_id)
        await yard.database.write(operation_control.roll_back, operation_id)
        yard.worker.wake()
        await yard.rest(operation_id)
        await yard.database.write(operation_control.retry, operation_id)
        yard.worker.wake()
        assert (await yard.rest(operation_id)).operation_state is State.COMPLETED
        assert yard.world.done == ["a", "b", "a", "b", "c"]


async def test_what_could_not_be_planned_is_rolled_back_without_a_plan(database: Database) -> None:
    """A modification begins in PROCESSING, so that a plan that can't be made is a failure to decide on."""
    async with Yard(database) as yard:
        operation_id = await yard.accept(StepError("no such file"), state=State.PROCESSING)
        assert (await yard.rest(operation_id)).operation_state is State.FAILED_TEMP
        await yard.database.write(operation_control.roll_back, operation_id)
        yard.worker.wake()
        assert (await yard.rest(operation_id)).operation_state is State.ROLLED_BACK


async def test_what_can_not_be_undone_refuses_the_rollback_and_names_the_step(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["after"] = [StepError("no")]
        operation_id = await yard.accept(Plan.chain(Plan.of(step("remove disk", action="final")), chain("after")))
        await yard.rest(operation_id)
        with pytest.raises(Conflict, match="remove disk"):
            await yard.database.write(operation_control.roll_back, operation_id)
        assert (await yard.rest(operation_id)).operation_state is State.FAILED_TEMP


async def test_nothing_irreversible_has_begun_so_the_rollback_goes_through(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["drain"] = [StepError("blocked")]
        operation_id = await yard.accept(Plan.chain(chain("drain"), Plan.of(step("remove disk", action="final"))))
        await yard.rest(operation_id)
        await yard.database.write(operation_control.roll_back, operation_id)
        yard.worker.wake()
        assert (await yard.rest(operation_id)).operation_state is State.ROLLED_BACK


async def test_fail_settles_the_records_and_frees_the_instance(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["a"] = [StepError("no")]
        operation_id = await yard.accept(chain("a"), instance_id="one")
        await yard.rest(operation_id)
        failed = await yard.database.write(operation_control.fail, operation_id, yard.handler)
        assert failed.operation_state is State.FAILED
        assert yard.handler.settled == [State.FAILED_TEMP, State.FAILED]
        again = await yard.accept(chain("a"), instance_id="one")
        assert (await yard.rest(again)).operation_state is State.COMPLETED


@pytest.mark.parametrize("decision", ["retry", "roll_back", "fail", "cancel"])
async def test_decisions_about_an_ended_operation_are_refused_with_the_state(database: Database, decision: str) -> None:
    async with Yard(database) as yard:
        operation_id = await yard.accept(chain("a"))
        await yard.rest(operation_id)
        extra = {
            "retry": (),
            "roll_back": (),
            "fail": (yard.handler,),
            "cancel": (CancelMode.GRACEFUL,),
        }[decision]
        with pytest.raises(Conflict, match="COMPLETED"):
            await yard.database.write(getattr(operation_control, decision), operation_id, *extra)


async def test_a_decision_about_an_unknown_operation_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound):
        await database.write(operation_control.retry, "nothing")


async def test_a_graceful_cancel_lets_the_running_step_end_and_begins_no_other(database: Database) -> None:
    async with Yard(database) as yard:
        gate = yard.world.hold("slow")
        operation_id = await yard.accept(chain("slow", "next"))
        await yard.world.begun["slow"].wait()
        asked = await yard.database.write(operation_control.cancel, operation_id, CancelMode.GRACEFUL)
        assert asked.is_cancel_pending
        yard.worker.cancel(operation_id, CancelMode.GRACEFUL)
        gate.set()
        operation = await yard.rest(operation_id)
        assert operation.operation_state is State.FAILED_TEMP
        assert not operation.is_cancel_pending
        assert yard.world.done == ["slow"]
        states = {name: record.state for name, record in (await yard.journal(operation_id)).items()}
        assert states == {"slow": StepState.DONE, "next": StepState.WAITING}


async def test_a_forceful_cancel_breaks_off_the_running_step_and_a_retry_goes_on(database: Database) -> None:
    async with Yard(database) as yard:
        gate = yard.world.hold("stuck")
        operation_id = await yard.accept(chain("stuck", "next"))
        await yard.world.begun["stuck"].wait()
        await yard.database.write(operation_control.cancel, operation_id, CancelMode.FORCEFUL)
        # Not told: the worker finds it at its next poll, as it would when the request came to another process.
        assert (await yard.rest(operation_id)).operation_state is State.FAILED_TEMP
        assert (await yard.journal(operation_id))["stuck"].state is StepState.FAILED
        gate.set()
        await yard.database.write(operation_control.retry, operation_id)
        yard.worker.wake()
        assert (await yard.rest(operation_id)).operation_state is State.COMPLETED
        assert yard.world.done == ["stuck", "next"]


@pytest.mark.parametrize("mode", list(CancelMode))
async def test_a_cancel_while_rolling_back_stops_there(database: Database, mode: CancelMode) -> None:
    async with Yard(database) as yard:
        yard.world.failures["b"] = [StepError("no")]
        gate = yard.world.hold("undo b")
        operation_id = await yard.accept(chain("a", "b"))
        await yard.rest(operation_id)
        await yard.database.write(operation_control.roll_back, operation_id)
        yard.worker.wake()
        await yard.world.begun["undo b"].wait()
        await yard.database.write(operation_control.cancel, operation_id, mode)
        yard.worker.cancel(operation_id, mode)
        gate.set()
        assert (await yard.rest(operation_id)).operation_state is State.FAILED_TEMP
        assert "a" not in yard.world.undone


async def test_a_cancel_before_the_plan_ends_rolled_back(database: Database) -> None:
    yard = Yard(database)
    operation_id = await yard.accept(chain("a"))
    await database.write(operation_control.cancel, operation_id, CancelMode.GRACEFUL)
    async with yard:
        operation = await yard.rest(operation_id)
        assert operation.operation_state is State.ROLLED_BACK
        assert yard.world.done == []
