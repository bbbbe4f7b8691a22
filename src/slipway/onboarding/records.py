"""State changes of a package, one transaction each. Its files are moved inside the transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from sqlalchemy import Connection, select

from slipway.model.clock import utcnow
from slipway.model.errors import Conflict, ProblemDetails
from slipway.model.json_documents import bounded, merge_patch
from slipway.model.package import OnboardingState, OperationalState, UsageState, VnfPackage
from slipway.model.secrets import find_secrets
from slipway.model.subscription import PackageNotice
from slipway.notify.outbox import notify_package
from slipway.onboarding.incoming import IncomingFiles
from slipway.package.reader import Package
from slipway.store import packages, tables
from slipway.store.database import Database
from slipway.store.secrets import Vault

UNFINISHED = frozenset({OnboardingState.UPLOADING, OnboardingState.PROCESSING})
STOPPED = ProblemDetails(
    500, "Slipway was stopped while the package was being onboarded. Upload it again.", "Onboarding interrupted"
)


def modify(
    connection: Connection,
    package_id: str,
    operational_state: OperationalState | None,
    user_defined_data: dict[str, Any] | UnsetType | None = UNSET,
) -> VnfPackage:
    """User data are merged; None removes all of them."""
    package = _locked(connection, package_id)
    if operational_state is not None:
        if package.onboarding_state is not OnboardingState.ONBOARDED:
            raise Conflict(f"VNF package {package_id} is {package.onboarding_state}; upload its content first.")
        if operational_state is package.operational_state:
            raise Conflict(f"VNF package {package_id} is {operational_state} already.")
        package = replace(package, operational_state=operational_state)
    if not isinstance(user_defined_data, UnsetType):
        merged = merge_patch(package.user_defined_data, user_defined_data)
        package = replace(package, user_defined_data=bounded(merged or {}, "userDefinedData"))
    stored = packages.update(connection, package)
    if operational_state is not None:
        notify_package(connection, stored, PackageNotice.CHANGED, packages.project_of(connection, package_id))
    return stored


def hide_clear_secrets(database: Database, vault: Vault, names: tuple[str, ...]) -> None:
    """At each start: of packages stored when `userDefinedData` were kept as they came, or before `names` were secret.

    No migration can do it, which has no key.
    """
    known = database.read_now(packages.user_data)
    if clear := [package_id for package_id, data in known.items() if find_secrets(data, names)]:
        database.write_now(_hide, clear, vault, names)


def _hide(connection: Connection, package_ids: list[str], vault: Vault, names: tuple[str, ...]) -> None:
    for package_id in package_ids:
        if _lock(connection, package_id):
            package = packages.get(connection, package_id)
            hidden = vault.encrypt_secrets(connection, package_id, package.user_defined_data, names)
            packages.update(connection, replace(package, user_defined_data=hidden))


def delete(connection: Connection, package_id: str, incoming: IncomingFiles) -> None:
    package = _recovered(connection, package_id, incoming)
    if package.onboarding_state in UNFINISHED:
        raise Conflict(f"VNF package {package_id} is {package.onboarding_state}; wait until that has ended.")
    if package.operational_state is OperationalState.ENABLED and package.usage_state is UsageState.NOT_IN_USE:
        raise Conflict(
            f'VNF package {package_id} is ENABLED. Disable it first: PATCH it with {{"operationalState": "DISABLED"}}.'
        )
    if package.onboarding_state is OnboardingState.ONBOARDED:
        project = packages.project_of(connection, package_id)
        notify_package(connection, package, PackageNotice.CHANGED, project, deleted=True)
    packages.delete(connection, package_id)


def begin(connection: Connection, package_id: str, incoming: IncomingFiles) -> BinaryIO:
    """The file to write the content to. The package is the caller's as long as that is open."""
    package = _recovered(connection, package_id, incoming)
    if package.onboarding_state is not OnboardingState.CREATED:
        raise Conflict(
            f"VNF package {package_id} is {package.onboarding_state}; content can be uploaded to a CREATED one only. "
            "Make a new VNF package."
        )
    uploading = replace(package, onboarding_state=OnboardingState.UPLOADING, onboarding_failure_details=None)
    packages.update(connection, uploading)
    return incoming.begin(package_id)


