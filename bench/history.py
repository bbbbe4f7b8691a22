"""A long history to list: operations written straight into the store, as many as years of work leave."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, insert

from slipway.model.operation import Operation, OperationType, State
from slipway.settings import load_settings
from slipway.store.database import Database
from slipway.store.summary import summary
from slipway.store.tables import operations


def write_history(data_dir: Path, count: int = 50_000) -> None:
    """The server must not be running."""
    database = Database(load_settings(overrides={"data_dir": data_dir}, environment={}).database)
    database.write_now(_write, count)
    database.close()


def _write(connection: Connection, count: int) -> None:
    began = datetime(2020, 1, 1, tzinfo=UTC)
    for start in range(0, count, 1000):
        connection.execute(
            insert(operations), [_row(began + timedelta(minutes=number)) for number in range(start, start + 1000)]
        )


def _row(moment: datetime) -> dict[str, object]:
    operation = Operation(
        id=str(uuid.uuid4()),
        vnf_instance_id=str(uuid.uuid4()),
        operation=OperationType.SCALE,
        operation_state=State.COMPLETED,
        state_entered_time=moment,
        start_time=moment,
        is_automatic_invocation=False,
        is_cancel_pending=False,
        operation_params={"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1},
    )
    return {
        "id": operation.id,
        "instance_id": operation.vnf_instance_id,
        "operation": operation.operation.value,
        "state": operation.operation_state.value,
        "started_at": moment.timestamp(),
        "doc": operation,
        "summary": summary(operation),
        "planned": True,
        "epoch": 1,
    }
