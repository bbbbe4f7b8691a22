"""What a package, hostile or careless, must not do to others on a real API server, nor tell of its secrets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.model.action import VimConnection
from slipway.model.errors import VimError
from slipway.model.operation import OperationType
from tests.contract.life import INSTANTIATE, OTHER, UPDATE
from tests.contract.plans import run_plan, undo_steps
from tests.lab.kube.fake_kubelet import FakeNode
from tests.lab.kubernetes.small_cnf import Cnf
from tests.lab.kubernetes.test_kubernetes_failures import DEFINITION, PAGES
from tests.unit.vim.kubernetes_targets import config, together, workload

pytestmark = pytest.mark.group(name="kubernetes")
FIXED = PAGES.replace(
    "openAPIV3Schema: {type: object}",
    "openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, "
    "x-kubernetes-validations: [{rule: self == oldSelf, message: spec is immutable}]}}}",
)


def leaf(name: str, namespace: str | None = None, **spec: Any) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    kind = {"apiVersion": "failures.slipway.example/v1", "kind": "Leaf"}
    return {**kind, "metadata": metadata} | ({"spec": spec} if spec else {})


async def uid(api: Api, path: str) -> str:
    return str((await api.get(path))["metadata"]["uid"])


@pytest.fixture
async def no_definition(api: Api) -> Any:
    yield
    await api.delete(DEFINITION)


async def test_a_definition_that_can_not_be_changed_is_not_made_anew_with_the_objects_of_others(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode, no_definition: None
) -> None:
    cnf = Cnf(connection, together(PAGES, workload()), together(PAGES.replace("Namespaced", "Cluster"), workload()))
    await cnf.instantiate()
    await api.apply(leaf("theirs", namespace))
    with pytest.raises(VimError, match="immutable") as raised:
        await cnf.life.run(OperationType.CHANGE_VNFPKG, UPDATE)
    assert "another name" in raised.value.detail
    await api.get(f"/apis/failures.slipway.example/v1/namespaces/{namespace}/leaves/theirs")


async def test_a_custom_resource_that_can_not_be_changed_is_not_made_anew(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode, no_definition: None
) -> None:
    texts = [together(FIXED, workload(), json.dumps(leaf("ours", size=size)) + "\n") for size in (1, 2)]
    cnf = Cnf(connection, *texts)
    await cnf.instantiate()
    path = f"/apis/failures.slipway.example/v1/namespaces/{namespace}/leaves/ours"
    before = await uid(api, path)
    with pytest.raises(VimError, match="spec is immutable"):
        await cnf.life.run(OperationType.CHANGE_VNFPKG, UPDATE)
    assert await uid(api, path) == before


async def test_a_policy_that_refuses_a_change_costs_no_workload(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    cnf = Cnf(connection, workload(), workload(image="web:2"))
    await cnf.instantiate()
    path = paths.namespaced("/apis/apps/v1", namespace, "deployments", "web")
    before = await uid(api, path)
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"]}
    match = {"resourceRules": [rule], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    group = "admissionregistration.k8s.io/v1"
    image = "!object.spec.template.spec.containers.exists(c, c.image == 'web:2')"
    spec = {"matchConstraints": match, "validations": [{"expression": image, "message": "such images are forbidden"}]}
    name = {"metadata": {"name": namespace}}
    await api.apply({"apiVersion": group, "kind": "ValidatingAdmissionPolicy", **name, "spec": spec})
    bound = {"policyName": namespace, "validationActions": ["Deny"]}
    await api.apply({"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", **name, "spec": bound})
    try:
        for _ in range(50):  # until the policy is in force
            try:
                found = await api.get(path)
                found["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"
                await api._json("PUT", path, {"dryRun": "All"}, found, "application/json")
            except KubeError as error:
                if "are forbidden" in error.detail:
                    break
            await asyncio.sleep(0.2)
        with pytest.raises(VimError, match="such images are forbidden"):
            await cnf.life.run(OperationType.CHANGE_VNFPKG, UPDATE)
        assert await uid(api, path) == before
    finally:
        for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            await api.delete(f"/apis/{group}/{plural}/{namespace}")


async def test_a_rollback_does_not_take_what_others_have_put_there_since(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode, no_definition: None
) -> None:
    space = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}-b}}\n"
    cnf = Cnf(connection, together(space, PAGES, workload()))
    context, plan = cnf.life.context(), await cnf.life.plan(OperationType.INSTANTIATE, INSTANTIATE)
    await run_plan(cnf.life.driver, plan, context)
    theirs = {"name": "theirs", "namespace": f"{namespace}-b", "labels": {"slipway.io/instance": OTHER}}
    await api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": theirs})
    await api.apply(leaf("theirs", namespace))
    with pytest.raises(VimError, match=f"Leaf {namespace}/theirs"):
        await undo_steps(cnf.life.driver, list(plan.steps), context)
    await api.delete(f"/apis/failures.slipway.example/v1/namespaces/{namespace}/leaves/theirs")
    with pytest.raises(VimError, match=f"ConfigMap {namespace}-b/theirs"):
        await undo_steps(cnf.life.driver, list(plan.steps), context)
    await api.delete(f"/api/v1/namespaces/{namespace}-b/configmaps/theirs")
    await undo_steps(cnf.life.driver, list(plan.steps), context)
    with pytest.raises(KubeError, match="404"):
        await api.get(DEFINITION)


async def test_an_immutable_object_of_somebody_else_is_left_as_it_is(
    api: Api, connection: VimConnection, namespace: str
) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}}
    await api.apply({**theirs, "data": {"key": "theirs"}, "immutable": True})
    error = await Cnf(connection, together(config() + "immutable: true\n", workload())).refused()
    assert "was not made by Slipway" in error.detail
    found = await api.get(paths.namespaced("/api/v1", namespace, "configmaps", "settings"))
    assert found["data"] == {"key": "theirs"}


async def test_an_object_that_is_only_called_immutable_is_not_removed_for_a_mistake_in_the_next_package(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    first = config(name="immutable-settings")
    cnf = Cnf(connection, together(first, workload()), together(first.replace("key:", "'no key':"), workload()))
    await cnf.instantiate()
    path = paths.namespaced("/api/v1", namespace, "configmaps", "immutable-settings")
    before = await uid(api, path)
    with pytest.raises(VimError, match="no key"):
        await cnf.life.run(OperationType.CHANGE_VNFPKG, UPDATE)
    assert await uid(api, path) == before
