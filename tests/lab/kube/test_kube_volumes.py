"""Persistent volumes of a storage server on a real API server: registered, in use, released, deleted, and others'."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.persistent_volumes import VolumeManifest
from slipway.cluster.spec import ClusterSpec, Node, SshLogin
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.persistent_volumes import (
    VOLUMES,
    check_volumes,
    delete_volumes,
    register_volumes,
    undo_register_volumes,
)
from slipway.cluster.steps.storage_arguments import CheckVolumes, DeleteVolumes, RegisterVolumes
from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.interface import Object
from slipway.kube.ownership import INSTANCE
from slipway.model.errors import StepError
from slipway.model.machine import Address, FoundMachine, FoundPort
from slipway.waiting import Observation, wait_for
from tests.contract.cluster_world import WorldContext

pytestmark = pytest.mark.journey

POINT = "storage_CP"
NETWORKS = ClusterNetworks(pods="192.168.0.0/16", services="10.96.0.0/12", nodes="10.14.0.0/24", node_prefix=24)
CLUSTER = ClusterSpec(instance="", masters=(), networks=NETWORKS)
SERVER = Node(machine="m", slot="storage-0", name="storage-0", master=False, ssh=POINT, nic=POINT,
              login=SshLogin(username="root"))  # fmt: skip


class DirectConnector:
    """The API is not behind SSH here."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @asynccontextmanager
    async def api(self, *_: Any) -> AsyncIterator[Api]:
        yield self._api


class Registered:
    """Two volumes of one VNF, of names that nobody else has."""

    def __init__(self, api: Api) -> None:
        self.api, mark = api, uuid4().hex[:8]
        self.names = (f"pv1-{mark}", f"pv2-{mark}")
        self.instance = f"instance-{mark}"
        self.deps = Dependencies(DirectConnector(api), None, None)  # type: ignore[arg-type]

    def ctx(self, address: str = "10.14.0.9") -> WorldContext:
        port = FoundPort(id="p", name=POINT, resource_id="p", addresses=(Address(ip=address),))
        machine = FoundMachine(id="m", name="storage-0", vdu="storage", resource_id="m", ready=True, ports=(port,))
        return WorldContext(None, {"m": machine}, instance_id=self.instance)  # type: ignore[arg-type]

    def volumes(self) -> tuple[VolumeManifest, ...]:
        return tuple(VolumeManifest(manifest=volume(name), point=POINT) for name in self.names)

    async def register(self, address: str = "10.14.0.9") -> None:
        args = RegisterVolumes(cluster=CLUSTER, server=SERVER, volumes=self.volumes(), cluster_stays=True)
        await register_volumes(self.deps, args, self.ctx(address))

    async def unregister(self) -> None:
        args = RegisterVolumes(cluster=CLUSTER, server=SERVER, volumes=(), cluster_stays=True)
        await undo_register_volumes(self.deps, args, self.ctx())

    async def check(self) -> None:
        await check_volumes(self.deps, CheckVolumes(cluster=CLUSTER), self.ctx())

    async def delete(self) -> None:
        args = DeleteVolumes(cluster=CLUSTER, server=SERVER, mounts=(), exports=(), volumes=())
        await delete_volumes(self.deps, args, self.ctx())

    async def seen(self) -> dict[str, tuple[str, str]]:
        """Phase and server, by name."""
        found = await self.api.list(VOLUMES, labelSelector=f"{INSTANCE}={self.instance}")
        return {one["metadata"]["name"]: (one["status"]["phase"], one["spec"]["nfs"]["server"]) for one in found}


def volume(name: str) -> Object:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "",
            "nfs": {"server": "0.0.0.0", "path": "/volume/pv"}}  # noqa: S104 # fmt: skip
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def registered(api: Api) -> AsyncIterator[Registered]:
    made = Registered(api)
    await made.register()
    yield made
    for name in made.names:
        await api.delete(f"{VOLUMES}/{name}")


async def claim(api: Api, namespace: str, name: str) -> str:
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": name,
            "resources": {"requests": {"storage": "100Mi"}}}  # fmt: skip
    path = paths.namespaced("/api/v1", namespace, "persistentvolumeclaims")
    await api.create(path, {"metadata": {"name": "data", "namespace": namespace}, "spec": spec})
    await until(api, name, "Bound")
    return f"{path}/data"


async def until(api: Api, name: str, phase: str) -> None:
    async def look() -> Observation:
        found = (await api.get(f"{VOLUMES}/{name}"))["status"].get("phase")
        return Observation(found == phase, str(found))

    await wait_for(look, f"{name} to be {phase}", 60)


async def test_they_are_available_with_their_servers_address_and_twice_is_once(registered: Registered) -> None:
    expected = dict.fromkeys(registered.names, ("Available", "10.14.0.9"))
    assert await registered.seen() == expected
    uids = [(await registered.api.get(f"{VOLUMES}/{name}"))["metadata"]["uid"] for name in registered.names]
    await registered.register()
    assert await registered.seen() == expected
    assert uids == [(await registered.api.get(f"{VOLUMES}/{name}"))["metadata"]["uid"] for name in registered.names]


async def test_another_address_makes_them_anew(registered: Registered) -> None:
    await registered.register("10.14.0.10")
    assert await registered.seen() == dict.fromkeys(registered.names, ("Available", "10.14.0.10"))


async def test_one_in_use_is_named_with_its_claim_and_nothing_is_deleted(
    registered: Registered, api: Api, namespace: str
) -> None:
    first, second = registered.names
    await claim(api, namespace, first)
    for ask in (registered.check, registered.delete, registered.unregister):
        with pytest.raises(StepError) as caught:
            await ask()
        assert f"in use: {first} by the claim {namespace}/data." in caught.value.detail
        assert second not in caught.value.detail
    assert (await registered.seen()).keys() == set(registered.names)


async def test_a_released_one_is_free_and_available_again_when_it_is_back(
    registered: Registered, api: Api, namespace: str
) -> None:
    first, _ = registered.names
    await api.delete(await claim(api, namespace, first))
    await until(api, first, "Released")
    await registered.check()
    await registered.delete()
    assert await registered.seen() == {}
    await registered.register()
    assert {phase for phase, _ in (await registered.seen()).values()} == {"Available"}


async def test_one_of_somebody_else_is_neither_taken_nor_removed(registered: Registered, api: Api) -> None:
    first, _ = registered.names
    await registered.delete()
    theirs = await api.create(VOLUMES, volume(first))
    with pytest.raises(StepError, match="that was not registered for this VNF"):
        await registered.register()
    await registered.delete()
    assert (await api.get(f"{VOLUMES}/{first}"))["metadata"]["uid"] == theirs["metadata"]["uid"]
