"""What the steps of a cluster may touch of Slipway's own records: the VIMs, and the files of the instance's package."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from slipway.cluster.steps.world import ClusterVim
from slipway.kube.account import Token
from slipway.lcm.vim_names import reserved_by
from slipway.lcm.vim_registry import VimRegistry, VimRequest
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.errors import RequestError, StepError, Unprocessable
from slipway.model.situation import Situation
from slipway.model.vim import KUBERNETES
from slipway.package.reader import open_member
from slipway.store import instances, packages, vims
from slipway.store.database import Database

LARGEST = 64 << 20  # bytes of a package's file that a step may read as a whole
PIECE = 4 << 20


class Clusters:
    """Clusters in the registry of VIMs."""

    def __init__(self, vims: VimRegistry) -> None:
        self._vims = vims

    async def enter(self, instance_id: str, vim: ClusterVim) -> str:
        told = told_of(vim.token)
        request = VimRequest(
            name=vim.name,
            vim_type=KUBERNETES,
            description=f"The cluster of VNF instance {instance_id}",
            interface_info={"endpoint": vim.endpoint, "ssl_ca_cert": vim.ca},
            access_info=told["accessInfo"],
            extra=told["extra"],
        )
        try:
            return (await self._vims.enter(vim_id_of(instance_id), request, instance_id)).id
        except RequestError as error:
            raise StepError(error.detail, cure="give another vim_name, or remove the VIM that has it.") from None

    async def strike(self, instance_id: str) -> None:
        try:
            await self._vims.strike(vim_id_of(instance_id), instance_id)
        except RequestError as error:
            raise StepError(error.detail) from None


def refuse_taken_names(connection: Connection, management: ManagementDrivers, situation: Situation) -> None:
    """Unprocessable when a cluster could not be registered in the end under the name that it is to have."""
    instance = situation.instance
    for field, name in management.vim_names(situation):
        taken = vims.id_by_name(connection, name, instance.project)
        if taken not in (None, vim_id_of(instance.vnf.id)):
            raise Unprocessable(
                f"{field}: VIM {taken} of this project has the name {name!r} already; give another vim_name, or remove "
                "that VIM."
            )
        if user := reserved_by(connection, name, instance.project, but=instance.vnf.id):
            raise Unprocessable(
                f"{field}: VNF instance {user}, which is being instantiated, will be registered as {name!r}; give "
                "another vim_name."
            )


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

    async def pieces(self, instance_id: str, path: str, vnfd_id: str | None = None) -> AsyncIterator[bytes]:
        content = await self._database.read(self._content, instance_id, vnfd_id)
        try:
            stream = await asyncio.to_thread(open_member, content, path)
        except (RequestError, KeyError):
            raise StepError(f"The package has no file {path}.", cure="name one that it has.") from None
        with stream:
            while piece := await asyncio.to_thread(stream.read, PIECE):
                yield piece

    def _content(self, connection: Connection, instance_id: str, vnfd_id: str | None) -> Path:
        instance = instances.get(connection, instance_id)
        package_id = packages.id_of(connection, vnfd_id or instance.vnf.vnfd_id, instance.project)
        return self._directory / f"{package_id}.csar"


def told_of(token: Token) -> dict[str, dict[str, Any]]:
    """A token, and when it ends, as attributes of a VIM."""
    return {"accessInfo": {"bearer_token": token.value}, "extra": {"tokenExpires": token.expires.isoformat()}}


def vim_id_of(instance_id: str) -> str:
    return str(uuid.uuid5(uuid.UUID(instance_id), "vim"))


def _read(content: Path, path: str) -> bytes:
    with open_member(content, path) as stream:
        text = stream.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise StepError(f"{path} in the package is larger than {LARGEST >> 20} MiB.")
    return text
