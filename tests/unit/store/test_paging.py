from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import URL

from slipway.model.errors import BadRequest
from slipway.model.instance import Instance
from slipway.model.operation import Operation, OperationType, State
from slipway.store import instances, paging
from slipway.store.database import Database
from slipway.store.filters import parse
from slipway.store.paging import LARGEST, list_documents
from slipway.store.tables import instances as instances_table
from slipway.store.tables import operations as operations_table

BEGIN = datetime(2024, 5, 1, tzinfo=UTC)


def insert_operation(connection: Connection, number: int, project: str = "default") -> None:
    moment = BEGIN + timedelta(seconds=number // 3)  # three begin at the same moment
    operation = Operation(
        id=f"{number:04}",
        vnf_instance_id=f"i{number}",
        operation=OperationType.SCALE,
        operation_state=State.COMPLETED,
        state_entered_time=moment,
        start_time=moment,
        is_automatic_invocation=False,
        is_cancel_pending=False,
    )
    row: dict[str, Any] = {"id": operation.id, "instance_id": f"i{number}", "operation": "SCALE", "state": "COMPLETED"}
    row |= {"started_at": moment.timestamp(), "doc": operation, "summary": "{}", "planned": True, "epoch": 0}
    row |= {"project": project}
    connection.execute(operations_table.insert().values(**row))


def ids(items: list[str]) -> list[str]:
    return [msgspec.json.decode(item)["id"] for item in items]


def test_pages_hold_everything_once_newest_first_while_rows_are_added(database: Database) -> None:
    for number in range(20):
        database.write_now(insert_operation, number)
    seen: list[str] = []
    marker = None
    for added in range(100, 200):
        page = database.read_now(list_documents, operations_table, marker=marker, limit=3)
        seen += ids(page.items)
        database.write_now(insert_operation, added)
        marker = page.next_marker
        if marker is None:
            break
    assert seen == [f"{number:04}" for number in reversed(range(20))]


def test_instances_come_oldest_first_and_new_ones_on_the_last_page(
    database: Database, new_instance: Callable[..., Instance]
) -> None:
    made = [new_instance(vnf_instance_name="x") for _ in range(5)]
    for instance in made[:4]:
        database.write_now(instances.insert, instance)
    wanted = parse("(eq,vnfInstanceName,x)")
    first = database.read_now(list_documents, instances_table, wanted, limit=2)
    database.write_now(instances.insert, made[4])
    second = database.read_now(list_documents, instances_table, wanted, first.next_marker, limit=3)
    assert ids(first.items) + ids(second.items) == [instance.vnf.id for instance in made]
    assert second.next_marker is None


def test_a_marker_fits_only_the_list_it_came_from_as_it_was(database: Database) -> None:
    for number in range(3):
        database.write_now(insert_operation, number)
    marker = database.read_now(list_documents, operations_table, limit=1).next_marker
    assert marker is not None
    assert msgspec.json.encode(marker).isascii()
    assert not set(marker) & set("+/=&?")
    tampered = marker[:-1] + ("A" if marker[-1] != "A" else "B")
    for broken in (tampered, marker[:-4], "", "é", "%%", marker + "A"):
        with pytest.raises(BadRequest, match="nextpage_opaque_marker"):
            database.read_now(list_documents, operations_table, marker=broken, limit=1)
    with pytest.raises(BadRequest, match="nextpage_opaque_marker"):
        database.read_now(list_documents, operations_table, parse("(eq,id,1)"), marker, limit=1)
    with pytest.raises(BadRequest, match="nextpage_opaque_marker"):
        database.read_now(list_documents, instances_table, marker=marker, limit=1)


def test_a_project_has_its_own_pages(database: Database) -> None:
    for number in range(12):
        database.write_now(insert_operation, number, "blue" if number % 2 else "red")
    seen: list[str] = []
    marker = None
    while True:
        page = database.read_now(list_documents, operations_table, marker=marker, limit=2, project="blue")
        seen += ids(page.items)
        marker = page.next_marker
        if marker is None:
            break
    assert seen == [f"{number:04}" for number in (11, 9, 7, 5, 3, 1)]
    assert len(database.read_now(list_documents, operations_table).items) == 12
    assert database.read_now(list_documents, operations_table, project="nobody's").items == []


def test_a_filter_and_a_marker_lead_to_nothing_of_another_project(database: Database) -> None:
    for number in range(6):
        database.write_now(insert_operation, number, "blue" if number % 2 else "red")
    wanted = parse("(eq,id,0003)")
    assert ids(database.read_now(list_documents, operations_table, wanted, project="blue").items) == ["0003"]
    assert database.read_now(list_documents, operations_table, wanted, project="red").items == []
    marker = database.read_now(list_documents, operations_table, limit=1, project="blue").next_marker
    after = database.read_now(list_documents, operations_table, marker=marker, limit=10, project="red")
    assert ids(after.items) == ["0004", "0002", "0000"]


@pytest.mark.parametrize("limit", [3, 10])
def test_a_page_of_large_documents_ends_earlier(
    database: Database, new_instance: Callable[..., Instance], monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """One that is too large by itself is a page of its own; none is left out, and none comes twice."""
    monkeypatch.setattr(paging, "LARGEST_TEXT", 10_000)
    sizes = [10, 6_000, 6_000, 50_000, 10, 10, 10]
    made = [new_instance(vnf_instance_description="x" * size) for size in sizes]
    for instance in made:
        database.write_now(instances.insert, instance)
    pages, marker = list[list[str]](), None
    while True:
        page = database.read_now(list_documents, instances_table, marker=marker, limit=limit)
        pages.append(ids(page.items))
        if (marker := page.next_marker) is None:
            break
    assert [one for page in pages for one in page] == [instance.vnf.id for instance in made]
    assert [len(page) for page in pages] == [3, 1, 3]


@pytest.mark.parametrize("limit", [0, -1, LARGEST + 1])
def test_a_page_has_a_size_within_reason(database: Database, limit: int) -> None:
    with pytest.raises(BadRequest, match=f"1 to {LARGEST}"):
        database.read_now(list_documents, operations_table, limit=limit)


def test_pages_of_operations_are_read_from_an_index(sqlite_url: URL) -> None:
    database = Database(sqlite_url)
    asked: list[tuple[str, Any]] = []
    for number in range(3):
        database.write_now(insert_operation, number)
    event.listen(
        database.engine,
        "before_cursor_execute",
        lambda connection, cursor, statement, parameters, *_: asked.append((statement, parameters)),
    )
    first = database.read_now(list_documents, operations_table, limit=1)
    database.read_now(list_documents, operations_table, marker=first.next_marker, limit=1)
    selects = [(statement, parameters) for statement, parameters in asked if statement.startswith("SELECT")]
    lists = [(statement, parameters) for statement, parameters in selects if "ORDER BY" in statement]
    assert len(lists) >= 2
    for statement, parameters in lists:
        plan = database.read_now(explain, statement, parameters)
        assert "USING INDEX ix_operations_started_at_id" in plan
        assert "TEMP B-TREE" not in plan
    database.close()


def explain(connection: Connection, statement: str, parameters: Any) -> str:
    return str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all())
