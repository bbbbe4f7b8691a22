"""VNF packages: create, upload or download, check, enable, disable, delete.

Content arrives in a file of its own (incoming.py) and becomes `<id>.csar` in the transaction that makes the package
ONBOARDED, so a process killed at any moment leaves a whole package or none. `recover` corrects the record that it left.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from cryptography import x509
from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.model.access import DEFAULT_PROJECT
from slipway.model.clock import utcnow
from slipway.model.errors import Conflict, NotFound, PackageError, ProblemDetails, SlipwayError, TooLarge
from slipway.model.json_documents import bounded, merge_patch
from slipway.model.package import OnboardingState, OperationalState, PackageWarning, UsageState, VnfPackage
from slipway.onboarding import records
from slipway.onboarding.download import DownloadLimits, DownloadSource, check_download_source, download
from slipway.onboarding.incoming import IncomingFiles
from slipway.outgoing.guard import Guard
from slipway.package.limits import DEFAULT_LIMITS, PackageLimits
from slipway.package.reader import (
    Package,
    manifest_of,
    open_member,
    read_package,
    size_of,
    vnfd_of,
    zipped_members,
    zipped_size,
)
from slipway.package.signature import UnsignedPolicy
from slipway.store import packages
from slipway.store.database import Database, hold_project
from slipway.store.project_limits import ProjectLimits
from slipway.store.secrets import Vault

WRITTEN_AT_ONCE = 1024 * 1024
CHECKED_AT_ONCE = 64 * 1024 * 1024  # bytes after which it is looked whether there is room for more
DOWNLOADS_AT_ONCE = 8
CONTENT = ".csar"
UPLOADED = "package_content"  # what the caller knows the file by: the resource it was sent to

log = logging.getLogger(__name__)
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)


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
        vault: Vault,
        *,
        secret_names: tuple[str, ...] = (),
        project_limits: ProjectLimits = ProjectLimits(),  # noqa: B008 - frozen
        policy: UnsignedPolicy = UnsignedPolicy.ACCEPT,
        trust: Sequence[x509.Certificate] = (),
        limits: PackageLimits = DEFAULT_LIMITS,
        check: Callable[[Package], None] = lambda package: None,
        guard: Guard | None = None,
        download_limits: DownloadLimits | None = None,
    ) -> None:
        package_dir.mkdir(parents=True, exist_ok=True)
        self._database = database
        self._vault = vault
        self._secret_names = secret_names
        self._project_limits = project_limits
        self._dir = package_dir
        self._incoming = IncomingFiles(package_dir)
        self._policy = policy
        self._trust = tuple(trust)
        self._limits = limits
        self._check = check  # PackageError for what is no fault of the package itself, but can't be used here
        self._guard = guard or Guard()
        self._download_limits = download_limits or DownloadLimits()  # of what is fetched
        self._slots = asyncio.Semaphore(DOWNLOADS_AT_ONCE)
        self._fetching: set[asyncio.Task[None]] = set()

    async def create(self, user_defined_data: dict[str, Any], project: str = DEFAULT_PROJECT) -> VnfPackage:
        package = VnfPackage(
            id=str(uuid.uuid4()),
            onboarding_state=OnboardingState.CREATED,
            operational_state=OperationalState.DISABLED,
            usage_state=UsageState.NOT_IN_USE,
            user_defined_data=user_defined_data,
            created_at=utcnow(),
        )
        return await self._database.write(self._create, package, project)

    async def get(self, package_id: str) -> VnfPackage:
        return await self._database.read(packages.get, package_id)

    async def warnings(self, package_id: str) -> tuple[PackageWarning, ...]:
        """Contradictions in it that harm nothing, as found when it was onboarded."""
        return await self._database.read(packages.warnings_of, package_id)

    async def modify(
        self,
        package_id: str,
        operational_state: OperationalState | None = None,
        user_defined_data: dict[str, Any] | UnsetType | None = UNSET,
    ) -> dict[str, Any] | UnsetType | None:
        """What is not given stays; user data are merged, and None removes them. Those are returned, secrets hidden."""
        return await self._database.write(self._modify, package_id, operational_state, user_defined_data)

    async def delete(self, package_id: str) -> None:
        await self._database.write(self._delete, package_id)
        await asyncio.to_thread(self._content(package_id).unlink, missing_ok=True)

    async def upload(self, package_id: str, chunks: AsyncIterator[bytes]) -> VnfPackage:
        """Store the content, check it, and enable the package. What is wrong with the content stands in the record;
        what went wrong on the way here is raised, too.
        """
        file = await self._database.write(records.begin, package_id, self._incoming)
        return await self._onboard(package_id, file, chunks)

    async def fetch(self, package_id: str, source: DownloadSource) -> None:
        """Begin to get the content from elsewhere. Whatever goes wrong from now on stands in the record."""
        await check_download_source(self._guard, source)
        file = await self._database.write(records.begin, package_id, self._incoming)
        task = asyncio.create_task(self._fetch(package_id, file, source), name=f"fetch {package_id}")
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)

    async def close(self) -> None:
        """End what is being fetched: those packages are CREATED again, and say why."""
        ending = list(self._fetching)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def recover(self) -> None:
        """At the start of a process: give up what others left unfinished, and remove files that belong to nothing."""
        await self._database.write(records.recover, self._incoming, self._dir, CONTENT)

    async def content(self, package_id: str) -> Path:
        """The file as it was uploaded."""
        package = await self.get(package_id)
        if package.onboarding_state is not OnboardingState.ONBOARDED:
            raise Conflict(f"VNF package {package_id} is {package.onboarding_state}; it has no content yet.")
        return self._content(package_id)

    async def id_of(self, vnfd_id: str, project: str | None) -> str:
        """The onboarded package with this VNFD, for a caller of one project or of all."""
        found = await self._database.read(packages.ids_of_onboarded, vnfd_id, project)
        if not found:
            raise NotFound(f"There is no onboarded VNF package with the VNFD {vnfd_id}.")
        if len(found) > 1:
            several = ", ".join(found)
            raise Conflict(f"Several projects have a VNF package with the VNFD {vnfd_id}: {several}. Ask by these ids.")
        return found[0]

    async def vnfd(self, package_id: str) -> dict[str, bytes]:
        """The files of the VNFD by path, the entry file first."""
        return await asyncio.to_thread(vnfd_of, await self.content(package_id), self._limits)

    async def manifest(self, package_id: str) -> bytes:
        content = await asyncio.to_thread(manifest_of, await self.content(package_id), self._limits)
        if content is None:
            raise NotFound(f"VNF package {package_id} has no manifest.")
        return content

    async def artifacts(self, package_id: str, most: int) -> ArtifactContent:
        """All files that the record of the package names as artifacts, in a ZIP of at most about `most` bytes."""
        path = await self.content(package_id)
        inside = [one for one in (await self.get(package_id)).additional_artifacts if not one.is_outside]
        if (size := sum(one.size_bytes or 0 for one in inside)) > most:
            raise TooLarge(
                f"The artifacts of VNF package {package_id} have {size} bytes together; at most {most} are sent at"
                " once. Get them one by one (artifacts/{artifactPath}), or the whole package (package_content)."
            )
        sizes = {one.artifact_path: one.size_bytes or 0 for one in inside}
        return ArtifactContent(
            partial(zipped_members, path, sizes, self._limits), zipped_size(sizes), "application/zip"
        )

    async def artifact(self, package_id: str, name: str) -> ArtifactContent:
        """One file, if the record of the package names it."""
        path = await self.content(package_id)
        package = await self.get(package_id)
        for one in package.additional_artifacts:
            if one.is_outside and name in (one.artifact_path, one.artifact_path.replace("//", "/")):  # paths lose one
                raise NotFound(
                    f"The artifact {one.artifact_path} is outside of VNF package {package_id}; get it there."
                )
        types = {one.artifact_path: one.media_type for one in package.additional_artifacts}
        types |= {one.image_path: None for one in package.software_images if one.image_path}
        if name not in types:
            raise NotFound(f"VNF package {package_id} has no artifact {name!r}.")
        size = await asyncio.to_thread(size_of, path, name, self._limits)
        declared = types[name] or ""  # by the package: it may say anything
        media_type = declared if _MEDIA_TYPE.fullmatch(declared) else "application/octet-stream"
        return ArtifactContent(partial(open_member, path, name, self._limits), size, media_type)

    def _create(self, connection: Connection, package: VnfPackage, project: str) -> VnfPackage:
        self._project_limits.for_one_more_package(connection, project)
        hidden = self._hidden(connection, package.id, package.user_defined_data)
        created = replace(package, user_defined_data=bounded(merge_patch({}, hidden), "userDefinedData"))
        packages.insert(connection, created, project=project)
        return created

    def _modify(
        self,
        connection: Connection,
        package_id: str,
        operational_state: OperationalState | None,
        user_defined_data: dict[str, Any] | UnsetType | None,
    ) -> dict[str, Any] | UnsetType | None:
        if isinstance(user_defined_data, dict):
            user_defined_data = self._hidden(connection, package_id, user_defined_data)
        stored = records.modify(connection, package_id, operational_state, user_defined_data)
        self._vault.forget_unused(connection, package_id, stored.user_defined_data)
        return user_defined_data

    def _hidden(self, connection: Connection, package_id: str, user_defined_data: dict[str, Any]) -> dict[str, Any]:
        document = {"userDefinedData": user_defined_data}
        hidden: dict[str, dict[str, Any]] = self._vault.encrypt_secrets(
            connection, package_id, document, self._secret_names
        )
        return hidden["userDefinedData"]

    def _delete(self, connection: Connection, package_id: str) -> None:
        records.delete(connection, package_id, self._incoming)
        self._vault.forget(connection, package_id)

    async def _fetch(self, package_id: str, file: BinaryIO, source: DownloadSource) -> None:
        async with aclosing(self._downloaded(source)) as chunks:
            try:
                await self._onboard(package_id, file, chunks)
            except SlipwayError as error:
                log.warning("VNF package %s was not fetched: %s", package_id, error.detail)
            except Exception:  # an edge: this task is not awaited
                log.exception("VNF package %s was not fetched", package_id)

    async def _downloaded(self, source: DownloadSource) -> AsyncGenerator[bytes]:
        async with self._slots, aclosing(download(self._guard, source, self._download_limits)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _onboard(self, package_id: str, file: BinaryIO, chunks: AsyncIterator[bytes]) -> VnfPackage:
        """`file` is held until all is said in the record."""
        with file:
            try:
                await self._store(package_id, file, chunks)
                await self._database.write(records.process, package_id)
                package = await asyncio.to_thread(self._read, self._incoming.path(package_id))
                target = self._content(package_id)
                stored = await self._database.write(self._finish, package_id, package, target)
                if package.warnings:
                    count, first = len(package.warnings), package.warnings[0]
                    log.warning(
                        "VNF package %s is onboarded with warnings: %d, the first: %s", package_id, count, first
                    )
                return stored
            except (PackageError, Conflict) as refused:
                return await self._failed_upload(package_id, refused.problem)
            except BaseException as error:
                await self._failed_upload(package_id, _reason(error))
                raise

    async def _store(self, package_id: str, file: BinaryIO, chunks: AsyncIterator[bytes]) -> None:
        waiting: list[bytes] = []
        size = unchecked = 0
        await self._check_room(package_id)
        async for chunk in chunks:
            waiting.append(chunk)
            size += len(chunk)
            if size >= WRITTEN_AT_ONCE:
                await asyncio.to_thread(file.writelines, waiting)
                unchecked += size
                waiting, size = [], 0
            if unchecked >= CHECKED_AT_ONCE:
                await self._check_room(package_id)
                unchecked = 0
        await asyncio.to_thread(file.writelines, waiting)
        file.flush()
        await self._check_room(package_id)
        await asyncio.to_thread(os.fsync, file.fileno())

    async def _check_room(self, package_id: str) -> None:
        """What arrives for others of the project counts as well: many uploads at once must not fill the disk."""
        project, ids = await self._database.read(packages.of_same_project, package_id)
        paths = [path for one in ids for path in (self._content(one), self._incoming.path(one))]
        self._project_limits.for_package_bytes(project, await asyncio.to_thread(_size_of, paths))

    def _finish(self, connection: Connection, package_id: str, package: Package, target: Path) -> VnfPackage:
        """Check the project's limits for the last time, with the project locked, and store the package."""
        project, ids = packages.of_same_project(connection, package_id)
        hold_project(connection, project)
        paths = [self._incoming.path(package_id), *(self._content(one) for one in ids)]
        self._project_limits.for_package_bytes(project, _size_of(paths))
        return records.finish(connection, package_id, package, self._incoming, target)

    async def _failed_upload(self, package_id: str, failure: ProblemDetails) -> VnfPackage:
        return await self._database.write(records.fail_upload, package_id, failure, self._incoming)

    def _read(self, path: Path) -> Package:
        package = read_package(path, self._policy, self._trust, self._limits, label=UPLOADED)
        self._check(package)
        return package

    def _content(self, package_id: str) -> Path:
        return self._dir / f"{package_id}{CONTENT}"


def _reason(error: BaseException) -> ProblemDetails:
    if isinstance(error, SlipwayError):
        return error.problem
    if isinstance(error, asyncio.CancelledError):
        return records.STOPPED
    if isinstance(error, OSError) and error.strerror:
        detail = f"The package could not be stored: {error.strerror}. Make room for it, and upload it again."
        return ProblemDetails(500, detail, "Not stored")
    return ProblemDetails(500, "The upload ended early. Repeat it.", "Upload interrupted")


def _size_of(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total
