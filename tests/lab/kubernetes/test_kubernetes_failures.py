"""What a cluster refuses, what others have made or changed, and faults that pass: a clear error, or survived."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import pytest
import yaml
from msgspec.structs import replace

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.credentials import Credentials
from slipway.kube.errors import KubeError
from slipway.model.action import VimConnection
from slipway.model.descriptor import Vdu
from slipway.model.errors import VimError
from slipway.model.operation import OperationType
from slipway.waiting import Backoff
from tests.contract.life import FIRST, INSTANTIATE, NEXT, OTHER, TERMINATE, UPDATE, heal, out
from tests.contract.plans import run_plan, undo_steps
from tests.lab.kube.fake_kubelet import FakeNode
from tests.lab.kubernetes.conftest import vim_of
from tests.lab.kubernetes.small_cnf import Cnf
from tests.lab.kubernetes.tcp_way import a_way_to
from tests.unit.vim.kubernetes_targets import PATH, config, together, workload

pytestmark = pytest.mark.group(name="kubernetes")
PAGES = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: leaves.failures.slipway.example}
spec:
  group: failures.slipway.example
  scope: Namespaced
  names: {kind: Leaf, plural: leaves}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/leaves.failures.slipway.example"


async def test_an_unknown_kind_is_named(connection: VimConnection) -> None:
    text = together(workload(), "apiVersion: example.com/v1\nkind: Database\nmetadata: {name: a}\n")
    error = await Cnf(connection, text).refused()
    assert "Database" in error.detail
    assert "CustomResourceDefinition" in error.detail


async def test_an_object_of_somebody_else_is_left_as_it_is(api: Api, connection: VimConnection, namespace: str) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": namespace}}
    await api.apply({**theirs, "data": {"key": "theirs"}})
    error = await Cnf(connection, together(config(), workload())).refused()
    assert f"ConfigMap {namespace}/settings is there already and was not made by Slipway" in error.detail
    assert (await api.get(paths.namespaced("/api/v1", namespace, "configmaps", "settings")))["data"] == {
        "key": "theirs"
    }


async def test_who_refuses_an_object_is_named(api: Api, connection: VimConnection, policy: str) -> None:
    error = await Cnf(connection, together(config("refused"), workload())).refused()
    assert "ConfigMap refused" in error.detail
    assert "not in this house" in error.detail
    assert policy in error.detail


async def test_a_webhook_that_does_not_answer_yet_is_waited_for(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/late"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    service = {"name": "nobody", "namespace": namespace}
    hook = {
        "name": "late.slipway.example",
        "clientConfig": {"service": service},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    await api.apply({**kind, "metadata": {"name": "late"}, "webhooks": [hook]})
    cnf = Cnf(connection, together(config(), workload()))
    begun = asyncio.create_task(cnf.instantiate())
    await asyncio.sleep(2)
    assert not begun.done()
    await api.delete(hooks)
    await begun
    assert await cnf.life.counts() == {"web": 2}


async def test_what_others_have_changed_is_not_overwritten(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    cnf = Cnf(connection, workload())
    await cnf.instantiate()
    path = paths.namespaced("/apis/apps/v1", namespace, "deployments", "web")
    replace_image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "theirs:1"}]
    await api._json("PATCH", path, {"fieldManager": "somebody"}, replace_image, "application/json-patch+json")
    with pytest.raises(VimError) as raised:
        await cnf.life.run(OperationType.SCALE, out())
    assert "somebody" in raised.value.detail
    assert ".image" in raised.value.detail
    found = await api.get(path)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "theirs:1"


async def test_a_definition_that_is_there_is_neither_ours_nor_removed(
    api: Api, connection: VimConnection, node: FakeNode, definition: str
) -> None:
    cnf = Cnf(connection, together(PAGES, workload(), _leaf("ours")))
    await cnf.instantiate()
    await cnf.life.agreed()
    assert (await cnf.life.plan(OperationType.CHANGE_VNFPKG, UPDATE)).steps == ()
    await cnf.life.run(OperationType.TERMINATE, TERMINATE)
    assert (await api.get(definition))["metadata"].get("labels") is None


async def test_a_definition_that_says_something_else_is_not_touched(
    api: Api, connection: VimConnection, definition: str
) -> None:
    error = await Cnf(connection, together(PAGES.replace("Namespaced", "Cluster"), workload())).refused()
    assert "is there already and was not made by Slipway" in error.detail


@pytest.mark.parametrize("manifest", [PAGES, config()])
async def test_what_is_being_deleted_is_waited_for_and_made_anew(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode, manifest: str
) -> None:
    (theirs,) = [one for one in yaml.safe_load_all(manifest) if one]
    held = {**theirs["metadata"], "finalizers": ["example.com/held"]}
    if theirs["kind"] == "ConfigMap":
        held["namespace"] = namespace
    path = await api.discovery.path(theirs | {"metadata": held})
    before = await api.apply(theirs | {"metadata": held})
    await api.delete(path)
    life = Cnf(connection, together(manifest, workload())).life
    context, plan = life.context(), await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
    begun = asyncio.create_task(run_plan(life.driver, plan, context))
    backoff = Backoff(0.05, 0.5, timeout=30)
    while not any("being deleted is gone" in told for told in context.told):
        assert await backoff.pause(), context.told
    await api.patch(path, [{"op": "remove", "path": "/metadata/finalizers"}], "json")
    await begun
    assert (await api.get(path))["metadata"]["uid"] != before["metadata"]["uid"]
    await undo_steps(life.driver, list(plan.steps), context)


async def test_a_definition_with_objects_of_others_is_kept_and_they_are_named(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    cnf = Cnf(connection, together(PAGES, workload(), _leaf("ours")))
    await cnf.instantiate()
    theirs = {"apiVersion": "failures.slipway.example/v1", "kind": "Leaf"}
    theirs["metadata"] = {"name": "theirs", "namespace": namespace}  # type: ignore[assignment]
    await api.apply(theirs)
    with pytest.raises(VimError, match=f"1 objects of others would go with it .Leaf {namespace}/theirs"):
        await cnf.life.run(OperationType.TERMINATE, TERMINATE)
    assert await cnf.life.counts() == {"web": 2}, "what serves them runs"
    await api.delete(f"/apis/failures.slipway.example/v1/namespaces/{namespace}/leaves/theirs")
    await cnf.life.run(OperationType.TERMINATE, TERMINATE)
    with pytest.raises(KubeError, match="404"):
        await api.get(DEFINITION)


async def test_a_second_vnf_does_not_take_over_the_objects_of_the_first(
    connection: VimConnection, node: FakeNode
) -> None:
    first = Cnf(connection, workload())
    await first.instantiate()
    error = await Cnf(connection, workload(), instance=OTHER).refused()
    assert f"belongs to VNF instance {first.life.instance_id}" in error.detail
    assert await first.life.counts() == {"web": 2}


async def test_a_bare_pod_is_healed_from_its_manifest(
    connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: web:1}]}\n"
    cnf = Cnf(connection, pod)
    flavour = replace(cnf.life.flavours[FIRST], aspects={})
    cnf.life.flavours = {FIRST: flavour, NEXT: flavour}
    await cnf.instantiate()
    (before,) = cnf.life.vnfcs("web")
    await cnf.life.run(OperationType.HEAL, heal(before))
    (after,) = cnf.life.vnfcs("web")
    assert after != before
    await cnf.life.agreed()


async def test_what_is_not_ready_is_said_with_the_reason(
    connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    """A Job whose pod fails is hopeless: nobody waits for the end of the time."""
    job = """
