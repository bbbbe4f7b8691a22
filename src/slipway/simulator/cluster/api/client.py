"""The API of a simulated cluster, asked through one of its masters. Errors read as those of a real one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import TypeVar

from slipway.cluster.naming import API_PORT, host_and_port
from slipway.kube import errors
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, Objects, PatchKind
from slipway.model.action import VimConnection
from slipway.simulator.cluster.api.errors import ApiError
from slipway.simulator.cluster.api.requests import path_of
from slipway.simulator.cluster.api.server import ApiServer
from slipway.simulator.cluster.cluster import find_cluster, has_quorum
from slipway.simulator.cluster.host import find_host, is_running
from slipway.simulator.cluster.simulation import Simulation
from slipway.simulator.vim.calls import Rules
from slipway.vim.fault_rules import FaultTarget, Rule, RuleKind

T = TypeVar("T")
PAGE = "500"


class SimulatedApi:
    def __init__(
        self, simulation: Simulation, connection: VimConnection, machine_id: str, target: FaultTarget, address: str
    ) -> None:
        self._simulation = simulation
        self._connection = connection
        self._machine = machine_id
        self._target = target
        self._server = f"https://{host_and_port(address, API_PORT)}"

    async def get(self, path: str, *, metadata_only: bool = False, **query: str) -> Object:
        found = await self._ask("GET", path, lambda server: server.get(path, query))
        return _metadata_of(found) if metadata_only else found

    async def list(self, path: str, *, metadata_only: bool = False, **query: str) -> Objects:
        items: Objects = []
        query = {"limit": PAGE, **query}
        while True:
            found = await self.get(path, metadata_only=metadata_only, **query)
            items += found.get("items") or []
            if not (following := found.get("metadata", {}).get("continue")):
                return items
            query["continue"] = following

    async def text(self, path: str) -> str:
        return await self._ask("GET", path, lambda server: server.text(path))

    async def create(self, path: str, body: Object) -> Object:
        return await self._ask("POST", path, lambda server: server.create(path, body), errors.secrets_of(body))

    async def apply(self, manifest: Object) -> Object:
        api_version, kind = manifest["apiVersion"], manifest["kind"]

        def work(server: ApiServer) -> Object:
            found = server.kind_of(api_version, kind)
            if found is None:
                raise errors.unknown_kind(api_version, kind, self._server)
            return server.apply(found, manifest)

        return await self._ask("PATCH", path_of(manifest), work, errors.secrets_of(manifest))

    async def patch(self, path: str, body: Object | Objects, kind: PatchKind = "merge") -> Object:
        return await self._ask("PATCH", path, lambda server: server.patch(path, body, kind))

    async def delete(
        self, path: str, uid: str | None = None, grace: int | None = None, *, version: str | None = None
    ) -> None:
        try:
            await self._ask("DELETE", path, lambda server: server.delete(path, uid, grace, version))
        except KubeError as error:
            another = uid is not None and version is None and error.status == 409
            if error.status != 404 and not another:
                raise

    async def _ask(self, verb: str, path: str, work: Callable[[ApiServer], T], secrets: Iterable[str] = ()) -> T:
        asked = f"{verb} {path} on {self._server}"

        def inside(db: sqlite3.Connection, _: Rules) -> T:
            try:
                return work(self._open(db, asked))
            except ApiError as no:
                raise errors.refused(asked, no.code, no.body, secrets) from None

        def explain(rule: Rule, _: str) -> KubeError:
            return _fault(rule, asked)

        return await self._simulation.call(self._connection, "api", inside, self._target, f"{verb} {path}", explain)

    def _open(self, db: sqlite3.Connection, asked: str) -> ApiServer:
        if not is_running(db, self._machine):
            raise errors.unreachable(asked, OSError("No route to host"))
        host = find_host(db, self._machine)
        cluster = find_cluster(db, host.cluster)
        if not host.is_master or cluster is None:
            raise errors.unreachable(asked, OSError("Connection refused"))
        if not has_quorum(db, cluster) or cluster.member_on(self._machine) is None:
            raise ApiError(500, "InternalError", "etcdserver: request timed out")
        return ApiServer(db, cluster)


def _metadata_of(found: Object) -> Object:
    """As a PartialObjectMetadata, or a list of these."""
    items = {"items": [_metadata_of(item) for item in found["items"]]} if "items" in found else {}
    return {key: found[key] for key in ("apiVersion", "kind", "metadata") if key in found} | items


def _fault(rule: Rule, asked: str) -> KubeError:
    if rule.kind is RuleKind.TIMEOUT_AFTER_WORK or rule.status is None:
        return errors.unreachable(asked, OSError(rule.message or "Connection reset by peer"))
    reasons = {429: "TooManyRequests", 403: "Forbidden", 401: "Unauthorized", 409: "Conflict", 500: "InternalError"}
    said = ApiError(rule.status, reasons.get(rule.status, ""), rule.message or "so a rule says")
    return errors.refused(asked, said.code, said.body)