def process(connection: Connection, package_id: str) -> None:
    processing = replace(_locked(connection, package_id), onboarding_state=OnboardingState.PROCESSING)
    packages.update(connection, processing)


def finish(
    connection: Connection, package_id: str, content: Package, incoming: IncomingFiles, target: Path
) -> VnfPackage:
    descriptor = content.descriptor
    now = utcnow()
    package = replace(
        _locked(connection, package_id),
        onboarding_state=OnboardingState.ONBOARDED,
        operational_state=OperationalState.ENABLED,
        vnfd_id=descriptor.vnfd_id,
        vnf_provider=descriptor.provider,
        vnf_product_name=descriptor.product_name,
        vnf_software_version=descriptor.software_version,
        vnfd_version=descriptor.vnfd_version,
        checksum=content.checksum,
        software_images=tuple(replace(image, created_at=now) for image in content.software_images),
        additional_artifacts=content.artifacts,
    )
    stored = packages.update(connection, package, descriptor, content.warnings)
    notify_package(connection, stored, PackageNotice.ONBOARDED, packages.project_of(connection, package_id))
    incoming.path(package_id).replace(target)
    return stored


def fail_upload(
    connection: Connection, package_id: str, failure: ProblemDetails, incoming: IncomingFiles
) -> VnfPackage:
    """Back to CREATED, unless it was onboarded meanwhile."""
    package = _locked(connection, package_id)
    return (
        _back_to_created(connection, package, failure, incoming) if package.onboarding_state in UNFINISHED else package
    )


def recover(connection: Connection, incoming: IncomingFiles, directory: Path, suffix: str) -> None:
    """Fail uploads whose process is gone, and remove files that belong to no package."""
    # Before the records: what comes meanwhile is not touched.
    contents = {path.name.removesuffix(suffix): path for path in directory.glob(f"*{suffix}")}
    arriving = incoming.ids()
    known = {package.id: package.onboarding_state for package in packages.list_all(connection)}
    done = {package_id for package_id, state in known.items() if state is OnboardingState.ONBOARDED}
    left = {package_id for package_id, state in known.items() if state in UNFINISHED}
    for package_id in sorted(left | arriving | (contents.keys() - done)):  # in one order: others may be at it, too
        state = None
        if package_id in known and _lock(connection, package_id):
            state = _recovered(connection, package_id, incoming).onboarding_state
        if state not in UNFINISHED:
            incoming.remove(package_id)
        if state is not OnboardingState.ONBOARDED and package_id in contents:
            contents[package_id].unlink(missing_ok=True)


def _recovered(connection: Connection, package_id: str, incoming: IncomingFiles) -> VnfPackage:
    """The package, locked. An upload whose process is gone is failed first."""
    package = _locked(connection, package_id)
    if package.onboarding_state in UNFINISHED and not incoming.is_being_written(package_id):
        return _back_to_created(connection, package, STOPPED, incoming)
    return package


def _back_to_created(
    connection: Connection, package: VnfPackage, failure: ProblemDetails, incoming: IncomingFiles
) -> VnfPackage:
    incoming.remove(package.id)
    created = replace(package, onboarding_state=OnboardingState.CREATED, onboarding_failure_details=failure)
    return packages.update(connection, created)


def _locked(connection: Connection, package_id: str) -> VnfPackage:
    """The package, locked until the transaction ends."""
    _lock(connection, package_id)
    return packages.get(connection, package_id)


def _lock(connection: Connection, package_id: str) -> bool:
    """False when there is no such package."""
    table = tables.packages
    return connection.scalar(select(table.c.id).where(table.c.id == package_id).with_for_update()) is not None
