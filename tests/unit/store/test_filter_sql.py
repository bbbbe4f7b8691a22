"""Filters on a real database give the same rows as a plain evaluation of the decoded documents in Python."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from slipway.model.errors import BadRequest
from slipway.model.instance import Instance, VnfInstance
from slipway.model.operation import Operation, OperationType, State
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.filters import DENIES, TAKES_SEVERAL, Filter, Operator, parse
from slipway.store.paging import list_documents
from slipway.store.tables import instances as instances_table
from slipway.store.tables import operations as operations_table
from tests.examples import examples

BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
TEXTS = st.sampled_from(["", "a", "b", "ab", "A", "é", "1", "2", "0.5", "true", "a'b", "%", "a\\b", '"'])
VALUES = TEXTS | st.sampled_from(["-1", "1e0", "false", "9007199254740993"])
KEYS = st.sampled_from(["k", "l", "0", "a b", "é", "a/b", "@key", "x.y", "$"])
FREE = st.recursive(
    st.none() | st.booleans() | st.sampled_from([-1, 0, 1, 2, 2**53 + 1, 0.5, 1.0]) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
LEVELS = st.lists(st.integers(0, 3), max_size=3)

Extract = Callable[[dict[str, Any]], list[Any]]


def info(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document.get("instantiatedVnfInfo", {})
    return found


DECLARED: dict[str, Extract] = {
    "vnfInstanceName": lambda d: [d["vnfInstanceName"]] if "vnfInstanceName" in d else [],
    "vnfInstanceDescription": lambda d: [d["vnfInstanceDescription"]] if "vnfInstanceDescription" in d else [],
    "instantiatedVnfInfo/vnfState": lambda d: [info(d)["vnfState"]] if info(d) else [],
    "instantiatedVnfInfo/scaleStatus/aspectId": lambda d: [s["aspectId"] for s in info(d).get("scaleStatus", [])],
    "instantiatedVnfInfo/vnfcResourceInfo/storageResourceIds": lambda d: [
        name for vnfc in info(d).get("vnfcResourceInfo", []) for name in vnfc.get("storageResourceIds", [])
    ],
    "vimConnectionInfo/vimType": lambda d: [
        vim["vimType"] for vim in d.get("vimConnectionInfo", {}).values() if "vimType" in vim
    ],
    "vimConnectionInfo/@key": lambda d: list(d.get("vimConnectionInfo", {})),
    "metadata/@key": lambda d: list(d.get("metadata", {})),
}


@st.composite
def documents(draw: st.DrawFn) -> VnfInstance:
    document: dict[str, Any] = {
        "id": str(draw(st.uuids())),
        "vnfdId": draw(TEXTS),
        "vnfProvider": "p",
        "vnfProductName": "n",
        "vnfSoftwareVersion": "1",
        "vnfdVersion": "1",
        "instantiationState": "NOT_INSTANTIATED",
        "vnfInstanceName": draw(TEXTS | st.none()),
        "vnfInstanceDescription": draw(TEXTS | st.none()),
        "metadata": draw(st.dictionaries(KEYS, FREE, max_size=3)),
        "vimConnectionInfo": draw(st.dictionaries(KEYS, st.fixed_dictionaries({}, optional={"vimType": TEXTS}))),
    }
    if draw(st.booleans()):
        document["instantiatedVnfInfo"] = {
            "flavourId": "f",
            "vnfState": draw(TEXTS),
            "scaleStatus": [{"aspectId": draw(TEXTS), "scaleLevel": level} for level in draw(LEVELS)],
            "vnfcResourceInfo": [
                {"id": "1", "vduId": "v", "computeResource": {"resourceId": "r"}, "storageResourceIds": names}
                for names in draw(st.lists(st.lists(TEXTS, max_size=2), max_size=2))
            ],
        }
    return msgspec.convert(document, VnfInstance)


ORDER = {Operator.GT: python.gt, Operator.GTE: python.ge, Operator.LT: python.lt, Operator.LTE: python.le}


def number(value: str) -> float | None:
    try:
        return int(value) if value.lstrip("-").isdigit() else float(value)
    except ValueError:
        return None


def holds_for(operator: Operator, found: Any, wanted: str) -> bool:
    if isinstance(found, bool):
        return operator in (Operator.EQ, Operator.IN) and wanted == str(found).lower()
    if isinstance(found, int | float):
        if operator is Operator.CONT or (value := number(wanted)) is None:
            return False
        return bool(ORDER.get(operator, python.eq)(found, value))
    if not isinstance(found, str):
        return False
    if operator is Operator.CONT:
        return wanted in found
    return bool(ORDER.get(operator, python.eq)(found, wanted))


def holds(wanted: Filter, found: list[Any]) -> bool:
    operator = DENIES.get(wanted.operator, wanted.operator)
    positive = any(holds_for(operator, one, value) for one in found for value in wanted.values)
    return positive if operator is wanted.operator else not positive


def free_values(metadata: Any, path: tuple[str, ...]) -> list[Any]:
    for name in path:
        if not isinstance(metadata, dict) or name not in metadata:
            return []
        metadata = metadata[name]
    return metadata if isinstance(metadata, list) else [metadata]


@st.composite
def filters(draw: st.DrawFn) -> tuple[Filter, Extract]:
    operator = draw(st.sampled_from(Operator))
    values = tuple(draw(st.lists(VALUES, min_size=1, max_size=2 if operator in TAKES_SEVERAL else 1)))
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(DECLARED)))
        by_key = name.endswith("/@key")
        path = tuple(name.removesuffix("/@key").split("/"))
        return Filter(operator, path, values, by_key), DECLARED[name]
    keys = tuple(draw(st.lists(KEYS, min_size=1, max_size=2)))
    return Filter(operator, ("metadata", *keys), values), lambda d: free_values(d.get("metadata", {}), keys)


def insert(connection: Connection, docs: list[VnfInstance]) -> None:
    connection.execute(instances_table.delete())
    for position, doc in enumerate(docs):
        instances.insert(connection, Instance(vnf=doc, created_at=BEGIN + timedelta(seconds=position)))


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(docs=st.lists(documents(), max_size=4, unique_by=lambda doc: doc.id), wanted=st.lists(filters(), max_size=5))
def test_the_database_finds_what_a_plain_evaluation_finds(
    database: Database, docs: list[VnfInstance], wanted: list[tuple[Filter, Extract]]
) -> None:
    database.write_now(insert, docs)
    decoded = [msgspec.json.decode(msgspec.json.encode(doc)) for doc in docs]
    for one, extract in wanted:
        found = database.read_now(list_documents, instances_table, [one]).items
        expected = [document["id"] for document in decoded if holds(one, extract(document))]
        assert [msgspec.json.decode(item)["id"] for item in found] == expected, one


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(levels=st.lists(LEVELS, max_size=4), operator=st.sampled_from(sorted(Operator)), value=st.integers(0, 3))
def test_numbers_are_compared_as_numbers(
    database: Database, levels: list[list[int]], operator: Operator, value: int
) -> None:
    def fill(connection: Connection) -> None:
        insert(connection, [instance_with_levels(str(i), one) for i, one in enumerate(levels)])

    database.write_now(fill)
    wanted = Filter(operator, ("instantiatedVnfInfo", "scaleStatus", "scaleLevel"), (str(value),))
    if operator in (Operator.CONT, Operator.NCONT):
        with pytest.raises(BadRequest, match="can't be compared by cont"):
            database.read_now(list_documents, instances_table, [wanted])
        return
    found = database.read_now(list_documents, instances_table, [wanted]).items
    assert [msgspec.json.decode(item)["id"] for item in found] == [
        str(i) for i, one in enumerate(levels) if holds(wanted, list(one))
    ]


def instance_with_levels(instance_id: str, levels: list[int]) -> VnfInstance:
    document = {
        "id": instance_id, "vnfdId": "d", "vnfProvider": "p", "vnfProductName": "n", "vnfSoftwareVersion": "1",
        "vnfdVersion": "1", "instantiationState": "INSTANTIATED",
        "instantiatedVnfInfo": {
            "flavourId": "f", "vnfState": "STARTED",
            "scaleStatus": [{"aspectId": "a", "scaleLevel": level} for level in levels],
        },
    }  # fmt: skip
    return msgspec.convert(document, VnfInstance)


def fill_operations(connection: Connection) -> None:
    for position in range(4):
        moment = BEGIN + timedelta(milliseconds=500 * position)
        operation = Operation(
            id=str(position),
            vnf_instance_id="i",
            operation=OperationType.SCALE,
            operation_state=State.COMPLETED,
            state_entered_time=moment,
            start_time=moment,
            is_automatic_invocation=position % 2 == 0,
            is_cancel_pending=False,
            operation_params={"additionalParams": {"password": {"$secret": "1"}}},
        )
        row = {"id": operation.id, "instance_id": "i", "operation": "SCALE", "state": "COMPLETED", "planned": True}
        row |= {"project": "default", "started_at": moment.timestamp(), "doc": operation, "summary": "{}", "epoch": 0}
        connection.execute(operations_table.insert().values(**row))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(gt,{time},2024-05-01T00:00:00.5Z)", "32"),
        ("(gte,{time},2024-05-01T00:00:00.500Z)", "321"),
        ("(lt,{time},2024-05-01T02:00:01+02:00)", "10"),
        ("(eq,{time},2024-05-01T00:00:01Z)", "2"),
        ("(neq,{time},2024-05-01T00:00:01.000000+00:00)", "310"),
        ("(in,{time},2024-05-01T00:00:00Z,2024-05-01T00:00:01.5Z)", "30"),
        ("(eq,isAutomaticInvocation,true)", "20"),
        ("(nin,isAutomaticInvocation,true)", "31"),
        ("(eq,operation,SCALE);(eq,operationState,COMPLETED);(eq,id,1)", "1"),
        ("(eq,operationParams/additionalParams/password,1)", ""),
    ],
)
@pytest.mark.parametrize("time", ["startTime", "stateEnteredTime"])
def test_times_booleans_and_columns(database: Database, text: str, expected: str, time: str) -> None:
    database.write_now(fill_operations)
    page = database.read_now(list_documents, operations_table, parse(text.format(time=time)))
    assert "".join(msgspec.json.decode(item)["id"] for item in page.items) == expected


@pytest.mark.parametrize(("operator", "expected"), [("in", "1"), ("nin", "320")])
@pytest.mark.parametrize("attribute", ["id", "vnfInstanceId", "operationParams/n"])
def test_as_many_values_as_a_filter_has_room_for(
    database: Database, operator: str, expected: str, attribute: str
) -> None:
    database.write_now(fill_operations)
    wanted = f"({operator},{attribute},{','.join(['x'] * 700 + ['8', '7.5'] * 200)},1)"
    page = database.read_now(list_documents, operations_table, parse(wanted))
    found = "".join(msgspec.json.decode(item)["id"] for item in page.items)
    assert found == (expected if attribute == "id" else {"in": "", "nin": "3210"}[operator])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"(cont,id,{','.join(['x'] * 1000)})", "1000 values are too many; at most 200 are looked for"),
        ("(eq,startTme,x)", "no attribute 'startTme'. Did you mean: startTime"),
        ("(eq,startTime,x)", "'x' is not a date and time such as"),
        ("(eq,startTime,0001-01-01T00:00:00+23:00)", "is not a date and time"),
        ("(cont,startTime,2024-05-01)", "can't be compared by cont"),
        ("(eq,isCancelPending,yes)", "'yes' is not true or false"),
        ("(gt,isCancelPending,true)", "can't be compared by gt"),
        ("(eq,resourceChanges,x)", "name an attribute below it"),
        ("(eq,id/@key,x)", "is not a map"),
        ("(eq,operationParams/vimConnectionInfo/v/accessInfo/password,x)", "secrets can't be filtered on"),
        ("(eq,operationParams/a/$secret,x)", "secrets can't be filtered on"),
        ("(eq,operationParams/\",x)", "can't hold quotation marks"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_the_reason(database: Database, text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        database.read_now(list_documents, operations_table, parse(text))
    assert message in refused.value.detail
