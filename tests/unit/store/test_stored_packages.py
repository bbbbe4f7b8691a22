from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec
import pytest
from sqlalchemy import Connection

from slipway.model.descriptor import Descriptor
from slipway.model.errors import Conflict, NotFound, Unprocessable
from slipway.model.instance import Instance
from slipway.model.package import OnboardingState, OperationalState, PackageWarning, UsageState, VnfPackage
from slipway.store import instances, packages
from slipway.store.database import Database
from slipway.store.filters import parse
from slipway.store.paging import list_documents
from slipway.store.tables import packages as table

New = Callable[..., VnfPackage]

DESCRIPTOR = Descriptor(vnfd_id="vnfd-1", provider="p", product_name="n", software_version="1", vnfd_version="1")

WARNING = PackageWarning(file="vnfd.yaml", line=7, what="It is ignored.", cure="remove it.")


def test_a_package_gets_its_descriptor_later(database: Database, new_package: New) -> None:
    package = new_package(vnfd_id=None, onboarding_state=OnboardingState.CREATED)
    database.write_now(packages.insert, package)
    assert database.read_now(packages.get, package.id) == package
    onboarded = msgspec.structs.replace(package, vnfd_id="vnfd-1", onboarding_state=OnboardingState.ONBOARDED)
    assert database.read_now(packages.warnings_of, package.id) == ()
    assert database.write_now(packages.update, onboarded, DESCRIPTOR, (WARNING,)) == onboarded
    database.write_now(packages.update, onboarded)
    assert database.read_now(packages.usable, "vnfd-1") == DESCRIPTOR
    assert database.read_now(packages.warnings_of, package.id) == (WARNING,)
    assert database.read_now(packages.get, package.id) == onboarded


def test_a_package_is_in_use_while_an_instance_is_made_from_it(
    database: Database, new_package: New, new_instance: Callable[..., Instance]
) -> None:
    used, unused, raw = new_package(), new_package(vnfd_id="vnfd-2"), new_package(vnfd_id=None)
    for package in (used, unused, raw):
        database.write_now(packages.insert, package)
    instance = new_instance(vnfd_id="vnfd-1")
    database.write_now(instances.insert, instance)

    assert database.read_now(packages.get, used.id).usage_state is UsageState.IN_USE
    states = [package.usage_state.value for package in database.read_now(packages.list_all)]
    assert states == ["IN_USE", "NOT_IN_USE", "NOT_IN_USE"]
    listed = database.read_now(list_documents, table).items
    assert [msgspec.json.decode(item)["usageState"] for item in listed] == states
    found = database.read_now(list_documents, table, parse("(eq,usageState,IN_USE)")).items
    assert [msgspec.json.decode(item)["id"] for item in found] == [used.id]

    with pytest.raises(Conflict, match=f"{used.id} is in use by VNF instances \\({instance.vnf.id}\\)"):
        database.write_now(packages.delete, used.id)
    database.write_now(instances.delete, instance.vnf.id)
    database.write_now(packages.delete, used.id)
    with pytest.raises(NotFound, match=used.id):
        database.read_now(packages.get, used.id)


def test_two_packages_cannot_have_one_vnfd_and_the_other_is_named(database: Database, new_package: New) -> None:
    first, second = new_package(), new_package(vnfd_id=None)
    database.write_now(packages.insert, first)
    database.write_now(packages.insert, second)
    with pytest.raises(Conflict, match=f"VNF package {first.id} has the VNFD 'vnfd-1' already"):
        database.write_now(packages.insert, new_package())
    with pytest.raises(Conflict, match=first.id):
        database.write_now(packages.update, msgspec.structs.replace(second, vnfd_id="vnfd-1"))


def test_instances_are_made_only_from_onboarded_and_enabled_packages(database: Database, new_package: New) -> None:
    with pytest.raises(Unprocessable, match="no onboarded VNF package has the VNFD 'vnfd-1'"):
        database.read_now(packages.usable, "vnfd-1")
    with pytest.raises(NotFound, match="vnfd-1"):
        database.read_now(packages.contents, "vnfd-1")
    package = new_package(operational_state=OperationalState.DISABLED)
    database.write_now(packages.insert, package, DESCRIPTOR)
    with pytest.raises(Unprocessable, match=f"{package.id} with the VNFD 'vnfd-1' is DISABLED"):
        database.read_now(packages.usable, "vnfd-1")
    assert database.read_now(packages.contents, "vnfd-1") == (DESCRIPTOR, frozenset())


def test_what_is_not_there_is_named(database: Database, new_package: New) -> None:
    with pytest.raises(NotFound, match="VNF package absent"):
        database.write_now(packages.update, new_package(id="absent"))
    with pytest.raises(NotFound, match="VNF package absent"):
        database.write_now(packages.delete, "absent")


def test_a_package_that_is_held_to_make_an_instance_cannot_be_deleted_meanwhile(
    database: Database, new_package: New, new_instance: Callable[..., Instance]
) -> None:
    package = new_package()
    database.write_now(packages.insert, package)
    with ThreadPoolExecutor(1) as pool:

        def make(connection: Connection) -> Future[None]:
            packages.usable(connection, "vnfd-1", hold=True)
            deletion = pool.submit(database.write_now, packages.delete, package.id)
            with pytest.raises(TimeoutError):
                deletion.result(timeout=0.3)
            instances.insert(connection, new_instance(vnfd_id="vnfd-1"))
            return deletion

        deletion = database.write_now(make)
        with pytest.raises(Conflict, match="is in use"):
            deletion.result(timeout=10)
