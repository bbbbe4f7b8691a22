"""A database of an older Slipway, with all that it holds, comes up right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL

from slipway.app import assemble
from slipway.model.secrets import redact
from slipway.store import instances, packages, steps
from slipway.store.database import Database
from slipway.store.migrate import HEAD, revision
from tests.databases import setting
from tests.functional.rig import settings_in

CLEAR = "hunter2-in-clear"
PACKAGE, PLAIN = "11111111-0000-4000-8000-000000000001", "11111111-0000-4000-8000-000000000002"
INSTANCE, OPERATION = "22222222-0000-4000-8000-000000000001", "33333333-0000-4000-8000-000000000001"


def package(package_id: str, data: dict[str, Any]) -> dict[str, Any]:
    doc = {
        "id": package_id, "onboardingState": "CREATED", "operationalState": "DISABLED", "usageState": "NOT_IN_USE",
        "userDefinedData": data, "createdAt": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return {"id": package_id, "project": "default", "created_at": 1.0, "doc": doc}


def instance() -> dict[str, Any]:
    ext_cps = [{"id": "ext-1", "cpdId": "worker_cp"}, {"id": "ext-2", "cpdId": "worker_cp", "cpConfigId": "mine"}]
    doc = {
        "id": INSTANCE, "vnfdId": "d", "vnfProvider": "p", "vnfProductName": "n", "vnfSoftwareVersion": "1",
        "vnfdVersion": "1", "instantiationState": "INSTANTIATED",
        "instantiatedVnfInfo": {"flavourId": "simple", "vnfState": "STARTED", "extCpInfo": ext_cps},
    }  # fmt: skip
    return {
        "id": INSTANCE, "project": "default", "vnfd_id": "d", "state": "INSTANTIATED", "version": 3, "created_at": 1.0,
        "doc": doc, "summary": "{}", "parameters": {},
    }  # fmt: skip


def operation() -> dict[str, Any]:
    doc = {
        "id": OPERATION, "vnfInstanceId": INSTANCE, "operation": "INSTANTIATE", "operationState": "COMPLETED",
        "stateEnteredTime": "2026-01-01T00:00:00Z", "startTime": "2026-01-01T00:00:00Z",
        "isAutomaticInvocation": False, "isCancelPending": False, "operationParams": {"flavourId": "simple"},
    }  # fmt: skip
    return {
        "id": OPERATION, "project": "default", "instance_id": INSTANCE, "operation": "INSTANTIATE",
        "state": "COMPLETED", "started_at": 1.0, "doc": doc, "summary": "{}", "planned": True, "epoch": 1,
    }  # fmt: skip


def step(position: int, action: str, node: str | None) -> dict[str, Any]:
    return {
        "operation_id": OPERATION, "position": position, "id": f"step {position}", "action": action, "node": node,
        "args": {}, "after": [], "effects": [], "state": "DONE", "attempt": 1,
    }  # fmt: skip


def fill(connection: Connection) -> None:
    """At revision 0002, as a Slipway of then left it."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "slipway.store:migrations")
    command.upgrade(config, "0002")
    rows = [
        ("packages", package(PACKAGE, {"owner": "me", "password": CLEAR, "deep": [{"api_key": CLEAR}]})),
        ("packages", package(PLAIN, {"owner": "me"})),
        ("instances", instance()),
        ("operations", operation()),
        ("steps", step(0, "simulated.make_machine", "worker-0")),
        ("steps", step(1, "kubernetes.leave", None)),
    ]
    for table, row in rows:
        values = {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in row.items()}
        names = ", ".join(row)
        connection.execute(text(f"INSERT INTO {table} ({names}) VALUES (:{', :'.join(row)})"), values)  # noqa: S608


def raw(connection: Connection, table: str) -> str:
    return " ".join(connection.scalars(text(f"SELECT CAST(doc AS TEXT) FROM {table}")))  # noqa: S608


def secret_rows(connection: Connection) -> int:
    return connection.scalar(text("SELECT count(*) FROM secrets")) or 0


@pytest.fixture
def url(empty_database_url: URL, tmp_path: Path) -> str:
    """Where a Slipway with the data directory `tmp_path` finds it."""
    known = setting(empty_database_url)
    return known or f"sqlite:///{tmp_path / 'slipway.db'}"


def test_an_old_database_comes_up_with_secrets_hidden_and_records_whole(url: str, tmp_path: Path) -> None:
    database = Database(url)
    database.write_now(fill)
    assert CLEAR in database.read_now(raw, "packages")
    database.close()
    settings = settings_in(tmp_path, url)
    for _ in range(2):
        slipway = assemble(settings)
        try:
            read = slipway.database.read_now
            assert read(revision) == HEAD
            assert CLEAR not in read(raw, "packages")
            assert read(secret_rows) == 2
            hidden = read(packages.get, PACKAGE)
            assert redact(hidden.user_defined_data) == {"owner": "me", "deep": [{}]}
            assert read(packages.get, PLAIN).user_defined_data == {"owner": "me"}
            info = read(instances.get, INSTANCE).vnf.instantiated_vnf_info
            assert info is not None
            assert [cp.cp_config_id for cp in info.ext_cp_info] == ["worker_cp", "mine"]
            assert read(raw, "instances").count("cpConfigId") == 2  # lists show it as it is stored
            journal = read(steps.journal, OPERATION)
            assert [(record.nodes, record.irreversible) for record in journal] == [
                (("worker-0",), False),
                ((), True),
            ]
        finally:
            slipway.close()
