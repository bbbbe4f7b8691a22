from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from slipway.model.errors import NotFound, PreconditionFailed
from slipway.model.instance import Instance, InstantiationState
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.filters import parse
from slipway.store.paging import list_documents
from slipway.store.tables import instances as table

New = Callable[..., Instance]


def test_an_instance_comes_back_as_it_was_stored(database: Database, new_instance: New) -> None:
    instance = new_instance(vnf_instance_name="one", metadata={"deep": {"er": [1, None, "ü"]}})
    database.write_now(instances.insert, instance)
    assert database.read_now(instances.get, instance.vnf.id) == instance


def test_every_change_raises_the_version(database: Database, new_instance: New) -> None:
    instance = new_instance()
    database.write_now(instances.insert, instance)
    vnf = msgspec.structs.replace(instance.vnf, instantiation_state=InstantiationState.INSTANTIATED)
    changed = database.write_now(instances.update, msgspec.structs.replace(instance, vnf=vnf, parameters={}), 1)
    assert changed.version == 2
    assert database.read_now(instances.get, instance.vnf.id) == changed
    assert database.write_now(instances.update, changed).version == 3


def test_a_change_of_something_older_is_refused_and_names_both_versions(database: Database, new_instance: New) -> None:
    instance = new_instance()
    database.write_now(instances.insert, instance)
    database.write_now(instances.update, instance)
    with pytest.raises(PreconditionFailed, match="is at version 2, not 1"):
        database.write_now(instances.update, instance, 1)


def test_what_is_not_there_is_named(database: Database, new_instance: New) -> None:
    absent = new_instance(id="absent")
    with pytest.raises(NotFound, match="VNF instance absent"):
        database.read_now(instances.get, "absent")
    with pytest.raises(NotFound, match="VNF instance absent"):
        database.write_now(instances.update, absent)
    with pytest.raises(NotFound, match="VNF instance absent"):
        database.write_now(instances.delete, "absent")


def test_instances_are_found_by_name_oldest_first_and_deleted(database: Database, new_instance: New) -> None:
    first, second, third = (new_instance(vnf_instance_name=name) for name in ("a", "a", "b"))
    for instance in (second, third, first):
        database.write_now(instances.insert, instance)
    assert named_a(database) == [first.vnf.id, second.vnf.id]
    database.write_now(instances.delete, first.vnf.id)
    assert named_a(database) == [second.vnf.id]


def named_a(database: Database) -> list[str]:
    page = database.read_now(list_documents, table, parse("(eq,vnfInstanceName,a)"))
    return [msgspec.json.decode(item)["id"] for item in page.items]


def test_a_list_is_the_stored_json_less_what_is_not_wanted(database: Database, new_instance: New) -> None:
    instance = new_instance(metadata={"a": 1}, vnf_instance_name="one")
    database.write_now(instances.insert, instance)
    whole = database.read_now(list_documents, table)
    assert [msgspec.json.decode(item, type=type(instance.vnf)) for item in whole.items] == [instance.vnf]
    part = database.read_now(list_documents, table, without=["metadata", "extensions", "vnfInstanceName"])
    shown = msgspec.json.decode(part.items[0])
    assert "metadata" not in shown
    assert shown["id"] == instance.vnf.id
