"""VNF packages from an empty record to an enabled VNFD, and away again.

Content arrives in `.incoming-<id>` and becomes `<id>.csar` in the transaction that makes the package ONBOARDED, so a
process killed at any moment leaves a whole package or none. `recover` mends the record that such a process left.
"""

from __future__ import annotations

import asyncio
import io
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cryptography import x509
from msgspec.structs import replace
from sqlalchemy import Connection, select

from slipway.model.clock import utcnow
from slipway.model.errors import Conflict, NotFound, PackageError, ProblemDetails, SlipwayError
from slipway.model.merge import merge_patch
from slipway.model.package import OnboardingState, OperationalState, UsageState, VnfPackage
from slipway.package.limits import DEFAULT_LIMITS, Limits
from slipway.package.meta import TOSCA_META, read_meta
from slipway.package.reader import Package, open_csar, open_member, read_package
from slipway.package.signature import UnsignedPolicy
from slipway.package.tosca.files import read_files
from slipway.store import packages, tables
from slipway.store.database import Database

WRITTEN_AT_ONCE = 1024 * 1024
ABANDONED_AFTER = 3600.0  # seconds without a byte, where other processes may be uploading

INCOMING = ".incoming-"
CONTENT = ".csar"
UNFINISHED = frozenset({OnboardingState.UPLOADING, OnboardingState.PROCESSING})


@dataclass(frozen=True)
class ArtifactContent:
    """A file of a package. `open` gives a stream that the caller closes."""

    open: Callable[[], io.BufferedReader]
    size: int
    media_type: str


class Onboarding:
    def __init__(
        self,
        database: Database,
        package_dir: Path,
        *,
        policy: UnsignedPolicy = UnsignedPolicy.ACCEPT,
        trust: Sequence[x509.Certificate] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        package_dir.mkdir(parents=True, exist_ok=True)
        self._database = database
        self._dir = package_dir
        self._policy = policy
        self._trust = tuple(trust)
        self._limits = limits

    async def create(self, user_defined_data: dict[str, Any]) -> VnfPackage:
        package = VnfPackage(
            id=str(uuid.uuid4()),
            onboarding_state=OnboardingState.CREATED,
            operational_state=OperationalState.DISABLED,
            usage_state=UsageState.NOT_IN_USE,
            user_defined_data=merge_patch({}, user_defined_data),
            created_at=utcnow(),
        )
        await self._database.write(packages.insert, package)
        return package

    async def get(self, package_id: str) -> VnfPackage:
        return await self._database.read(packages.get, package_id)

    async def modify(
        self, package_id: str, operational_state: OperationalState | None, user_defined_data: dict[str, Any] | None
    ) -> VnfPackage:
        """None leaves as it is; user data are merged."""
        return await self._database.write(_modify, package_id, operational_state, user_defined_data)

    async def delete(self, package_id: str) -> None:
        await self._database.write(_delete, package_id)
        await asyncio.to_thread(self._content(package_id).unlink, missing_ok=True)

    async def upload(self, package_id: str, chunks: AsyncIterator[bytes]) -> VnfPackage:
        """Store the content, check it, and enable the package. What is wrong with the content stands in the record;
        what went wrong on the way here is raised, too.
        """
        await self._database.write(_begin, package_id)
        incoming = self._dir / f"{INCOMING}{package_id}"
        try:
            await _store(incoming, chunks)
            await self._database.write(_enter, package_id, OnboardingState.PROCESSING)
            package = await asyncio.to_thread(self._read, incoming)
            return await self._database.write(self._finish, package_id, package, incoming)
        except (PackageError, Conflict) as refused:
            return await self._given_up(package_id, incoming, refused.problem)
        except BaseException as error:
            broken_off = ProblemDetails(500, "The upload ended early. Repeat it.", "Upload broken off")
            await self._given_up(package_id, incoming, error.problem if isinstance(error, SlipwayError) else broken_off)
            raise

    async def content(self, package_id: str) -> Path:
        """The file as it was uploaded."""
        package = await self.get(package_id)
        if package.onboarding_state is not OnboardingState.ONBOARDED:
            raise Conflict(f"VNF package {package_id} is {package.onboarding_state}; it has no content yet.")
        return self._content(package_id)

    async def vnfd(self, package_id: str) -> dict[str, bytes]:
        """The files of the VNFD by path, the entry file first."""
        return await asyncio.to_thread(self._vnfd, await self.content(package_id))

    async def manifest(self, package_id: str) -> bytes:
        content = await asyncio.to_thread(self._manifest, await self.content(package_id))
        if content is None:
            raise NotFound(f"VNF package {package_id} has no manifest.")
        return content

    async def artifact(self, package_id: str, name: str) -> ArtifactContent:
        """One file, if the record of the package names it."""
        path = await self.content(package_id)
        package = await self.get(package_id)
        sizes = {one.artifact_path: one.size_bytes for one in package.additional_artifacts}
        types = {one.artifact_path: one.media_type for one in package.additional_artifacts}
        sizes |= {one.image_path: one.size for one in package.software_images if one.image_path and one.size}
        if name not in sizes:
            raise NotFound(f"VNF package {package_id} has no artifact {name!r}.")
        media_type = types.get(name) or "application/octet-stream"
        return ArtifactContent(partial(open_member, path, name, self._limits), sizes[name], media_type)

    async def recover(self, *, alone: bool) -> None:
        """At the start of a process: give up what others left unfinished, and remove files that belong to nothing.

        `alone` says that no other process uploads. Otherwise only what nobody touched for an hour is given up.
        """
        await self._database.write(self._recover, alone)

    async def _given_up(self, package_id: str, incoming: Path, failure: ProblemDetails) -> VnfPackage:
        """The file first: as long as it is there, the record must not say that the way is free."""
        await asyncio.to_thread(incoming.unlink, missing_ok=True)
        return await self._database.write(_give_up, package_id, failure)

    def _read(self, path: Path) -> Package:
        return read_package(path, self._policy, self._trust, self._limits)

    def _vnfd(self, path: Path) -> dict[str, bytes]:
        """All was checked when it came, so that no more is read now than is asked for."""
        with open_csar(path, self._limits) as archive:
            names = [*read_files(archive, read_meta(archive).entry).paths(), TOSCA_META]
            return {name: archive.read(name, self._limits.text_bytes) for name in names if name in archive}

    def _manifest(self, path: Path) -> bytes | None:
        with open_csar(path, self._limits) as archive:
            manifest = read_meta(archive).manifest
            return None if manifest is None else archive.read(manifest.path, self._limits.text_bytes)

    def _content(self, package_id: str) -> Path:
        return self._dir / f"{package_id}{CONTENT}"

    def _finish(self, connection: Connection, package_id: str, content: Package, incoming: Path) -> VnfPackage:
        descriptor = content.descriptor
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
            software_images=content.software_images,
            additional_artifacts=content.artifacts,
        )
        stored = packages.update(connection, package, descriptor)
        incoming.replace(self._content(package_id))
        return stored

    def _recover(self, connection: Connection, alone: bool) -> None:
        contents = list(self._dir.glob(f"*{CONTENT}"))  # before the records: what comes meanwhile is not touched
        known = {package.id: package for package in packages.list_all(connection)}
        for path in contents:
            owner = known.get(path.stem)
            if owner is None or (alone and owner.onboarding_state is not OnboardingState.ONBOARDED):
                path.unlink(missing_ok=True)
        abandoned = set(known) if alone else set()
        for path in self._dir.glob(f"{INCOMING}*"):
            if alone or _untouched(path):
                path.unlink(missing_ok=True)
                abandoned.add(path.name.removeprefix(INCOMING))
        detail = "Slipway was stopped while the package was being onboarded. Upload it again."
        failure = ProblemDetails(500, detail, "Onboarding broken off")
        for package_id in abandoned & set(known):
            _give_up(connection, package_id, failure)


