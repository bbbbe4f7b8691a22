"""The client on a real API server: every verb, any kind, and each way to be told no."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.credentials import Credentials
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.kube.pods import condition
from slipway.waiting import Observation, wait_for
from tests.functional.remote_proxy import proxy_to
from tests.functional.remote_sshd import running_sshd, ssh_host_on

pytestmark = pytest.mark.journey


def config_map(namespace: str, name: str = "settings", **data: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def config_maps(namespace: str, name: str | None = None) -> str:
    return paths.namespaced("/api/v1", namespace, "configmaps", name)


def port_of(credentials: Credentials) -> int:
    port = urlsplit(credentials.server).port
    assert port
    return port


@asynccontextmanager
async def refused(*words: str, status: int | None = None, temporary: bool = False) -> AsyncIterator[None]:
    with pytest.raises(KubeError) as caught:
        yield
    assert caught.value.status == status, caught.value
    assert caught.value.temporary is temporary, caught.value
    for word in words:
        assert word in caught.value.detail


async def test_applied_twice_is_the_same_and_fields_of_others_stay(api: Api, namespace: str) -> None:
    first = await api.apply(config_map(namespace, ours="1"))
    assert (
        first["metadata"]["resourceVersion"]
        == (await api.apply(config_map(namespace, ours="1")))["metadata"]["resourceVersion"]
    )
    path = config_maps(namespace, "settings")
    await api.patch(path, {"data": {"theirs": "2"}})
    await api.apply(config_map(namespace, ours="3"))
    assert (await api.get(path))["data"]["ours"] == "3"


async def test_what_is_no_longer_in_a_manifest_is_taken_back(api: Api, namespace: str) -> None:
    await api.apply(config_map(namespace, stays="1", goes="1"))
    assert (await api.apply(config_map(namespace, stays="1")))["data"] == {"stays": "1"}


async def test_a_manifest_without_a_namespace_goes_to_the_default_one(api: Api) -> None:
    name = f"settings-{uuid4().hex[:8]}"
    await api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    await api.delete(config_maps("default", name))


async def test_a_kind_that_was_just_defined_can_be_applied(api: Api, namespace: str) -> None:
    kind = f"Ship{uuid4().hex[:8]}"
    plural, group = f"{kind.lower()}s", "slipway.test"
    manifest = {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "one", "namespace": namespace},
        "spec": {"masts": 3},
    }
    async with refused(f"knows no {kind}", "install the CustomResourceDefinition first", status=404):
        await api.apply(manifest)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    await api.apply(definition)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}"

    async def established() -> Observation:
        found = condition(await api.get(path), "Established")
        return Observation(found.get("status") == "True", str(found))

    await wait_for(established, "the definition to be established", 30)
    await _discovered(api, manifest)
    assert (await api.get(paths.namespaced(f"/apis/{group}/v1", namespace, plural, "one")))["spec"]["masts"] == 3
    await api.delete(path)


async def _discovered(api: Api, manifest: Object) -> None:
    """Discovery follows within a moment."""
    for _ in range(50):
        try:
            await api.apply(manifest)
            return
        except KubeError as error:
            if error.status != 404:
                raise
            await asyncio.sleep(0.1)
    raise AssertionError("not discovered")


async def test_a_list_of_several_pages_is_whole(api: Api, namespace: str) -> None:
    names = [f"map-{number}" for number in range(25)]
    await asyncio.gather(*(api.create(config_maps(namespace), config_map(namespace, name)) for name in names))
    found = await api.list(config_maps(namespace), limit="4", fieldSelector="metadata.name!=kube-root-ca.crt")
    assert sorted(one["metadata"]["name"] for one in found) == sorted(names)
    assert len(await api.list(config_maps(namespace))) == 26


async def test_making_what_is_there_is_a_conflict(api: Api, namespace: str) -> None:
    await api.create(config_maps(namespace), config_map(namespace))
    async with refused("POST /api/v1/", "409 AlreadyExists", "Cure: remove the one that is there", status=409):
        await api.create(config_maps(namespace), config_map(namespace))


async def test_changing_what_has_changed_is_a_conflict(api: Api, namespace: str) -> None:
    made = await api.create(config_maps(namespace), config_map(namespace))
    path, old = config_maps(namespace, "settings"), {"resourceVersion": made["metadata"]["resourceVersion"]}
    await api.patch(path, {"data": {"changed": "yes"}})
    async with refused("409 Conflict", "Cure: it was changed in the meantime", status=409):
        await api.patch(path, {"metadata": old, "data": {"changed": "no"}})


async def test_patches_of_the_other_kinds(api: Api, namespace: str) -> None:
    await api.apply(config_map(namespace, one="1"))
    path = config_maps(namespace, "settings")
    await api.patch(path, [{"op": "add", "path": "/data/two", "value": "2"}], "json")
    assert (await api.patch(path, {"data": {"one": None}}, "strategic"))["data"] == {"two": "2"}


async def test_what_is_not_there_is_said_and_deleting_it_is_fine(api: Api, namespace: str) -> None:
    path = config_maps(namespace, "nowhere")
    async with refused(f"GET {path} on https://", '404 NotFound: configmaps "nowhere" not found', status=404):
        await api.get(path)
    await api.delete(path)


async def test_only_the_one_that_was_meant_is_deleted(api: Api, namespace: str) -> None:
    made = await api.create(config_maps(namespace), config_map(namespace))
    path = config_maps(namespace, "settings")
    await api.delete(path, uid=str(uuid4()))
    await api.get(path)
    await api.delete(path, uid=made["metadata"]["uid"])
    async with refused(status=404):
        await api.get(path)


async def test_an_invalid_object_names_its_field(api: Api, namespace: str) -> None:
    async with refused("422 Invalid", "metadata.name", "Cure: correct the field that is named", status=422):
        await api.create(config_maps(namespace), config_map(namespace, "Not A Name"))


async def test_a_refused_secret_is_not_shown(api: Api, namespace: str) -> None:
    """A label is repeated by the server when it is wrong; here it has the secret's value."""
    canary = "canary value " * 3
    metadata = {"name": "hidden", "namespace": namespace, "labels": {"l": canary}}
    with pytest.raises(KubeError, match=r"\*\*\*") as caught:
        await api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"v": canary}})
    assert "canary" not in caught.value.detail + repr(caught.value.causes)


