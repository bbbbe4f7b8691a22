"""VNF packages. Whether one is in use is never stored: the instances say it, and operations that lead to it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    ScalarSelect,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.exc import IntegrityError

from slipway.model.access import DEFAULT_PROJECT
from slipway.model.descriptor import Descriptor
from slipway.model.errors import Conflict, NotFound, Unprocessable
from slipway.model.package import OnboardingState, OperationalState, PackageWarning, UsageState, VnfPackage
from slipway.store.tables import CHANGES_PACKAGE, instances, operations, packages

_MOVES_TO = type_coerce(operations.c.doc, JSON)[("operationParams", "vnfdId")].as_string()

IN_USE: ColumnElement[bool] = or_(
    exists()
    .where(instances.c.vnfd_id == packages.c.vnfd_id, instances.c.project == packages.c.project)
    .correlate(packages),
    exists()
    .where(CHANGES_PACKAGE, packages.c.vnfd_id == _MOVES_TO, operations.c.project == packages.c.project)
    .correlate(packages),
)

_WHOLE = select(packages.c.doc, IN_USE.label("in_use"))

_THIS = and_(packages.c.vnfd_id == bindparam("vnfd"), packages.c.project == bindparam("in_project"))
_CONTENTS = select(packages.c.doc, packages.c.descriptor).where(_THIS)
_HELD = _CONTENTS.with_for_update(read=True, of=packages)


def insert(
    connection: Connection,
    package: VnfPackage,
    descriptor: Descriptor | None = None,
    project: str = DEFAULT_PROJECT,
) -> None:
    if package.created_at is None:
        raise ValueError(f"package {package.id} has no created_at")
    row = {"id": package.id, "project": project, "created_at": package.created_at.timestamp()}
    row |= {"descriptor": descriptor}
    try:
        with connection.begin_nested():
            connection.execute(packages.insert().values(**row, **_changeable(package)))
    except IntegrityError:
        raise _taken(connection, package, project) from None


def get(connection: Connection, package_id: str, project: str | None = None) -> VnfPackage:
    """Of one project, or of any."""
    query = _WHOLE.where(packages.c.id == package_id)
    if project is not None:
        query = query.where(packages.c.project == project)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise _not_found(package_id)
    return _package(row)


def usable(connection: Connection, vnfd_id: str, hold: bool = False, project: str = DEFAULT_PROJECT) -> Descriptor:
    """The VNFD to make instances from: onboarded and enabled. `hold` it against deletion while you make one."""
    row = connection.execute(_HELD if hold else _CONTENTS, _named(vnfd_id, project)).one_or_none()
    if row is None or row.doc.onboarding_state is not OnboardingState.ONBOARDED:
        raise Unprocessable(f"vnfdId: no onboarded VNF package has the VNFD {vnfd_id!r}. Upload one first.")
    if row.doc.operational_state is not OperationalState.ENABLED:
        raise Unprocessable(f"vnfdId: VNF package {row.doc.id} with the VNFD {vnfd_id!r} is DISABLED. Enable it first.")
    descriptor: Descriptor = row.descriptor
    return descriptor


def contents(connection: Connection, vnfd_id: str, project: str = DEFAULT_PROJECT) -> tuple[Descriptor, frozenset[str]]:
    """The VNFD as planners need it, and the files that parameters may name. Disabled packages have them, too: their
    instances live on."""
    row = connection.execute(_CONTENTS, _named(vnfd_id, project)).one_or_none()
    if row is None or row.descriptor is None:
        raise NotFound(f"No onboarded VNF package has the VNFD {vnfd_id!r}.")
    files = (one.artifact_path for one in row.doc.additional_artifacts if not one.is_outside)
    return row.descriptor, frozenset(files)


def warnings_of(connection: Connection, package_id: str) -> tuple[PackageWarning, ...]:
    """Contradictions in it that harm nothing, as found when it was onboarded."""
    row = connection.execute(select(packages.c.warnings).where(packages.c.id == package_id)).one_or_none()
    if row is None:
        raise _not_found(package_id)
    found: tuple[PackageWarning, ...] = row.warnings or ()
    return found


def project_of(connection: Connection, package_id: str) -> str:
    project: str = connection.execute(select(packages.c.project).where(packages.c.id == package_id)).scalar_one()
    return project


def id_of(connection: Connection, vnfd_id: str, project: str = DEFAULT_PROJECT) -> str:
    """Of a disabled package, too: its instances live on."""
    found: str | None = connection.scalar(select(packages.c.id).where(_THIS), _named(vnfd_id, project))
    if found is None:
        raise NotFound(f"No onboarded VNF package has the VNFD {vnfd_id!r}.")
    return found


def ids_of_onboarded(connection: Connection, vnfd_id: str, project: str | None) -> list[str]:
    """The packages with this VNFD: in a project at most one, else those of all projects."""
    query = select(packages.c.id).where(packages.c.vnfd_id == vnfd_id)  # a package has it once it is onboarded
    if project is not None:
        query = query.where(packages.c.project == project)
    return list(connection.scalars(query.order_by(packages.c.created_at).limit(10)))


def ids_for(connection: Connection, instance_ids: Collection[str]) -> dict[str, str]:
    """Which package each instance is made from. Of disabled packages, too."""
    same = and_(instances.c.vnfd_id == packages.c.vnfd_id, instances.c.project == packages.c.project)
    found = select(instances.c.id, packages.c.id.label("package_id")).join(packages, same)
    rows = connection.execute(found.where(instances.c.id.in_(instance_ids)))
    return {row.id: row.package_id for row in rows}


def user_data(connection: Connection) -> dict[str, dict[str, Any]]:
    """`userDefinedData` of all packages that have some, by their ids."""
    data = type_coerce(packages.c.doc, JSON)["userDefinedData"].as_string()
    rows = connection.execute(select(packages.c.id, data.label("data")).where(data.is_not(None)))
    return {row.id: msgspec.json.decode(row.data) for row in rows}


def count(connection: Connection, project: str) -> int:
    return connection.scalar(select(func.count()).select_from(packages).where(packages.c.project == project)) or 0


def of_same_project(connection: Connection, package_id: str) -> tuple[str, list[str]]:
    """The project of a package, and the ids of all its packages."""
    project = project_of(connection, package_id)
    return project, list(connection.scalars(select(packages.c.id).where(packages.c.project == project)))


def list_all(connection: Connection) -> list[VnfPackage]:
    """Every package, oldest first. For answers to people use `paging.list_documents`."""
    return [_package(row) for row in connection.execute(_WHOLE.order_by(packages.c.created_at, packages.c.id))]


def update(
    connection: Connection,
    package: VnfPackage,
    descriptor: Descriptor | None = None,
    warnings: tuple[PackageWarning, ...] | None = None,
) -> VnfPackage:
    """Store the package, and what was read of its content when that is given; otherwise that stays as it is."""
    content = {"descriptor": descriptor, "warnings": warnings}
    values = _changeable(package) | {name: value for name, value in content.items() if value is not None}
    try:
        with connection.begin_nested():
            changed = connection.execute(packages.update().where(packages.c.id == package.id).values(**values))
    except IntegrityError:
        raise _taken(connection, package, _project_of(package.id)) from None
    if changed.rowcount == 0:
        raise _not_found(package.id)
    return get(connection, package.id)


def delete(connection: Connection, package_id: str) -> None:
    """Conflict while instances use it. Waits for transactions that make an instance of it."""
    connection.execute(select(packages.c.id).where(packages.c.id == package_id).with_for_update())
    if connection.execute(packages.delete().where(packages.c.id == package_id, ~IN_USE)).rowcount == 0:
        package = get(connection, package_id)
        used_by = (
            select(instances.c.id)
            .where(instances.c.vnfd_id == package.vnfd_id, instances.c.project == _project_of(package_id))
            .union(
                select(operations.c.instance_id).where(
                    CHANGES_PACKAGE, package.vnfd_id == _MOVES_TO, operations.c.project == _project_of(package_id)
                )
            )
            .limit(3)
        )
        some = ", ".join(connection.scalars(used_by))
        raise Conflict(f"VNF package {package_id} is in use by VNF instances ({some}). Delete those first.")


def _changeable(package: VnfPackage) -> dict[str, Any]:
    doc = msgspec.structs.replace(package, usage_state=UsageState.NOT_IN_USE)
    return {"vnfd_id": package.vnfd_id, "doc": doc}


def _package(row: Any) -> VnfPackage:
    package: VnfPackage = row.doc
    return msgspec.structs.replace(package, usage_state=UsageState.IN_USE) if row.in_use else package


def _not_found(package_id: str) -> NotFound:
    return NotFound(f"There is no VNF package {package_id}.")


def _named(vnfd_id: str, project: str) -> dict[str, str]:
    return {"vnfd": vnfd_id, "in_project": project}


def _project_of(package_id: str) -> ScalarSelect[str]:
    return select(packages.c.project).where(packages.c.id == package_id).scalar_subquery()


def _taken(connection: Connection, package: VnfPackage, project: str | ScalarSelect[str]) -> Conflict:
    other = connection.scalar(
        select(packages.c.id).where(
            packages.c.vnfd_id == package.vnfd_id, packages.c.id != package.id, packages.c.project == project
        )
    )
    if other is None:
        return Conflict(f"There is a VNF package {package.id} already.")
    return Conflict(
        f"VNF package {other} has the VNFD {package.vnfd_id!r} already. Delete it, or change the VNFD's id."
    )
