"""What a package or a cluster gets wrong: each a clear error that names it, or a fault that is survived."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
import yaml

from slipway.kube import account, paths
from slipway.kube.api import Api
from slipway.kube.credentials import Credentials
from slipway.kube.errors import QUOTA, KubeError
from slipway.kube.interface import Object
from slipway.model.action import VimConnection
from slipway.model.errors import PackageError, VimError, VimFault
from slipway.model.operation import OperationType
from slipway.model.vim import KUBERNETES
from slipway.waiting import Backoff
from tests.contract.life import INSTANTIATE
from tests.contract.plans import run_plan
from tests.lab.kube.fake_kubelet import FakeNode
from tests.lab.kubernetes.small_cnf import Cnf
from tests.unit.vim.authority import Authority
from tests.unit.vim.kubernetes_targets import config, together, workload

pytestmark = pytest.mark.group(name="kubernetes")
CLUSTER_WIDE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trees.badinput.slipway.example}
spec:
  group: badinput.slipway.example
  scope: Cluster
  names: {kind: Tree, plural: trees}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {age: {type: integer}}}}}}
"""
TREES = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trees.badinput.slipway.example"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (together(workload(), "kind: [\n"), "Not valid YAML"),
        (together(workload(), workload()), "Deployment web is there twice"),
        (together(workload(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n"), "have none"),
        (together(workload(), "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n"), "generateName"),
    ],
)
async def test_a_manifest_that_can_not_be_right_is_named_before_anything_is_done(
    api: Api, connection: VimConnection, namespace: str, text: str, told: str
) -> None:
    with pytest.raises(PackageError, match=told):
        await Cnf(connection, text).life.plan(OperationType.INSTANTIATE, INSTANTIATE)
    assert await api.list(paths.namespaced("/apis/apps/v1", namespace, "deployments")) == []


async def test_a_kind_of_the_cluster_that_is_given_a_namespace_is_named(
    connection: VimConnection, trees: str, namespace: str
) -> None:
    """Its definition is not in the package, so only the cluster can tell."""
    tree = f"apiVersion: badinput.slipway.example/v1\nkind: Tree\nmetadata: {{name: a, namespace: {namespace}}}\n"
    error = await Cnf(connection, together(workload(), tree)).refused()
    assert "Tree a has the namespace" in error.detail


async def test_a_field_that_the_schema_refuses_is_named(connection: VimConnection, trees: str) -> None:
    tree = "apiVersion: badinput.slipway.example/v1\nkind: Tree\nmetadata: {name: a}\nspec: {age: old}\n"
    error = await Cnf(connection, together(workload(), tree)).refused()
    assert "Tree a" in error.detail
    assert "spec.age" in error.detail


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: Secret\nmetadata: {name: a}\ndata: {key: 'no base64!'}\n", "illegal base64"),
        ("kind: LimitRange\nmetadata: {name: a}\nspec: {limits: [{type: Pod, max: {cpu: much}}]}\n", "quantities must"),
    ],
)
async def test_a_value_that_is_none_is_told_at_once(connection: VimConnection, text: str, told: str) -> None:
    error = await Cnf(connection, together(workload(), f"apiVersion: v1\n{text}")).refused()
    assert told in error.detail
    assert error.fault is VimFault.PERMANENT


async def test_a_kind_of_which_nothing_can_be_kept_is_named_and_all_else_is_taken_back(
    api: Api, connection: VimConnection, namespace: str
) -> None:
    review = "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nmetadata: {name: a}\n"
    error = await Cnf(connection, together(config(), workload(), review)).refused()
    assert "SelfSubjectAccessReview a" in error.detail
    assert await api.list(paths.namespaced("/apis/apps/v1", namespace, "deployments")) == []
    assert "settings" not in await api.names(paths.namespaced("/api/v1", namespace, "configmaps"))


async def test_a_webhook_that_refuses_is_named_with_what_it_says(
    api: Api, connection: VimConnection, namespace: str
) -> None:
    async with refusing_webhook(api, namespace):
        error = await Cnf(connection, together(config("refused", "s3cret", "Secret"), workload())).refused()
    assert "Secret refused" in error.detail
    assert "guard.slipway.example" in error.detail
    assert "not on my watch" in error.detail
    assert error.fault is VimFault.PERMANENT
    assert "s3cret" not in error.detail


async def test_a_quota_that_is_full_is_said_to_be_one_and_a_retry_goes_on(
    api: Api, connection: VimConnection, namespace: str, node: FakeNode
) -> None:
    quotas = paths.namespaced("/api/v1", namespace, "resourcequotas")
    await api.create(quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"count/secrets": "0"}}})
    await until_heard_of(api, namespace)
    cnf = Cnf(connection, together(config("a", "hidden", "Secret"), workload()))
    context, plan = cnf.life.context(), await cnf.life.plan(OperationType.INSTANTIATE, INSTANTIATE)
    with pytest.raises(VimError) as raised:
        await run_plan(cnf.life.driver, plan, context)
    assert raised.value.fault is VimFault.QUOTA
    assert "Secret a" in raised.value.detail
    assert "hidden" not in raised.value.detail
    await api.delete(f"{quotas}/few")
    await run_plan(cnf.life.driver, plan, context)
    cnf.life.settle(OperationType.INSTANTIATE, INSTANTIATE, context)
    assert await cnf.life.counts() == {"web": 2}


