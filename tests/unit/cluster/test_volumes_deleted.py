"""Persistent volumes that change while they are being deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slipway.cluster.persistent_volumes import VolumeManifest
from slipway.cluster.spec import Node, SshLogin
from slipway.cluster.steps.persistent_volumes import delete_volumes, register_volumes
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.kube.ownership import marked
from slipway.model.action import VimConnection
from slipway.model.errors import StepError
from slipway.model.machine import Address, FoundMachine, FoundPort
from tests.contract.plans import Context

CLAIM = {"metadata": {"name": "data", "namespace": "cnf", "uid": "claim"}}
REFERENCE = {"namespace": "cnf", "name": "data", "uid": "claim"}


class Api:
    """One volume of the VNF's. `meanwhile` is done between the look at it and the first deletion."""

    def __init__(self, meanwhile: Callable[[Object], None]) -> None:
        metadata = {"name": "pv1", "uid": "volume", "resourceVersion": "1"}
        self.volume: Object | None = {"metadata": metadata, "spec": {}, "status": {"phase": "Available"}}
        self.meanwhile: Callable[[Object], None] | None = meanwhile

    async def list(self, path: str, **query: str) -> list[Object]:
        return [self._copy()] if self.volume else []

    async def get(self, path: str) -> Object:
        if path.endswith("/persistentvolumeclaims/data"):
            return CLAIM
        if self.volume is None:
            raise KubeError("no such volume", status=404)
        return self._copy()

    async def delete(self, path: str, uid: str | None = None, *, version: str | None = None) -> None:
        assert self.volume is not None
        if self.meanwhile:
            self.meanwhile(self.volume)
            self.volume["metadata"]["resourceVersion"], self.meanwhile = "2", None
        if version not in (None, self.volume["metadata"]["resourceVersion"]):
            raise KubeError("it has changed", status=409)
        if self.volume["status"]["phase"] == "Bound":
            self.volume["metadata"]["deletionTimestamp"] = "now"
        else:
            self.volume = None

    def _copy(self) -> Object:
        assert self.volume is not None
        return {name: dict(part) for name, part in self.volume.items()}

    async def create(self, path: str, wanted: Object) -> None:
        assert self.volume is None
        self.volume = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": "1"},
                       "status": {"phase": "Available"}}  # fmt: skip


class ServerContext(Context):
    """With a storage server."""

    async def machine(self, machine_id: str) -> FoundMachine:
        port = FoundPort(id="p", name="CP", resource_id="p", addresses=(Address(ip="10.0.0.9"),))
        return FoundMachine(id="m", name="s-0", vdu="s", resource_id="m", ready=True, ports=(port,))


CONTEXT = ServerContext(VimConnection("simulated", {}, {}, {}), "i")


def reached(api: Api) -> Any:
    @asynccontextmanager
    async def through(*_: Any) -> AsyncIterator[Api]:
        yield api

    return SimpleNamespace(connector=SimpleNamespace(api=through))


async def delete(api: Api) -> None:
    await delete_volumes(reached(api), cast("Any", SimpleNamespace(cluster=None)), CONTEXT)


def bind(volume: Object) -> None:
    volume["spec"]["claimRef"] = REFERENCE
    volume["status"]["phase"] = "Bound"


async def test_a_volume_that_a_claim_comes_to_at_the_last_moment_is_not_deleted() -> None:
    """Bound and deleted it could not be taken back: it would go with its claim, after a rollback, too."""
    api = Api(bind)
    with pytest.raises(StepError, match="in use: pv1 by the claim cnf/data"):
        await delete(api)
    assert api.volume is not None
    assert "deletionTimestamp" not in api.volume["metadata"]


async def test_a_volume_that_is_about_to_be_bound_is_in_use() -> None:
    """Kubernetes writes the claim into it first, and its phase then."""
    api = Api(lambda volume: volume["spec"].update(claimRef=REFERENCE))
    with pytest.raises(StepError, match="in use: pv1 by the claim cnf/data"):
        await delete(api)
    assert api.volume is not None


@pytest.mark.parametrize("reserved", [{"namespace": "cnf", "name": "data"}, {**REFERENCE, "uid": "claim-of-before"}])
async def test_a_volume_that_is_only_reserved_for_a_claim_is_free(reserved: dict[str, str]) -> None:
    api = Api(lambda volume: volume["spec"].update(claimRef=reserved))
    await delete(api)
    assert api.volume is None


async def test_a_volume_that_somebody_labels_meanwhile_is_deleted_all_the_same() -> None:
    api = Api(lambda volume: volume["metadata"].update(labels={"seen": "by-somebody"}))
    await delete(api)
    assert api.volume is None


async def test_one_that_is_going_is_made_anew_when_it_is_gone() -> None:
    """Somebody's finalizer held it while it was deleted: taken for what was to be made, it would be gone later."""
    manifest = {"metadata": {"name": "pv1"}, "spec": {"nfs": {"path": "/volume"}}}
    wanted = VolumeManifest(manifest=manifest, point="CP")
    api = Api(lambda volume: None)
    made = marked(wanted.served_by("10.0.0.9"), "i", "operation-0")
    metadata = {**made["metadata"], "uid": "volume", "resourceVersion": "1"}
    api.volume = {**made, "metadata": metadata, "status": {"phase": "Available"}}
    api.volume["metadata"]["deletionTimestamp"] = "now"
    server = Node(machine="m", slot="storageServer-0", name="s", master=False, ssh="CP", nic="CP",
                  login=SshLogin(username="root"))  # fmt: skip
    args = cast("Any", SimpleNamespace(cluster=None, server=server, volumes=(wanted,)))
    await register_volumes(reached(api), args, CONTEXT)
    assert "deletionTimestamp" not in api.volume["metadata"]