async def test_plain_text(api: Api) -> None:
    assert await api.text("/readyz") == "ok"


async def test_a_wrong_token_has_a_cure_and_is_not_shown(administrator: Credentials) -> None:
    wrong = replace(administrator, client_certificate=None, client_key=None, token="canary-token")
    async with Api(wrong) as api:
        with pytest.raises(KubeError, match=r"401 Unauthorized.*Cure: give credentials") as caught:
            await api.get("/api/v1/nodes")
    assert not caught.value.temporary
    assert "canary" not in caught.value.detail


async def test_what_a_role_does_not_allow_has_a_cure(administrator: Credentials) -> None:
    async with (
        Api(replace(administrator, client_certificate=None, client_key=None)) as api,
        refused('User "system:anonymous" cannot', "Cure: let a role binding", status=403),
    ):
        await api.get("/api/v1/nodes")


async def test_another_ca_is_a_permanent_error_with_a_cure(administrator: Credentials) -> None:
    assert administrator.client_certificate
    async with (
        Api(replace(administrator, ca=administrator.client_certificate)) as api,
        refused("certificate was not accepted", "Cure: give this cluster's CA"),
    ):
        await api.get("/api/v1/nodes")


async def test_the_certificate_must_be_for_the_name(administrator: Credentials) -> None:
    async with Api(administrator, server_name="kubernetes.default") as api:
        assert await api.text("/readyz") == "ok"
    async with (
        Api(administrator, server_name="elsewhere.test") as api,
        refused("not valid for 'elsewhere.test'", "Cure: "),
    ):
        await api.text("/readyz")


async def test_nobody_there_is_temporary(administrator: Credentials) -> None:
    async with (
        Api(replace(administrator, server="https://127.0.0.1:1")) as api,
        refused("GET /readyz on https://127.0.0.1:1", temporary=True),
    ):
        await api.text("/readyz")


async def test_no_answer_is_temporary_and_bounded(administrator: Credentials) -> None:
    """Neither to a handshake nor to a question."""
    async with proxy_to(port_of(administrator)) as proxy:
        there = replace(administrator, server=f"https://127.0.0.1:{proxy.port}")
        for calls_before in (0, 1):
            async with Api(there, timeout=0.5) as api:
                for _ in range(calls_before):
                    await api.text("/readyz")
                proxy.hang()
                async with refused("not answered within 0.5 s", temporary=True):
                    await api.text("/readyz")
                proxy.resume()


async def test_a_cut_connection_is_temporary_and_the_next_call_connects_anew(administrator: Credentials) -> None:
    async with proxy_to(port_of(administrator)) as proxy:
        there = replace(administrator, server=f"https://127.0.0.1:{proxy.port}")
        async with Api(there) as api:
            await api.text("/readyz")
            proxy.hang()
            calling = asyncio.create_task(api.text("/readyz"))
            await asyncio.wait([calling], timeout=0.1)
            proxy.cut()
            async with refused(temporary=True):
                await calling
            proxy.resume()
            assert await api.text("/readyz") == "ok"


async def test_cancelled_calls_do_not_use_up_the_connections(administrator: Credentials) -> None:
    async def broken_off(moment: float) -> None:
        calls = gather_or_cancel(api.list("/api/v1/namespaces") for _ in range(20))
        calling = asyncio.create_task(calls)
        await asyncio.wait([calling], timeout=moment)
        calling.cancel()
        await asyncio.wait([calling])

    async with Api(administrator, timeout=10) as api:
        for number in range(20):
            await broken_off(0.01 * (number % 5))
        assert await gather_or_cancel(api.text("/readyz") for _ in range(20)) == ["ok"] * 20


async def test_an_answer_without_end_is_cut_off(api: Api, namespace: str, administrator: Credentials) -> None:
    await api.apply(config_map(namespace, much="x" * 100_000))
    async with Api(administrator, largest=50_000) as small, refused("the answer is larger than 50000 bytes"):
        await small.get(config_maps(namespace, "settings"))


async def test_through_an_ssh_forward_the_certificate_is_checked_as_ever(
    administrator: Credentials, tmp_path: Path
) -> None:
    far = replace(administrator, server="https://kubernetes.default:6443")  # nobody knows that name here
    with running_sshd(tmp_path / "sshd") as sshd:
        async with ssh_host_on(sshd.target()) as host, host.forwarded("127.0.0.1", port_of(administrator)) as socket:
            async with Api(far, socket=socket) as api:
                found = await asyncio.gather(*(api.list("/api/v1/namespaces") for _ in range(40)))
                assert all(found)
            async with (
                Api(far, socket=socket, server_name="elsewhere.test") as api,
                refused("not valid for 'elsewhere.test'"),
            ):
                await api.text("/readyz")
