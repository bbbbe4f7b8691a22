"""Files of the package that an instance was made from: for steps when they run, for VIM drivers before they plan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection

from slipway.model.errors import RequestError, StepError, Unprocessable
from slipway.model.package_content import PackageContent, not_as_planned
from slipway.model.target import PackageFile
from slipway.package.reader import open_csar, open_member, size_of
from slipway.store import instances, packages
from slipway.store.database import Database

LARGEST = 64 << 20  # bytes of a package's file that a step may read as a whole
PIECE = 4 << 20
MOST_PLANNED = 500  # files that a plan may be made from
LARGEST_PLANNED = 16 << 20  # bytes of all of them


class PackageFiles:
    def __init__(self, database: Database, directory: Path) -> None:
        self._database = database
        self._directory = directory

    async def read(self, instance_id: str, path: str, vnfd_id: str | None = None) -> bytes:
        content = await self._database.read(self._content, instance_id, vnfd_id)
        try:
            return await asyncio.to_thread(_read, content, path)
        except (RequestError, KeyError):
            raise StepError(f"The package has no file {path}.", cure="name one that it has.") from None

    async def read_exactly(self, instance_id: str, vnfd_id: str, path: str, digest: str) -> bytes:
        """StepError when it is not the file that the plan was made with."""
        content = await self.read(instance_id, path, vnfd_id)
        if sha256(content).hexdigest() != digest:
            raise not_as_planned(path)
        return content

    async def content(self, instance_id: str, vnfd_id: str, path: str, digest: str) -> PackageContent:
        """To read in pieces: it may be larger than memory."""
        content = await self._database.read(self._content, instance_id, vnfd_id)
        try:
            size = await asyncio.to_thread(size_of, content, path)
        except (RequestError, KeyError):
            raise StepError(f"The package has no file {path}.", cure="name one that it has.") from None
        return PackageContent(path, size, digest, lambda: open_member(content, path))

    async def pieces(self, instance_id: str, path: str, vnfd_id: str | None = None) -> AsyncIterator[bytes]:
        content = await self._database.read(self._content, instance_id, vnfd_id)
        try:
            stream = await asyncio.to_thread(open_member, content, path)
        except (RequestError, KeyError):
            raise StepError(f"The package has no file {path}.", cure="name one that it has.") from None
        with stream:
            while piece := await asyncio.to_thread(stream.read, PIECE):
                yield piece

    async def load(self, project: str, vnfd_id: str, globs: Collection[str]) -> dict[str, PackageFile]:
        """Those that match, by path, with their digests. Unprocessable when they are too many or too large."""
        package_id, names = await self._database.read(_listed, project, vnfd_id)
        if missing := [glob for glob in globs if not _is_pattern(glob) and glob not in names]:
            raise Unprocessable(
                f"The package of VNFD {vnfd_id} has no file {missing[0]}; correct its name, or the package."
            )
        wanted = sorted(name for name in names if name in globs or any(fnmatchcase(name, glob) for glob in globs))
        if len(wanted) > MOST_PLANNED:
            raise Unprocessable(
                f"The package of VNFD {vnfd_id} has {len(wanted)} files that match {', '.join(sorted(globs))}; "
                f"at most {MOST_PLANNED} can be planned with. Leave out what is not needed."
            )
        return await asyncio.to_thread(_loaded, self._directory / f"{package_id}.csar", wanted)

    def _content(self, connection: Connection, instance_id: str, vnfd_id: str | None) -> Path:
        instance = instances.get(connection, instance_id)
        package_id = packages.id_of(connection, vnfd_id or instance.vnf.vnfd_id, instance.project)
        return self._directory / f"{package_id}.csar"


def _read(content: Path, path: str) -> bytes:
    with open_member(content, path) as stream:
        text = stream.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise StepError(f"{path} in the package is larger than {LARGEST >> 20} MiB.")
    return text


def _is_pattern(glob: str) -> bool:
    return any(character in glob for character in "*?[")


def _listed(connection: Connection, project: str, vnfd_id: str) -> tuple[str, frozenset[str]]:
    return packages.id_of(connection, vnfd_id, project), packages.contents(connection, vnfd_id, project)[1]


def _loaded(content: Path, names: Sequence[str]) -> dict[str, PackageFile]:
    with open_csar(content) as archive:
        size = sum(archive.member(name).size for name in names)
        if size > LARGEST_PLANNED:
            raise Unprocessable(
                f"The package's files to plan with have {size} bytes in all, {names[0]} among them; at most "
                f"{LARGEST_PLANNED} can be planned with."
            )
        read = {name: archive.read(name, LARGEST_PLANNED) for name in names}
    return {name: PackageFile(content=text, digest=sha256(text).hexdigest()) for name, text in read.items()}
