"""A long history: instances and operations written straight into the store, as many as years of work leave."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, insert

from slipway.model.access import DEFAULT_PROJECT
from slipway.model.instance import Instance, InstantiationState, VnfInstance
from slipway.model.operation import Operation, OperationType, State
from slipway.settings import load_settings
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.resources import summary
from slipway.store.tables import operations

BEGAN = datetime(2020, 1, 1, tzinfo=UTC)
INSTANCES, OPERATIONS = 10_000, 50_000


def write_history(data_dir: Path) -> None:
    """The server must not be running."""
    database = Database(load_settings(overrides={"data_dir": data_dir}, environment={}).database)
    database.write_now(_write)
    database.close()


def _write(connection: Connection) -> None:
    ids = [str(uuid.uuid4()) for _ in range(INSTANCES)]
    for number, instance_id in enumerate(ids):
        instances.insert(connection, _instance(instance_id, f"c{number:04}", BEGAN + timedelta(minutes=number)))
    for start in range(0, OPERATIONS, 1000):
        numbers = range(start, start + 1000)
        rows = [_row(ids[number % INSTANCES], BEGAN + timedelta(minutes=number)) for number in numbers]
        connection.execute(insert(operations), rows)


def _instance(instance_id: str, name: str, moment: datetime) -> Instance:
    """As large as the new ones that it is compared with: as long a name, and as many links."""
    vnf = VnfInstance(
        id=instance_id,
        vnf_instance_name=name,
        vnfd_id="6b1a5d0e-0000-4f0a-9d57-1f5c2c7d8e10",
        vnf_provider="Slipway",
        vnf_product_name="Sample cluster",
        vnf_software_version="1.0",
        vnfd_version="1.0",
        instantiation_state=InstantiationState.NOT_INSTANTIATED,
    )
    return Instance(vnf=vnf, created_at=moment)


def _row(instance_id: str, moment: datetime) -> dict[str, object]:
    operation = Operation(
        id=str(uuid.uuid4()),
        vnf_instance_id=instance_id,
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
        "project": DEFAULT_PROJECT,
        "instance_id": operation.vnf_instance_id,
        "operation": operation.operation.value,
        "state": operation.operation_state.value,
        "started_at": moment.timestamp(),
        "doc": operation,
        "summary": summary(operation),
        "planned": True,
        "epoch": 1,
    }
