"""Who runs what: one operation an instance, one worker an operation, and take-over when a worker is gone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Connection, select, update
from sqlalchemy.engine import URL

from slipway.engine.journal_writer import JournalWriter
from slipway.model.errors import Conflict, LeaseLost, StepError
from slipway.model.journal import StepState
from slipway.model.operation import State
from slipway.model.plan import Plan
from slipway.store import operations, steps, workers
from slipway.store.database import Database
from slipway.store.poll_loop import DATABASE_UNAVAILABLE
from slipway.store.tables import operations as operations_table
from slipway.store.tables import workers as workers_table
from tests.unit.engine.world import Yard, chain, new_operation, step


async def test_of_100_requests_at_once_on_one_instance_the_database_takes_one(database: Database) -> None:
    async def accept() -> str:
        try:
            await database.write(operations.accept, new_operation("one"), None)
        except Conflict:
            return "conflict"
        return "accepted"

    answers = Counter(await asyncio.gather(*(accept() for _ in range(100))))
    assert answers == {"accepted": 1, "conflict": 99}


async def test_the_conflict_names_the_operation_and_what_to_do(database: Database) -> None:
    async with Yard(database) as yard:
        yard.world.failures["a"] = [StepError("no")]
        operation_id = await yard.accept(chain("a"), instance_id="one")
        await yard.rest(operation_id)
        with pytest.raises(Conflict, match=f"{operation_id} in state FAILED_TEMP: retry, roll back or fail"):
            await database.write(operations.accept, new_operation("one"), None)


async def test_two_workers_share_operations_and_none_is_run_twice(database: Database) -> None:
    async with Yard(database, operations_at_once=3) as one, Yard(database, operations_at_once=3) as two:
        two.handler = one.handler
        two.worker._handler = one.handler
        plans = {f"op{number}": chain(f"op{number}") for number in range(30)}
        accepted = [await one.accept(plan) for plan in plans.values()]
        two.worker.wake()
        for operation_id in accepted:
            assert (await one.rest(operation_id)).operation_state is State.COMPLETED
        assert Counter(one.world.done + two.world.done) == Counter(plans.keys())


async def test_a_dead_workers_operation_goes_on_where_it_stopped(database: Database) -> None:
    async with Yard(database) as dead:
        dead.world.hold("b")
        operation_id = await dead.accept(chain("a", "b", "c"))
        await dead.world.begun["b"].wait()
        await _end_lease(database, dead)
        async with Yard(database) as heir:
            assert (await heir.rest(operation_id)).operation_state is State.COMPLETED
            assert heir.world.done == ["b", "c"]


async def test_a_live_workers_operation_is_left_alone_by_one_that_starts_and_stops(database: Database) -> None:
    async with Yard(database) as owner:
        gate = owner.world.hold("a")
        operation_id = await owner.accept(chain("a"))
        await owner.world.begun["a"].wait()
        async with Yard(database) as passer_by:
            await asyncio.sleep(0.2)
            assert not passer_by.world.began
        gate.set()
        assert (await owner.rest(operation_id)).operation_state is State.COMPLETED


async def test_a_frozen_worker_that_wakes_after_the_take_over_writes_nothing(database: Database) -> None:
    async with Yard(database, lease=60.0) as frozen:
        gate = frozen.world.hold("a")
        operation_id = await frozen.accept(chain("a", "b"))
        await frozen.world.begun["a"].wait()
        await _end_lease(database, frozen)
        async with Yard(database) as heir:
            await heir.rest(operation_id)
            before = await heir.journal(operation_id)
            gate.set()  # the frozen one thaws, and its step ends
            await asyncio.gather(*frozen.worker._tasks)
            assert await heir.journal(operation_id) == before
            assert frozen.world.done == ["a"]
            assert heir.world.done == ["a", "b"]


async def test_a_worker_frozen_inside_a_transaction_keeps_nobody_from_its_operation(postgresql_url: URL) -> None:
    """Its lock would be held for as long as it is frozen, or until TCP notices that its host has gone."""
    database, impatient = Database(postgresql_url), Database(postgresql_url, idle_seconds=0.5)
    frozen = Yard(database)
    await frozen.worker.take_lease()
    operation_id = await frozen.accept(chain("a"))
    (claimed,) = await database.write(operations.claim, frozen.worker.id, [], 1, 1, orphans=False)
    with impatient.engine.connect() as connection:
        operations.fenced(connection, operation_id, claimed.epoch)
        await _end_lease(database, frozen)
        async with Yard(database) as heir:
            heir.handler.plans = frozen.handler.plans
            assert (await heir.rest(operation_id)).operation_state is State.COMPLETED
        with pytest.raises(
            DATABASE_UNAVAILABLE
        ):  # as to a worker whose database went away: it tries again, and is fenced
            operations.mark_planned(connection, operation_id)
    with pytest.raises(LeaseLost):
        await database.write(operations.fenced, operation_id, claimed.epoch)
    database.close()
    impatient.close()


async def test_a_worker_that_leaves_hands_back_what_it_runs(database: Database) -> None:
    leaving = Yard(database)
    async with leaving:
        gate = leaving.world.hold("a")
        operation_id = await leaving.accept(chain("a", "b"))
        await leaving.world.begun["a"].wait()
        going = asyncio.create_task(leaving.worker.shut_down(grace=5))
        gate.set()
        await going
        assert leaving.world.done == ["a"]
        assert await database.read(workers.alive) == []
        async with Yard(database) as heir:
            assert (await heir.rest(operation_id)).operation_state is State.COMPLETED
            assert heir.world.done == ["b"]


async def test_a_step_that_outlasts_the_grace_is_broken_off_and_done_by_the_next_worker(database: Database) -> None:
    async with Yard(database) as leaving:
        leaving.world.hold("a")
        operation_id = await leaving.accept(chain("a"))
        await leaving.world.begun["a"].wait()
        await leaving.worker.shut_down(grace=0.05)
        async with Yard(database) as heir:
            assert (await heir.rest(operation_id)).operation_state is State.COMPLETED


async def test_an_operation_that_fell_out_of_its_workers_hands_is_taken_up_again(database: Database) -> None:
    """Claimed on paper, running nowhere: what is left when the database was away at the wrong moment."""
    async with Yard(database) as yard:
        operation = new_operation()
        yard.handler.plans[operation.id] = chain("a")
        await database.write(operations.accept, operation, None)
        await database.write(lambda c: c.execute(update(operations_table).values(worker_id=yard.worker.id)))
        yard.worker.wake()
        assert (await yard.rest(operation.id)).operation_state is State.COMPLETED


async def test_after_its_own_lease_ended_a_worker_gives_the_others_time_before_it_takes_over(
    database: Database,
) -> None:
    async with Yard(database, lease=0.9) as yard:
        operation = new_operation()
        yard.handler.plans[operation.id] = chain("a")

        def accept_for_another(connection: Connection) -> None:
            operations.accept(connection, operation, None)
            connection.execute(update(operations_table).values(worker_id="silent for now"))

        lease_ended = time.monotonic()
        await _end_lease(database, yard)
        yard.worker._renew_at = 0.0
        await yard.lease_renewed()
        await database.write(accept_for_another)
        assert (await yard.rest(operation.id)).operation_state is State.COMPLETED
        assert time.monotonic() - lease_ended >= 0.9


async def test_old_journals_are_pruned_and_running_ones_kept(database: Database) -> None:
    async with Yard(database) as yard:
        ended = await yard.accept(chain("a"))
        await yard.rest(ended)
        yard.world.failures["b"] = [StepError("no")]
        waiting = await yard.accept(chain("b"))
        await yard.rest(waiting)
        later = (await database.read(operations.get, waiting)).start_time.timestamp() + 1
        assert await database.write(steps.prune, later) == 1
        assert await yard.journal(ended) == {}
        assert (await yard.journal(waiting))["b"].state is StepState.FAILED


async def test_many_operations_at_once_all_complete(database: Database) -> None:
    async with Yard(database) as yard:
        nodes = [Plan.chain(Plan.of(step(f"{n}/a"), step(f"{n}/b")), chain(f"{n}/c")) for n in range(40)]
        accepted = [await yard.accept(plan) for plan in nodes]
        states = Counter([(await yard.rest(one)).operation_state for one in accepted])
        assert states == {State.COMPLETED: 40}
        assert len(yard.world.done) == 120


async def _end_lease(database: Database, yard: Yard) -> None:
    """As if the worker had not been heard of for long."""
    yard.worker._renew_at = float("inf")
    await database.write(
        lambda c: c.execute(update(workers_table).where(workers_table.c.id == yard.worker.id).values(lease_until=0.0))
    )


async def test_what_a_worker_claims_while_it_leaves_is_handed_back_untouched(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Yard(database) as leaving:
        claim, claiming, left = operations.claim, asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def slow_claim(*args: Any, **kwargs: Any) -> list[operations.ClaimedOperation]:
            loop.call_soon_threadsafe(claiming.set)
            assert left.wait(10)
            return claim(*args, **kwargs)

        monkeypatch.setattr(operations, "claim", slow_claim)
        operation_id = await leaving.accept(chain("a"))
        await asyncio.wait_for(claiming.wait(), 10)
        going = asyncio.create_task(leaving.worker.shut_down(grace=5))
        await asyncio.sleep(0)
        left.set()
        await going
        assert leaving._serving
        await leaving._serving
        owner = select(operations_table.c.worker_id).where(operations_table.c.id == operation_id)
        assert await database.read(lambda connection: connection.scalar(owner)) is None
        assert not leaving.world.began
    monkeypatch.setattr(operations, "claim", claim)
    async with Yard(database) as heir:
        heir.handler.plans.update(leaving.handler.plans)
        heir.worker.wake()
        assert (await heir.rest(operation_id)).operation_state is State.COMPLETED


async def test_nobody_waits_for_what_a_broken_off_journal_will_not_write(database: Database) -> None:
    journal, wait = JournalWriter(database), threading.Event()
    first = journal.write(lambda connection: wait.wait(10))
    await asyncio.sleep(0)
    second = journal.write(lambda connection: False)
    assert journal._writer is not None
    journal._writer.cancel()
    done, _ = await asyncio.wait([first, second], timeout=5)
    wait.set()
    assert {first, second} == done
    assert await asyncio.wait_for(journal.write(lambda connection: "again"), 10) == "again"


async def test_one_project_leaves_slots_to_the_others(database: Database) -> None:
    """Twenty of one project that stand still, and one of another that came last."""
    async with Yard(database, operations_at_once=10) as yard:
        gate = yard.world.hold("stuck")
        for _ in range(20):
            await yard.accept(chain("stuck"), project="blue")
        await yard.world.begun["stuck"].wait()
        late = await yard.accept(chain("quick"), project="red")
        assert (await yard.rest(late)).operation_state is State.COMPLETED
        gate.set()