async def test_a_token_that_ends_in_the_middle_is_said_and_another_one_goes_on(
    api: Api, administrator: Credentials, namespace: str, node: FakeNode
) -> None:
    token = (await account.issue_token(api, timedelta(hours=1))).value
    cnf = Cnf(vim_with(administrator, token, namespace), together(config(), workload()))
    context, plan = cnf.life.context(), await cnf.life.plan(OperationType.INSTANTIATE, INSTANTIATE)
    done = await run_plan(cnf.life.driver, plan, context, stop_after=1)
    assert [step.id for step in done] == ["apply configuration and storage"]
    await account.remove_account(api)
    await until_refused(administrator, token)
    with pytest.raises(VimError) as raised:
        await run_plan(cnf.life.driver, plan, context)
    assert raised.value.fault is VimFault.AUTH
    assert token not in raised.value.detail
    context.vim = vim_with(administrator, (await account.issue_token(api, timedelta(hours=1))).value, namespace)
    await run_plan(cnf.life.driver, plan, context)
    cnf.life.settle(OperationType.INSTANTIATE, INSTANTIATE, context)
    cnf.life.connection = context.vim
    assert await cnf.life.counts() == {"web": 2}
    await account.remove_account(api)


def vim_with(administrator: Credentials, token: str, namespace: str) -> VimConnection:
    where = {"endpoint": administrator.server, "ssl_ca_cert": administrator.ca}
    return VimConnection(KUBERNETES, where, {"bearer_token": token, "namespace": namespace}, {})


async def until_heard_of(api: Api, namespace: str) -> None:
    """The API server learns of a quota by a watch of its own: until then it lets things pass."""
    secrets = paths.namespaced("/api/v1", namespace, "secrets")
    backoff = Backoff(0.1, 1.0, timeout=60)
    while True:
        try:
            await api.create(secrets, {"metadata": {"name": "probe"}})
        except KubeError as error:
            if error.status == 403 and QUOTA in error.detail and "probe" in error.detail:
                return
            if error.status not in (403, 409):
                raise
        await api.delete(f"{secrets}/probe")
        assert await backoff.pause(), "the API server has not heard of the quota"


async def until_refused(administrator: Credentials, token: str) -> None:
    """API servers remember a token for some seconds."""
    backoff = Backoff(0.2, 2.0, timeout=60)
    async with Api(Credentials(server=administrator.server, ca=administrator.ca, token=token)) as api:
        while True:
            try:
                await api.get("/api/v1/namespaces/default")
            except KubeError as error:
                if error.status == 401:
                    return
            assert await backoff.pause(), "the token is still accepted"


@asynccontextmanager
async def refusing_webhook(api: Api, namespace: str) -> AsyncIterator[None]:
    """A server of its own that the API server asks about Secrets of the namespace, and that refuses each."""
    authority = Authority()
    server = await asyncio.start_server(_refuse, "127.0.0.1", 0, ssl=authority.server_context("127.0.0.1"))
    port = server.sockets[0].getsockname()[1]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["secrets"]}
    hook = {
        "name": "guard.slipway.example",
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/",
            "caBundle": base64.b64encode(authority.pem.encode()).decode(),
        },
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    await api.apply({**kind, "metadata": {"name": namespace}, "webhooks": [hook]})
    try:
        await _until(lambda: _is_refused(api, namespace))
        yield
    finally:
        await api.delete(f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{namespace}")
        server.close()


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].partition("\r\n")[0])
    asked: Object = json.loads(await reader.readexactly(length))
    answer = {"uid": asked["request"]["uid"], "allowed": False, "status": {"message": "not on my watch"}}
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
    writer.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    writer.close()


async def _is_refused(api: Api, namespace: str) -> bool:
    secrets = paths.namespaced("/api/v1", namespace, "secrets")
    try:
        await api.create(secrets, {"metadata": {"name": "probe"}})
    except KubeError as error:
        return "not on my watch" in error.detail
    await api.delete(f"{secrets}/probe")
    return False


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    backoff = Backoff(0.1, 1.0, timeout=60)
    while not await holds():
        assert await backoff.pause()


@pytest.fixture
async def trees(api: Api) -> AsyncIterator[str]:
    await api.apply(yaml.safe_load(CLUSTER_WIDE))

    async def served() -> bool:
        """By the list that clients read; Established comes before it."""
        api.discovery.forget()
        return await _there(api.discovery.resource("badinput.slipway.example/v1", "Tree"))

    async def gone() -> bool:
        return not await _there(api.get(TREES))

    await _until(served)
    yield TREES
    await api.delete(TREES)
    await _until(gone)


async def _there(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except KubeError as error:
        if error.status == 404:
            return False
        raise
    return True
