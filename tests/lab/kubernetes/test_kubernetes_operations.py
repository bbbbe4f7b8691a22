"""Operations beyond the contract on a real API server: modify, immutable objects, /scale of any kind; calls counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.model.action import VimConnection
from slipway.model.errors import VimError
from slipway.model.operation import OperationType
from slipway.waiting import Backoff
from tests.contract.life import FIRST, NEXT, TERMINATE, UPDATE, out
from tests.contract.plans import run_plan, undo_steps
from tests.lab.kube.fake_kubelet import FakeNode
from tests.lab.kubernetes.counted_calls import MODIFY, calls_of_operations
from tests.lab.kubernetes.small_cnf import Cnf
from tests.unit.vim.kubernetes_targets import config, together, workload

pytestmark = pytest.mark.group(name="kubernetes")
USES = "envFrom: [{configMapRef: {name: settings}}]"
POOLS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pools.operations.slipway.example}
spec:
  group: operations.slipway.example
  scope: Namespaced
  names: {kind: Pool, plural: pools}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
        x-kubernetes-preserve-unknown-fields: true
    subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
"""
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pools.operations.slipway.example"
RULES = """
apiVersion: slipway.io/v1
kind: ReadinessRules
rules:
- {apiVersion: operations.slipway.example/v1, kind: Pool, ready: [{field: {path: spec.size, equals: 1}}]}
"""
POOL = "apiVersion: operations.slipway.example/v1\nkind: Pool\nmetadata: {name: web}\n"


