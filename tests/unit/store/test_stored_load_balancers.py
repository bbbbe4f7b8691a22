from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import Connection

from slipway.model.instance import Instance
from slipway.model.operation import Operation, OperationType, State
from slipway.store import instances, load_balancers, operations, workers
from slipway.store.database import Database
from slipway.store.tables import operations as table

New = Callable[..., Instance]
VIM = "0b9b2b5e-0000-4000-8000-000000000001"


def begun(connection: Connection, worker: str, state: State = State.PROCESSING) -> str:
    """An operation of some instance, in a worker's hands."""
    now = datetime.now(UTC)
    operation = Operation(
        id=str(uuid4()),
        vnf_instance_id=str(uuid4()),
        operation=OperationType.SCALE,
        operation_state=state,
        state_entered_time=now,
        start_time=now,
        is_automatic_invocation=False,
        is_cancel_pending=False,
    )
    operations.accept(connection, operation, None)
    connection.execute(table.update().where(table.c.id == operation.id).values(worker_id=worker))
    return operation.id


def new_balancer(database: Database, new_instance: New) -> str:
    cluster: str = new_instance().vnf.id
    database.write_now(instances.insert, new_instance(id=cluster))
    database.write_now(load_balancers.ensure, cluster, VIM)
    database.write_now(load_balancers.ensure, cluster, VIM)
    return cluster


def test_one_operation_at_a_time_has_it(database: Database, new_instance: New) -> None:
    cluster = new_balancer(database, new_instance)
    database.write_now(workers.renew_lease, "alive", 600.0)
    first, second = (database.write_now(begun, "alive") for _ in range(2))
    held = database.write_now(load_balancers.take, cluster, first)
    assert held is not None
    assert (held.revision, held.doc) == (1, {})
    assert database.write_now(load_balancers.take, cluster, second) is None
    assert database.read_now(load_balancers.holder_of, cluster) == first
    again = database.write_now(load_balancers.take, cluster, first)  # after a crash it is its own still
    assert again is not None
    assert not database.write_now(load_balancers.save, cluster, held.revision, {"old": 1})
    assert database.write_now(load_balancers.save, cluster, again.revision, {"new": 1})
    taken = database.write_now(load_balancers.take, cluster, second)
    assert taken is not None
    assert taken.doc == {"new": 1}
    database.write_now(load_balancers.release, cluster, taken.revision)
    assert database.read_now(load_balancers.holder_of, cluster) is None


def test_who_does_not_run_does_not_hold_it(database: Database, new_instance: New) -> None:
    cluster = new_balancer(database, new_instance)
    database.write_now(workers.renew_lease, "alive", 600.0)
    next_one = database.write_now(begun, "alive")
    for holder in (
        database.write_now(begun, "dead"),
        database.write_now(begun, "alive", State.FAILED_TEMP),
        str(uuid4()),  # whose operation is gone
    ):
        assert database.write_now(load_balancers.take, cluster, holder)
        taken = database.write_now(load_balancers.take, cluster, next_one)
        assert taken is not None
        database.write_now(load_balancers.release, cluster, taken.revision)


async def test_of_many_at_once_one_takes_it(database: Database, new_instance: New) -> None:
    cluster = new_balancer(database, new_instance)
    database.write_now(workers.renew_lease, "alive", 600.0)
    rivals = [database.write_now(begun, "alive") for _ in range(6)]
    taken = await asyncio.gather(*(database.write(load_balancers.take, cluster, one) for one in rivals))
    assert len([one for one in taken if one]) == 1


def test_it_is_found_by_its_vim_in_its_own_project_and_goes_with_its_cluster(
    database: Database, new_instance: New
) -> None:
    cluster = new_balancer(database, new_instance)
    assert database.read_now(load_balancers.cluster_behind, VIM, "default") == cluster
    assert database.read_now(load_balancers.cluster_behind, VIM, "other") is None
    database.write_now(instances.delete, cluster)
    assert database.read_now(load_balancers.get, cluster) is None