def _modify(
    connection: Connection,
    package_id: str,
    operational_state: OperationalState | None,
    user_defined_data: dict[str, Any] | None,
) -> VnfPackage:
    package = _locked(connection, package_id)
    if operational_state is not None:
        if package.onboarding_state is not OnboardingState.ONBOARDED:
            raise Conflict(f"VNF package {package_id} is {package.onboarding_state}; upload its content first.")
        if operational_state is package.operational_state:
            raise Conflict(f"VNF package {package_id} is {operational_state} already.")
        package = replace(package, operational_state=operational_state)
    if user_defined_data is not None:
        merged = merge_patch(package.user_defined_data, user_defined_data)
        package = replace(package, user_defined_data=merged)
    return packages.update(connection, package)


def _delete(connection: Connection, package_id: str) -> None:
    package = _locked(connection, package_id)
    if package.onboarding_state in UNFINISHED:
        raise Conflict(f"VNF package {package_id} is {package.onboarding_state}; wait until that has ended.")
    if package.operational_state is OperationalState.ENABLED and package.usage_state is UsageState.NOT_IN_USE:
        raise Conflict(
            f'VNF package {package_id} is ENABLED. Disable it first: PATCH it with {{"operationalState": "DISABLED"}}.'
        )
    packages.delete(connection, package_id)


def _begin(connection: Connection, package_id: str) -> None:
    package = _locked(connection, package_id)
    if package.onboarding_state is not OnboardingState.CREATED:
        raise Conflict(
            f"VNF package {package_id} is {package.onboarding_state}; content is possible for a CREATED one only. "
            "Make a new VNF package."
        )
    uploading = replace(package, onboarding_state=OnboardingState.UPLOADING, onboarding_failure_details=None)
    packages.update(connection, uploading)


def _enter(connection: Connection, package_id: str, state: OnboardingState) -> None:
    packages.update(connection, replace(_locked(connection, package_id), onboarding_state=state))


def _give_up(connection: Connection, package_id: str, failure: ProblemDetails) -> VnfPackage:
    """Back to CREATED, unless it came through."""
    package = _locked(connection, package_id)
    if package.onboarding_state not in UNFINISHED:
        return package
    created = replace(package, onboarding_state=OnboardingState.CREATED, onboarding_failure_details=failure)
    return packages.update(connection, created)


def _locked(connection: Connection, package_id: str) -> VnfPackage:
    """The package, which nobody else changes until the transaction ends."""
    table = tables.packages
    connection.execute(select(table.c.id).where(table.c.id == package_id).with_for_update())
    return packages.get(connection, package_id)


async def _store(path: Path, chunks: AsyncIterator[bytes]) -> None:
    with await asyncio.to_thread(path.open, "wb") as file:
        waiting: list[bytes] = []
        size = 0
        async for chunk in chunks:
            waiting.append(chunk)
            size += len(chunk)
            if size >= WRITTEN_AT_ONCE:
                await asyncio.to_thread(file.writelines, waiting)
                waiting, size = [], 0
        await asyncio.to_thread(file.writelines, waiting)
        file.flush()
        await asyncio.to_thread(os.fsync, file.fileno())


def _untouched(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > ABANDONED_AFTER
    except FileNotFoundError:
        return False
