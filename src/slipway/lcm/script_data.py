"""What scripts of packages are given of Slipway's records: the instance in the middle of an operation, and files."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from slipway.cluster.cluster_api.credentials import WorkloadClusters, recorded_cluster
from slipway.lcm.grant_request import grant_request
from slipway.lcm.operations import change_in
from slipway.lcm.situations import instance_during, stored_situation
from slipway.mgmt.scripts import ScriptSecret
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.grant import Granting, GrantRequest
from slipway.model.instance import VnfInstance
from slipway.model.journal import error_data
from slipway.model.target import VimResource
from slipway.package.reader import open_csar
from slipway.store import operations, packages, steps
from slipway.store.database import Database

LARGEST = 1 << 30  # bytes of all files of a package that are brought to a script


class RecordedScriptData:
    def __init__(self, database: Database, packages_path: Path) -> None:
        self._database = database
        self._packages = packages_path

    async def instance(self, operation_id: str, *, ahead: bool) -> VnfInstance:
        return await self._database.read(lambda connection: instance_during(connection, operation_id, ahead=ahead))

    async def request(self, operation_id: str) -> dict[str, Any]:
        return (await self._database.read(operations.get, operation_id)).operation_params

    async def grant_request(self, operation_id: str, left: Sequence[VimResource]) -> GrantRequest:
        return await self._database.read(_grant_request, operation_id, tuple(left))

    async def granting(self, operation_id: str) -> Granting | None:
        return await self._database.read(operations.grant_of, operation_id)

    async def error_data(self, operation_id: str) -> dict[str, Any] | None:
        return await self._database.read(_error_data, operation_id)

    async def unpack(self, operation_id: str, vnfd_id: str, directory: Path) -> None:
        package_id, images = await self._database.read(_content, operation_id, vnfd_id)
        await asyncio.to_thread(_unpack, self._packages / f"{package_id}.csar", images, directory)


class WorkloadKubeconfigs:
    """For scripts of a VNF that is a workload cluster: how to get into it."""

    def __init__(self, clusters: WorkloadClusters) -> None:
        self._clusters = clusters

    async def __call__(self, vnf: VnfInstance, context: StepContext) -> ScriptSecret | None:
        if recorded_cluster(vnf) is None:
            return None
        cluster = await self._clusters.get(vnf, context)
        given = {"name": cluster.name, "namespace": cluster.namespace, "kubeconfig": cluster.kubeconfig}
        clear = cluster.credentials.secrets
        return ScriptSecret(given, [*clear, *(base64.b64encode(one.encode()).decode() for one in clear)])


def _grant_request(connection: Connection, operation_id: str, left: tuple[VimResource, ...]) -> GrantRequest:
    operation = operations.get(connection, operation_id)
    situation = stored_situation(connection, operation)
    if situation.granting:
        return situation.granting.request
    return grant_request(situation, change_in(situation), left, operation, base_url="")


def _error_data(connection: Connection, operation_id: str) -> dict[str, Any] | None:
    """Of this try, or of the one before."""
    error = operations.get(connection, operation_id).error
    now = error_data(steps.journal(connection, operation_id))
    return now or (error.user_script_err_handling_data if error else None)


def _content(connection: Connection, operation_id: str, vnfd_id: str) -> tuple[str, frozenset[str]]:
    project = operations.project_of(connection, operation_id)
    package = packages.get(connection, packages.id_of(connection, vnfd_id, project))
    return package.id, frozenset(image.image_path for image in package.software_images if image.image_path)


def _unpack(content: Path, images: frozenset[str], directory: Path) -> None:
    """Names were checked when the package came: none leads out of the directory."""
    with open_csar(content) as archive:
        members = [member for member in archive if member.name not in images]
        if sum(member.size for member in members) > LARGEST:
            raise StepError(
                f"The files of the package are larger than the {LARGEST >> 20} MiB that are brought to a script.",
                cure="take what the script does not need out of the package.",
            )
        for member in members:
            path = directory / member.name
            _make_directories(path.parent, directory)
            with path.open("xb") as file:
                file.writelines(archive.chunks(member.name))
            path.chmod(0o755 if member.executable else 0o644)


def _make_directories(path: Path, top: Path) -> None:
    """Readable for everybody, whatever our own umask is."""
    if path != top:
        _make_directories(path.parent, top)
        path.mkdir(exist_ok=True)
    path.chmod(0o755)
