"""What a request or a look of a worker costs must not grow with what is stored: no statement of theirs reads a table
from one end to the other, on either database.

The statements are those of a real life of an instance, as they reach the driver, explained by a database that holds
much of everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    String,
    Table,
    cast,
    event,
    insert,
    literal,
    literal_column,
    select,
    text,
    true,
)

from slipway.store import subscriptions, tables
from slipway.store.database import Database
from tests.unit.api.world import LCM, PACKAGES, World, a_world

INSTANCES, OPERATIONS = f"{LCM}/vnf_instances", f"{LCM}/vnf_lcm_op_occs"
GROWING = ("instances", "operations", "steps", "secrets", "notifications")

# What holds a few rows however long the table grows: the indexes of operations that have not ended.
SHORT_INDEXES = ("ix_operations_running", "uq_operations_one_at_a_time", "ix_operations_package_changes")

# Parts of statements that may read a whole table, and why.
ALLOWED = {
    "count(*) AS count_1 \nFROM notifications": "/metrics counts what waits, and that is all that the table holds",
    "_each(instances.doc": "who uses a VIM stands in documents; asked when one is removed or moved, and once a cluster",
    "jsonb_each(CASE WHEN (jsonb_typeof(instances.doc": "the same on PostgreSQL",
    "DELETE FROM secrets WHERE 0 = 1": "it waits for a lock, and reads nothing",
}

FILTERS = {
    INSTANCES: (
        "(eq,id,x)",
        "(eq,vnfInstanceName,x)",
        "(eq,vnfdId,x)",
        "(eq,instantiationState,NOT_INSTANTIATED)",
    ),
    OPERATIONS: (
        "(eq,id,x)",
        "(eq,vnfInstanceId,x)",
        "(eq,operationState,FAILED_TEMP)",
        "(in,operationState,STARTING,PROCESSING)",
    ),
}


async def test_no_statement_of_the_hot_paths_reads_a_whole_table(database: Database, tmp_path: Path) -> None:
    async with a_world(database, tmp_path, page_size=100) as world:
        instance_id = await world.instantiated()
        await world.call("POST", f"{LCM}/subscriptions", 201, json={"callbackUri": "http://127.0.0.1:8099/"})
        database.write_now(fill, instance_id)
        with statements(database) as seen:
            await live(world, instance_id)
        assert len(seen) > 60  # or nothing was recorded
        plans = {statement: database.read_now(plan, statement, seen[statement]) for statement in sorted(seen)}
    slow = [f"{found}\n{statement}\n" for statement, plan in plans.items() for found in scans(statement, plan)]
    assert not slow, "\n".join(slow)


async def live(world: World, grown_id: str) -> None:
    """What callers, the worker and the notifier do, over and over."""
    token = {"name": "own", "role": "admin", "project": "default"}
    mine = {"X-Auth-Token": (await world.call("POST", "/slipway/v1/tokens", 201, json=token)).json()["token"]}
    vnfd_id = (await world.call("GET", PACKAGES, 200)).json()[0]["vnfdId"]
    instance_id = await world.create(vnfd_id, vnfInstanceName="one", metadata={"password": "x"})
    await world.run(instance_id, "instantiate", {"flavourId": "simple"})
    await world.run(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "workers"})
    patch = {"headers": {"Content-Type": "application/merge-patch+json"}, "json": {"vnfInstanceName": "two"}}
    answer = await world.call("PATCH", f"{INSTANCES}/{instance_id}", 202, **patch)
    await world.ended(answer.headers["location"].rpartition("/")[2])
    for headers in ({}, mine):
        for path, filters in FILTERS.items():
            first = await world.call("GET", path, 200, headers=headers)
            await world.call("GET", first.links["next"]["url"], 200, headers=headers)
            for wanted in filters:
                await world.call("GET", path, 200, headers=headers, params={"filter": wanted})
        await world.call("GET", f"{INSTANCES}/{instance_id}", 200, headers=headers)
        await world.call("GET", f"/slipway/v1/operations/{answer.headers['location'].rpartition('/')[2]}/steps", 200)
        await world.call("GET", PACKAGES, 200, headers=headers)
        await world.call("GET", PACKAGES, 200, headers=headers, params={"filter": "(eq,usageState,IN_USE)"})
        await world.call("GET", "/vnflcm/v1/vnf_instances", 200, headers=headers)
    await world.run(instance_id, "terminate", {"terminationType": "FORCEFUL"})
    await world.call("DELETE", f"{INSTANCES}/{instance_id}", 204)
    await world.call("GET", "/metrics", 200)
    package = (await world.call("GET", PACKAGES, 200)).json()[0]
    await world.call("DELETE", f"{PACKAGES}/{package['id']}", 409)
    await world.call("DELETE", "/slipway/v1/vims/sim", 409)
    await notify(world.services.database)


async def notify(database: Database) -> None:
    """A round of the notifier; there is no other one here."""
    await database.read(subscriptions.any_due)
    for subscription in await database.write(subscriptions.claim, "sender", 60.0, 10, []):
        waiting = await database.read(subscriptions.next_waiting, subscription.id, 10)
        await database.write(subscriptions.arrived, subscription.id, [waiting[0].position], 60.0)
        await database.write(subscriptions.failed, subscription.id, "no answer", 60.0)
    await database.write(subscriptions.release_all, "sender")
    await database.read(subscriptions.counts)


def fill(connection: Connection, instance_id: str) -> None:
    """Copies of what one instance left, as many as years leave."""
    (operation_id,) = connection.scalars(select(tables.operations.c.id))
    (subscription_id,) = connection.scalars(select(tables.subscriptions.c.id))
    key = cast(NUMBER, String(36))
    kind = cast(NUMBER % 100, String(36))
    copy(connection, tables.instances, instance_id, 2000, id=key, created_at=NUMBER, name=key, vnfd_id=kind)
    copy(connection, tables.operations, operation_id, 10_000, id=key, started_at=NUMBER, instance_id=key)
    copy(connection, tables.steps, operation_id, 500, operation_id=key)
    copy(connection, tables.subscriptions, subscription_id, 100, id=key, retry_at=literal(1e12))
    # Half of what waits is for one subscriber, and comes after what waits for the others.
    waiting_for = [*(str(n % 100 + 1) for n in range(2000)), *[subscription_id] * 2000]
    connection.execute(
        insert(tables.notifications),
        [{"id": "n", "subscription_id": of, "created_at": n, "body": "{}"} for n, of in enumerate(waiting_for)],
    )
    connection.execute(
        insert(tables.secrets),
        [{"id": str(n), "owner": str(n), "key_id": "x", "ciphertext": b""} for n in range(2000)],
    )
    if connection.dialect.name == "postgresql":  # as it does by itself; SQLite never does
        connection.execute(text("ANALYZE"))


PROJECT = re.compile(r"WHERE (likely\()?\w+\.project = \S+ ORDER")
NUMBER: ColumnElement[int] = literal_column("i", Integer)


def copy(connection: Connection, table: Table, row_id: str, many: int, **changed: ColumnElement[Any]) -> None:
    """So many copies of a row, numbered; by the database, because that is quick."""
    first = select(literal(1).label("i")).cte("numbers", recursive=True)
    numbers = first.union_all(select(first.c.i + 1).where(first.c.i < many))
    columns = [changed.get(column.name, column) for column in table.columns]
    of = table.c.operation_id if table is tables.steps else table.c.id
    rows = select(*columns).select_from(table).join(numbers, true()).where(of == row_id)
    connection.execute(insert(table).from_select(list(table.columns), rows))


@contextmanager
def statements(database: Database) -> Iterator[dict[str, Any]]:
    """What reaches the driver meanwhile, each with the parameters of its first time."""
    seen: dict[str, Any] = {}

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool) -> None:
        if re.match("SELECT|UPDATE|DELETE", statement):
            seen.setdefault(statement, parameters[0] if executemany else parameters)

    event.listen(database.engine, "before_cursor_execute", note)
    yield seen
    event.remove(database.engine, "before_cursor_execute", note)


def plan(connection: Connection, statement: str, parameters: Any) -> Any:
    if connection.dialect.name == "sqlite":
        return [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    explained = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    (whole,) = msgspec.json.decode(explained)
    return whole["Plan"]


def scans(statement: str, plan: Any) -> list[str]:
    """Where a plan reads a growing table, or all that a project has in it."""
    if any(part in statement for part in ALLOWED):
        return []
    found = list(_sqlite_scans(plan) if isinstance(plan, list) else _postgresql_scans(plan))
    # A page of a list that nothing is left out of: as many rows are read along the index as are shown.
    page = "LIMIT" in statement and "WHERE" not in PROJECT.sub("", statement)
    return [] if page and all("along" in one for one in found) else found


def _sqlite_scans(plan: list[str]) -> Iterator[str]:
    for line in plan:
        match = re.match(r"(SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?INDEX (\w+)(?: \((.*)\))?)?", line)
        if match is None or match[2] not in GROWING or match[3] in SHORT_INDEXES:
            continue
        if match[1] == "SCAN" or match[4] == "project=?":
            yield f"along {match[3]}: {line}" if match[3] else line


def _postgresql_scans(node: dict[str, Any]) -> Iterator[str]:
    kind, index = node["Node Type"], node.get("Index Name")
    if kind == "Seq Scan" and node["Relation Name"] in GROWING:
        yield f"Seq Scan of {node['Relation Name']}"
    elif index and index.removeprefix("pk_").removeprefix("ix_").startswith(GROWING) and index not in SHORT_INDEXES:
        condition = node.get("Index Cond", "")
        if re.fullmatch(r"(\(\(project\)::text = [^)]*\))?", condition):
            yield f"along {index}: {kind} {condition}"
    for inner in node.get("Plans", ()):
        yield from _postgresql_scans(inner)
