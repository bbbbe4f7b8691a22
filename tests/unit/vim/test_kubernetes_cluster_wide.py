"""A VDU that is a custom resource without a namespace: what belongs to it may be in any."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectRef, Objects
from slipway.kube.ownership import INSTANCE, Owner
from slipway.vim.kubernetes.actions import remove_objects, roots_of
from slipway.vim.kubernetes.arguments import Placed
from slipway.vim.kubernetes.object_plan import VDU
from slipway.vim.kubernetes.session import Session
from slipway.vim.kubernetes.vnfcs import list_placed_vnfcs, wait_for_vnfcs
from slipway.vim.kubernetes.waits import let_new_pods_leave_first

OURS = "11111111-2222-4333-8444-555555555555"
FLEET = Placed(id="Fleet.example.com/web", api_version="example.com/v1", kind="Fleet", name="web", vdu="web")
PLURALS = {"Fleet": "fleets", "Machine": "machines", "MachineSet": "machinesets"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Cluster:
    """One fleet, and a pod of it in a namespace of its own."""

    def __init__(self) -> None:
        self.discovery = self
        self.changed = list[tuple[str, str]]()
        fleet = {"name": "web", "uid": "f", "labels": {INSTANCE: OURS}, "annotations": {VDU: "web"}}
        pod = {"name": "web-1", "uid": "p", "namespace": "ships", "ownerReferences": [{"uid": "f"}]}
        self.objects: dict[str, Objects] = {
            "/apis/example.com/v1/fleets": [{"metadata": fleet}],
            "/api/v1/pods": [{"metadata": pod, "status": READY}],
        }

    async def resource(self, api_version: str, kind: str) -> Resource:
        plural = PLURALS.get(kind, f"{kind.lower()}s")
        return Resource(api_version, kind, plural, namespaced=kind != "Fleet")

    async def list(self, path: str, **query: Any) -> Objects:
        return self.objects.get(path, [])

    async def get(self, path: str, **query: Any) -> Object:
        return {"metadata": {"resourceVersion": "1"}, "items": [] if self.changed else self.objects.get(path, [])}

    async def watch(self, path: str, **query: Any) -> AsyncGenerator[Object, None]:
        return
        yield {}

    async def patch(self, path: str, body: Object) -> Object:
        self.changed.append(("PATCH", path))
        return body

    async def delete(self, path: str, **options: Any) -> None:
        self.changed.append(("DELETE", path))


def session_on(cluster: Cluster) -> Session:
    class Context:
        def progress(self, said: str) -> None:
            pass

    return Session(cast(Any, cluster), Owner(OURS, "operation"), "default", cast(Any, Context()))


async def test_it_is_removed_with_its_pods_wherever_they_are() -> None:
    cluster = Cluster()
    await remove_objects(session_on(cluster), [FLEET], 0)
    assert cluster.changed == [
        ("DELETE", "/apis/example.com/v1/fleets/web"),
        ("DELETE", "/api/v1/namespaces/ships/pods/web-1"),
    ]


async def test_an_object_without_a_uid_is_told_as_such() -> None:
    cluster = Cluster()
    del cluster.objects["/apis/example.com/v1/fleets"][0]["metadata"]["uid"]
    with pytest.raises(KubeError, match=r"Fleet web has no metadata\.uid"):
        await remove_objects(session_on(cluster), [FLEET], 0)
    assert cluster.changed == []


async def test_it_is_removed_where_its_pods_are_left_to_end_by_themselves() -> None:
    cluster = Cluster()
    await remove_objects(session_on(cluster), [FLEET], None)
    assert cluster.changed == [("DELETE", "/apis/example.com/v1/fleets/web")]


async def test_its_pods_are_found_and_waited_for_in_all_namespaces() -> None:
    session = session_on(Cluster())
    roots = await roots_of(session, [FLEET], None)
    ((vnfc, ref),) = await list_placed_vnfcs(session.api, roots)
    assert (vnfc.id, vnfc.vdu, ref) == ("p", "web", ObjectRef("v1", "Pod", "web-1", "ships"))
    assert [one.id for one in await wait_for_vnfcs(session.api, roots, 10)] == ["p"]


@pytest.mark.parametrize("status", [[1], "Running", {"conditions": [5]}, {"conditions": {"a": 1}}])
async def test_a_pod_that_says_nonsense_of_itself_is_not_ready(status: Any) -> None:
    cluster = Cluster()
    session = session_on(cluster)
    (pod,) = cluster.objects["/api/v1/pods"]
    pod |= {"status": status, "spec": [1]}
    ((vnfc, _),) = await list_placed_vnfcs(session.api, await roots_of(session, [FLEET], None))
    assert (vnfc.ready, vnfc.host) == (False, None)


async def test_pods_that_a_scale_out_brought_leave_first_wherever_they_are() -> None:
    cluster = Cluster()
    session = session_on(cluster)
    await let_new_pods_leave_first(session, await roots_of(session, [FLEET], None), ())
    assert cluster.changed == [("PATCH", "/api/v1/namespaces/ships/pods/web-1")]


async def test_a_machine_is_of_the_version_that_the_package_speaks() -> None:
    cluster = Cluster()
    path = "/apis/cluster.x-k8s.io/v1beta1/namespaces/edge/machines"
    machine = {"name": "one", "uid": "m", "namespace": "edge", "ownerReferences": [{"uid": "plane"}]}
    cluster.objects[path] = [{"metadata": machine}]
    root = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "plane", "uid": "plane", "namespace": "edge"},
    }
    ((_, ref),) = await list_placed_vnfcs(cast(Any, cluster), [root])
    assert ref == ObjectRef("cluster.x-k8s.io/v1beta1", "Machine", "one", "edge")
