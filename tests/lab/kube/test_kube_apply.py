"""Objects of any kind on a real API server: applied as ours, never taken from others, removed until they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from slipway.kube.api import Api
from slipway.kube.apply import ForeignObject, apply
from slipway.kube.deletion import Doomed, delete, wait_gone
from slipway.kube.errors import QUOTA, KubeError
from slipway.kube.interface import Object, ObjectRef
from slipway.kube.ownership import INSTANCE, Owner, digest_of, made_by, manifest_digest
from slipway.kube.wait_ready import wait_ready
from slipway.model.errors import StepError
from tests.lab.kube.custom_resources import definition, ship
from tests.lab.kube.test_kube_api import config_map, config_maps

pytestmark = pytest.mark.journey

US, THEM = Owner("instance-1", "operation-1"), Owner("instance-2", "operation-2")


@pytest.fixture
async def ships(api: Api) -> AsyncIterator[str]:
    """The group of a CustomResourceDefinition of its own."""
    group = f"{uuid4().hex[:8]}.sea.test"
    applied = await apply(api, definition(group), US)
    await wait_ready(api, [applied.ref], (), 30)
    yield group
    await delete(api, Doomed(applied.ref))


async def test_applied_twice_it_is_the_same_object_with_what_was_applied_noted(api: Api, namespace: str) -> None:
    manifest = config_map(namespace, a="1")
    first = await apply(api, manifest, US)
    second = await apply(api, manifest, Owner(US.instance_id, "later"))
    assert (first.made, second.made) == (True, False)
    assert (first.uid, first.digest) == (second.uid, second.digest) == (second.uid, manifest_digest(manifest))
    found = await api.get(config_maps(namespace, "settings"), metadata_only=True)
    assert found["metadata"]["labels"] == {INSTANCE: US.instance_id}
    assert (made_by(found), digest_of(found)) == (US.operation_id, first.digest)
    assert "data" not in found
    third = await apply(api, config_map(namespace, b="2"), US, expect="present")
    assert third.object["data"] == {"b": "2"}
    assert third.digest != first.digest


@pytest.mark.parametrize("expect", ["absent", "present"])
async def test_what_somebody_else_made_is_not_taken_over(api: Api, namespace: str, expect: Any) -> None:
    made = await api.create(config_maps(namespace), config_map(namespace, a="theirs"))
    with pytest.raises(ForeignObject, match=r"ConfigMap \S+/settings is there already and was not made by Slipway"):
        await apply(api, config_map(namespace, a="ours"), US, expect=expect)
    found = await api.get(config_maps(namespace, "settings"))
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    await apply(api, config_map(namespace, "other"), THEM)
    with pytest.raises(ForeignObject, match="belongs to VNF instance instance-2") as caught:
        await apply(api, config_map(namespace, "other"), US, expect=expect)
    assert not caught.value.temporary


async def test_of_two_who_make_the_same_at_once_one_is_told(api: Api, namespace: str) -> None:
    owners = [Owner(f"instance-{number}", "o") for number in range(8)]
    results = await asyncio.gather(
        *(apply(api, config_map(namespace, who=owner.instance_id), owner) for owner in owners), return_exceptions=True
    )
    (made,) = [result for result in results if not isinstance(result, BaseException)]
    assert all(isinstance(result, ForeignObject) for result in results if result is not made)
    found = await api.get(config_maps(namespace, "settings"))
    assert found["data"]["who"] == found["metadata"]["labels"][INSTANCE]


async def test_a_field_that_somebody_else_has_set_is_named_with_who_did(api: Api, namespace: str) -> None:
    await apply(api, config_map(namespace, a="1", b="1"), US)
    path = config_maps(namespace, "settings")
    query = {"fieldManager": "operator", "force": "true"}
    theirs = {**config_map(namespace, a="2"), "metadata": {"name": "settings", "namespace": namespace}}
    await api._json("PATCH", path, query, theirs, "application/apply-patch+yaml")
    with pytest.raises(KubeError, match=r"is not changed: \.data\.a was set by operator") as caught:
        await apply(api, config_map(namespace, a="1", b="2"), US)
    assert not caught.value.temporary
    assert (await api.get(path))["data"] == {"a": "2", "b": "1"}
    forced = await apply(api, config_map(namespace, a="1", b="2"), US, force=True)
    assert forced.object["data"] == {"a": "1", "b": "2"}


async def test_what_we_set_ourselves_by_other_means_is_no_conflict(api: Api, namespace: str) -> None:
    await apply(api, config_map(namespace, a="1"), US)
    await api.patch(config_maps(namespace, "settings"), {"data": {"a": "2"}})
    assert (await apply(api, config_map(namespace, a="3"), US)).object["data"] == {"a": "3"}


async def test_custom_resources_are_applied_as_any_other(api: Api, namespace: str, ships: str) -> None:
    first = await apply(api, ship(ships, namespace, masts=3), US)
    changed = await apply(api, ship(ships, namespace, masts=4), US)
    assert (changed.uid, changed.made) == (first.uid, False)
    assert (first.generation, changed.generation) == (1, 2)
    with pytest.raises(ForeignObject):
        await apply(api, ship(ships, namespace, masts=5), THEM)
    resource = await api.discovery.resource(f"{ships}/v1", "Ship")
    assert resource.subresources >= {"status", "scale"}
    with pytest.raises(KubeError, match=r"\.spec\.masts: expected numeric .* Cure: correct the field") as caught:
        await apply(api, ship(ships, namespace, masts="many"), US)
    assert not caught.value.temporary


async def test_a_version_that_no_definition_serves_is_told_with_those_that_are(api: Api, ships: str) -> None:
    with pytest.raises(KubeError, match=rf"knows no Ship in {ships}/v9; served versions: {ships}/v1"):
        await api.discovery.resource(f"{ships}/v9", "Ship")
    with pytest.raises(KubeError, match="no CustomResourceDefinition there serves it"):
        await api.discovery.resource("nobody.test/v1", "Ship")


async def test_a_full_namespace_is_told_as_a_quota(api: Api, namespace: str) -> None:
    spec = {"hard": {"count/secrets": "0"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": namespace}}
    await apply(api, {**quota, "spec": spec}, US)
    error = await refused_by_quota(api, namespace)
    assert error.status == 403
    assert QUOTA in error.detail
    assert "free some of the quota" in error.detail


async def refused_by_quota(api: Api, namespace: str) -> KubeError:
    """The API server hears of a quota a moment after it is made, and its controller counts a moment after that."""
    for number in range(100):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"n{number}", "namespace": namespace}}
        try:
            await apply(api, secret, US)
        except KubeError as error:
            if "status unknown for quota" not in error.detail:
                return error
        await asyncio.sleep(0.1)
    raise AssertionError("100 secrets were made although the quota allows none")


async def test_what_a_policy_refuses_is_told_in_its_words(api: Api, namespace: str) -> None:
    name = f"refuse-{namespace}"
    for manifest in _policy(name, namespace):
        await apply(api, manifest, US)
    try:
        error = await refusal(api, namespace)
    finally:
        for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            await api.delete(f"/apis/admissionregistration.k8s.io/v1/{kind}/{name}")
    assert "no maps in this port" in error.detail
    assert not error.temporary


async def test_a_webhook_that_does_not_answer_is_temporary(api: Api, namespace: str) -> None:
    name = f"refuse-{namespace}"
    await apply(api, _webhook(name, namespace), US)
    try:
        error = await refusal(api, namespace)
    finally:
        await api.delete(f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}")
    assert "failed calling webhook" in error.detail
    assert error.temporary


async def refusal(api: Api, namespace: str) -> KubeError:
    """Of a new map, as soon as the API server knows that it must."""
    for number in range(100):
        try:
            await apply(api, config_map(namespace, f"map-{number}"), US)
        except KubeError as error:
            return error
        await asyncio.sleep(0.1)
    raise AssertionError("it is not refused")


async def test_deleted_is_waited_for_and_what_holds_it_is_named(api: Api, namespace: str) -> None:
    held = config_map(namespace, "held")
    held["metadata"]["finalizers"] = ["sea.test/anchor"]
    applied = [await apply(api, one, US) for one in (held, config_map(namespace, "free"))]
    doomed = [Doomed(one.ref, one.uid) for one in applied]
    for one in doomed:
        await delete(api, one, propagation="Foreground")
    with pytest.raises(StepError) as caught:
        await wait_gone(api, doomed, 2)
    assert caught.value.temporary
    assert "1 left: ConfigMap" in caught.value.detail
    assert "/held (being deleted since 20" in caught.value.detail
    assert "held by sea.test/anchor" in caught.value.detail
    waiting = asyncio.create_task(wait_gone(api, doomed, 20))
    await api.patch(config_maps(namespace, "held"), {"metadata": {"finalizers": None}})
    await waiting


async def test_only_the_one_with_the_uid_is_deleted_and_waited_for(api: Api, namespace: str) -> None:
    made = await apply(api, config_map(namespace), US)
    await delete(api, Doomed(made.ref, str(uuid4())))
    await wait_gone(api, [Doomed(made.ref, str(uuid4()))], 5)
    assert (await api.get(config_maps(namespace, "settings")))["metadata"]["uid"] == made.uid
    await delete(api, Doomed(made.ref, made.uid))
    await wait_gone(api, [Doomed(made.ref, made.uid)], 10)


async def test_what_nobody_serves_any_more_is_gone(api: Api, namespace: str) -> None:
    group = f"{uuid4().hex[:8]}.sea.test"
    applied = await apply(api, definition(group), US)
    await wait_ready(api, [applied.ref], (), 30)
    sailing = await apply(api, ship(group, namespace, masts=1), US)
    await delete(api, Doomed(applied.ref))
    await wait_gone(api, [Doomed(applied.ref), Doomed(sailing.ref, sailing.uid)], 30)
    api.discovery.forget()
    await delete(api, Doomed(sailing.ref))
    await wait_gone(api, [Doomed(ObjectRef(f"{group}/v1", "Ship", "any", namespace))], 5)


def _webhook(name: str, namespace: str) -> Object:
    """Nobody listens where it is said to be."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "refuse.sea.test",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    configuration = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return {**configuration, "metadata": {"name": name}, "webhooks": [hook]}


def _policy(name: str, namespace: str) -> list[Object]:
    group = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "no maps in this port"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    return [
        {**group, "kind": "ValidatingAdmissionPolicy", "spec": policy},
        {**group, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    ]