class Place:
    """What the namespace of a CNF has."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace

    async def config(self, name: str = "settings") -> Any:
        return (await self.api.get(paths.namespaced("/api/v1", self.namespace, "configmaps", name)))["data"]

    async def configs(self) -> list[str]:
        found = await self.api.list(paths.namespaced("/api/v1", self.namespace, "configmaps"))
        return [name for one in found if (name := one["metadata"]["name"]) != "kube-root-ca.crt"]

    async def container(self) -> Object:
        found = await self.api.get(paths.namespaced("/apis/apps/v1", self.namespace, "deployments", "web"))
        container: Object = found["spec"]["template"]["spec"]["containers"][0]
        return container


@pytest.fixture
def place(api: Api, namespace: str) -> Place:
    return Place(api, namespace)


async def test_a_modification_changes_configuration_and_restarts_what_uses_it(
    connection: VimConnection, place: Place, node: FakeNode
) -> None:
    agent = workload("DaemonSet", "agent")
    texts = [together(config(value=value), workload(more=USES), agent) for value in "12"]
    cnf = Cnf(connection, *texts)
    await cnf.instantiate()
    before = set(cnf.life.vnfcs("web"))
    await cnf.life.roll_back(OperationType.MODIFY_INFO, MODIFY)
    assert await place.config() == {"key": "1"}
    assert cnf.life.instance.vnf.vnfd_id == FIRST
    await cnf.life.agreed()
    await cnf.life.run(OperationType.MODIFY_INFO, MODIFY)
    assert await place.config() == {"key": "2"}
    assert not before & set(cnf.life.vnfcs("web"))
    assert cnf.life.instance.vnf.vnfd_id == NEXT
    await cnf.life.agreed()


async def test_a_modification_that_the_cluster_refuses_can_be_rolled_back(
    connection: VimConnection, place: Place, node: FakeNode
) -> None:
    bad = "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\ntype: kubernetes.io/tls\nstringData: {a: hidden}\n"
    good = bad.replace("kubernetes.io/tls", "Opaque")
    cnf = Cnf(
        connection, *(together(config(value=str(at)), workload(more=USES), one) for at, one in enumerate((good, bad)))
    )
    await cnf.instantiate()
    context, plan = cnf.life.context(), await cnf.life.plan(OperationType.MODIFY_INFO, MODIFY)
    with pytest.raises(VimError) as raised:
        await run_plan(cnf.life.driver, plan, context)
    assert "Secret b" in raised.value.detail
    assert "hidden" not in raised.value.detail
    await undo_steps(cnf.life.driver, list(plan.steps), context)
    assert await place.config() == {"key": "0"}
    assert await cnf.life.counts() == {"web": 2}


async def test_an_immutable_configmap_is_replaced_under_a_new_name_and_is_back_after_a_rollback(
    connection: VimConnection, place: Place, node: FakeNode
) -> None:
    texts = [together(config(value=value) + "immutable: true\n", workload(more=USES)) for value in "12"]
    cnf = Cnf(connection, *texts)
    await cnf.instantiate()
    await cnf.life.roll_back(OperationType.CHANGE_VNFPKG, UPDATE)
    assert await place.configs() == ["settings"]
    assert (await place.container())["envFrom"] == [{"configMapRef": {"name": "settings"}}]
    await cnf.life.agreed()
    await cnf.life.run(OperationType.CHANGE_VNFPKG, UPDATE)
    (name,) = await place.configs()
    assert name.startswith("settings-")
    assert await place.config(name) == {"key": "2"}
    assert (await place.container())["envFrom"] == [{"configMapRef": {"name": name}}]
    await cnf.life.agreed()
    assert (await cnf.life.plan(OperationType.CHANGE_VNFPKG, UPDATE)).steps == ()
    await cnf.life.run(OperationType.TERMINATE, TERMINATE)
    assert await place.configs() == []


async def test_a_custom_resource_is_scaled_where_its_definition_has_the_number(
    api: Api, connection: VimConnection, namespace: str, pools: str
) -> None:
    cnf = Cnf(connection, POOL)
    await cnf.instantiate()
    path = f"/apis/operations.slipway.example/v1/namespaces/{namespace}/pools/web"
    assert (await api.get(path))["spec"] == {"size": 2}
    await cnf.life.run(OperationType.SCALE, out())
    assert (await api.get(f"{path}/scale"))["spec"]["replicas"] == 3
    await cnf.life.roll_back(OperationType.SCALE, out())
    assert (await api.get(path))["spec"] == {"size": 3}


async def test_what_a_rollback_makes_again_is_ready_by_the_rules_of_its_package(
    api: Api, connection: VimConnection, pools: str, namespace: str, node: FakeNode
) -> None:
    """By its conditions it never would be."""
    held = POOL.replace("web", "held") + "spec: {size: 1}\nstatus: {conditions: [{type: Ready, status: 'False'}]}\n"
    cnf = Cnf(connection, together(held, RULES, workload()), workload())
    await cnf.instantiate()
    await cnf.life.roll_back(OperationType.CHANGE_VNFPKG, UPDATE)
    found = await api.get(f"/apis/operations.slipway.example/v1/namespaces/{namespace}/pools/held")
    assert found["status"]["conditions"][0]["status"] == "False"
    await cnf.life.agreed()


async def test_what_an_operation_asks_the_api_server_is_counted(connection: VimConnection, node: FakeNode) -> None:
    """One PATCH for each object that changes. What comes beside does not grow with the number of objects."""
    few, many = [await calls_of_operations(connection, number) for number in (3, 30)]
    for number, calls in ((3, few), (30, many)):
        assert {name: one["PATCH"] for name, one in calls.items()} == {
            "INSTANTIATE": number, "SCALE": 1, "HEAL": 0, "MODIFY_INFO": 2, "CHANGE_VNFPKG": 2, "TERMINATE": 0,
        }  # fmt: skip
        assert calls["HEAL"]["DELETE"] == 1
        # Objects, and pods with their grace: three, and those that the roll-out before has not ended yet.
        assert 3 <= calls["TERMINATE"]["DELETE"] - number <= 6
    for name in few:
        if name != "TERMINATE":  # which looks at each wave
            assert many[name]["GET"] <= few[name]["GET"] + 4, (name, few, many)


@pytest.fixture
async def pools(api: Api) -> AsyncIterator[str]:
    await api.apply(yaml.safe_load(POOLS))
    backoff = Backoff(0.1, 1.0, timeout=60)
    while not await _is_served(api):
        assert await backoff.pause()
    yield DEFINITION
    await api.delete(DEFINITION)


async def _is_served(api: Api) -> bool:
    try:
        await api.get("/apis/operations.slipway.example/v1")
    except KubeError:
        return False
    return True