apiVersion: batch/v1
kind: Job
metadata: {name: prepare}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: 1
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: prepare:1}], nodeSelector: {nowhere: "true"}}
"""
    error = await Cnf(connection, together(workload(), job)).refused()
    assert "Job" in error.detail
    assert "DeadlineExceeded" in error.detail


async def test_vdus_of_machines_that_manifests_come_with_are_pods(connection: VimConnection, node: FakeNode) -> None:
    """As in packages written for other managers: Vdu.Compute, named as the object, manifests in the request."""
    cnf = Cnf(connection, workload(), workload(image="web:2"))
    vdu = Vdu(name="VDU1", title="web", initial=2, maximum=5)
    flavour = replace(cnf.life.flavours[FIRST], vdus={"VDU1": vdu}, aspects={}, manifests=())
    cnf.life.flavours = {FIRST: flavour, NEXT: flavour}
    request = replace(INSTANTIATE, additional_params={"lcm-kubernetes-def-files": [PATH]})
    await cnf.life.run(OperationType.INSTANTIATE, request)
    assert await cnf.life.counts() == {"VDU1": 2}
    before = set(cnf.life.vnfcs("VDU1"))
    await cnf.life.run(OperationType.CHANGE_VNFPKG, UPDATE)
    assert await cnf.life.counts() == {"VDU1": 2}
    assert not before & set(cnf.life.vnfcs("VDU1"))
    await cnf.life.agreed()


async def test_an_api_server_that_goes_away_is_waited_for(
    administrator: Credentials, namespace: str, node: FakeNode
) -> None:
    async with a_way_to(administrator) as way:
        vim = vim_of(dataclasses.replace(administrator, server=way.url), namespace)
        cnf = Cnf(vim, together(config(), workload()))
        node.starts = False
        begun = asyncio.create_task(cnf.instantiate())
        await way.until_used()
        await way.close()
        node.starts = True
        await asyncio.sleep(3)
        assert not begun.done()
        await way.open()
        await begun
        assert await cnf.life.counts() == {"web": 2}


def _leaf(name: str) -> str:
    return f"apiVersion: failures.slipway.example/v1\nkind: Leaf\nmetadata: {{name: {name}}}\n"


@pytest.fixture
async def definition(api: Api) -> AsyncIterator[str]:
    """Of somebody else's."""
    await api.apply(yaml.safe_load(PAGES))
    yield DEFINITION
    await api.delete(DEFINITION)


@pytest.fixture
async def policy(api: Api, namespace: str) -> AsyncIterator[str]:
    """Refuses ConfigMaps named "refused" in the namespace."""
    group = "admissionregistration.k8s.io/v1"
    root = f"/apis/{group}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'refused'", "message": "not in this house"}],
    }
    await api.apply(
        {"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "house"}, "spec": spec}
    )
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    bound = {"policyName": "house", "validationActions": ["Deny"], "matchResources": selector}
    kind = "ValidatingAdmissionPolicyBinding"
    await api.apply({"apiVersion": group, "kind": kind, "metadata": {"name": "house"}, "spec": bound})
    backoff = Backoff(0.1, 1.0, timeout=30)
    while not await _is_refusing(api, namespace):
        assert await backoff.pause()
    yield "house"
    await api.delete(f"{root}/validatingadmissionpolicybindings/house")
    await api.delete(f"{root}/validatingadmissionpolicies/house")


async def _is_refusing(api: Api, namespace: str) -> bool:
    refused = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "refused"}}
    try:
        await api.create(paths.namespaced("/api/v1", namespace, "configmaps"), refused)
    except KubeError as error:
        return "not in this house" in error.detail
    await api.delete(paths.namespaced("/api/v1", namespace, "configmaps", "refused"))
    return False
