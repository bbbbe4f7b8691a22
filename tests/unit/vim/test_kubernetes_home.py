"""Where a VNF's objects are that no manifest and no parameter places: the VIM says it once, when they are made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from slipway.kube.discovery import Resource
from slipway.model.machine import Found, FoundObject
from slipway.model.target import Renewal
from slipway.vim.kubernetes.arguments import Apply, DeletePods, Placed, WaitReady
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.kubernetes.object_plan import ObjectPlan
from slipway.vim.kubernetes.session import Session
from tests.unit.vim.kubernetes_targets import change, config, standing, target, together, workload

DRIVER = KubernetesVimDriver()
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\n"
ELSEWHERE = config("elsewhere").replace("{name:", "{namespace: elsewhere, name:")


async def namespace_of(one: ObjectPlan | Placed) -> str | None:
    """By a session with a VIM whose namespace is another one by now."""

    async def resource(api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, "things", namespaced=kind != "ClusterRole")

    api = SimpleNamespace(discovery=SimpleNamespace(resource=resource))
    session = Session(cast(Any, api), cast(Any, None), "another", cast(Any, None))
    return (await session.ref(one, None)).namespace


@pytest.mark.parametrize("renewal", [Renewal(), Renewal(members=frozenset({"pod-0", "pod-1"}), everything=True)])
async def test_objects_stay_in_their_namespace_when_that_of_the_vim_changes(renewal: Renewal) -> None:
    before, after = target(workload()), target(together(workload(image="web:2"), config(), ROLE, ELSEWHERE))
    plan = DRIVER.steps(change(before, after, renewal=renewal), standing(before))
    applied = [one for step in plan.steps if "files" in step.args for one in _read(step.args, Apply).objects]
    places = {one.name: await namespace_of(one) for one in applied}
    assert places == {"web": "default", "settings": "default", "all": None, "elsewhere": "elsewhere"}
    (waited,) = [_read(step.args, WaitReady) for step in plan.steps if step.id == "wait until ready"]
    assert {one.name: await namespace_of(one) for one in waited.objects} == places
    assert [await namespace_of(one) for one in waited.vdus] == ["default"]


async def test_pods_are_healed_where_they_are() -> None:
    now = target(workload())
    plan = DRIVER.steps(change(now, now, renewal=Renewal(members=frozenset({"pod-0"}))), standing(now))
    (vdu,) = _read(plan.steps[0].args, DeletePods).vdus
    assert await namespace_of(vdu) == "default"


async def test_a_rollback_finds_them_there() -> None:
    before, after = target(workload()), target(workload(image="web:2"))
    (applied, _) = DRIVER.steps(change(before, after), standing(before)).steps
    assert [await namespace_of(one) for one in _read(applied.args, Apply).former] == ["default"]


async def test_a_new_vnf_is_where_the_vim_says() -> None:
    (applied, _) = DRIVER.steps(change(None, target(workload())), Found()).steps
    assert [await namespace_of(one) for one in _read(applied.args, Apply).objects] == ["another"]


async def test_a_new_vnf_is_taken_back_where_the_vim_said_it_was_to_be() -> None:
    """Nothing is recorded of an instantiation that failed, and that of the VIM may be another one by now."""
    new = change(None, target(together(workload(), config(), ROLE, ELSEWHERE)), namespace="then")
    plan = DRIVER.steps(new, Found())
    applied = [one for step in plan.steps if "files" in step.args for one in _read(step.args, Apply).objects]
    places = {one.name: await namespace_of(one) for one in applied}
    assert places == {"web": "then", "settings": "then", "all": None, "elsewhere": "elsewhere"}
    (waited,) = [_read(step.args, WaitReady) for step in plan.steps if step.id == "wait until ready"]
    assert {one.name: await namespace_of(one) for one in waited.objects} == places


async def test_a_vnf_that_stands_does_not_follow_the_vim() -> None:
    before, after = target(workload()), target(together(workload(), config()))
    (applied, _) = DRIVER.steps(change(before, after, namespace="another"), standing(before)).steps
    assert [await namespace_of(one) for one in _read(applied.args, Apply).objects] == ["default"]


async def test_a_namespace_of_a_manifest_is_not_that_of_all() -> None:
    before = target(workload().replace("{name: web}", "{name: web, namespace: elsewhere}"))
    there = Found(objects=(FoundObject(id="Deployment.apps/elsewhere/web", kind="Deployment", name="web",
                                       namespace="elsewhere", api_version="apps/v1"),))  # fmt: skip
    plan = DRIVER.steps(change(before, target(together(workload(), config())), there), there)
    applied = [one for step in plan.steps if "files" in step.args for one in _read(step.args, Apply).objects]
    assert {await namespace_of(one) for one in applied} == {"another"}


def _read(args: dict[str, Any], kind: type[Any]) -> Any:
    import msgspec

    return msgspec.convert(args, kind)
