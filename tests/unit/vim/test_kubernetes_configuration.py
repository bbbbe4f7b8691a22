"""Changes of ConfigMaps and Secrets: alone, by a modification, and of those that can't be changed. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.model.errors import Unprocessable
from slipway.model.plan import Plan
from slipway.model.target import VnfTarget
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.kubernetes.object_plan import rendered
from slipway.vim.kubernetes.wanted import WantedObject, wanted_objects
from tests.unit.vim.kubernetes_targets import INSTANCE, PATH, change, config, standing, target, together, workload

DRIVER = KubernetesVimDriver()
USES = "envFrom: [{configMapRef: {name: settings}}]"
IMMUTABLE = "immutable: true\n"


def effects(plan: Plan) -> list[tuple[str, str]]:
    return [(effect.verb.value, effect.name) for step in plan.steps for effect in step.effects]


def package(value: str, image: str = "web:1", more: str = "") -> VnfTarget:
    agent = workload("DaemonSet", "agent", image)
    return target(together(config(value=value) + more, workload(image=image, more=USES), agent))


def digests(of: VnfTarget) -> dict[str, str | None]:
    return {one.id: one.plan.digest for one in wanted_objects(of)}


def applied(one: WantedObject) -> dict[str, Any]:
    return rendered(one.manifest.content, one.plan, INSTANCE)


def test_a_modification_changes_configuration_and_what_uses_it_and_nothing_else() -> None:
    before, after = package("1", "web:1"), package("2", "web:2")
    plan = DRIVER.steps(change(before, after, configuration_files=(PATH,)), standing(before))
    assert effects(plan) == [("change", "settings"), ("change", "web")]
    assert [step.id for step in plan.steps] == [
        "apply configuration and storage", "apply workloads", "wait until ready",
    ]  # fmt: skip


@pytest.mark.parametrize("configured", [None, "elsewhere"])
@pytest.mark.parametrize("used", [None, "here"])
def test_a_namespace_for_all_brings_configuration_and_what_uses_it_together(
    configured: str | None, used: str | None
) -> None:
    """Whatever namespaces their manifests have."""

    def placed(text: str, namespace: str | None) -> str:
        return text.replace("{name: ", f"{{namespace: {namespace}, name: ", 1) if namespace else text

    def package(value: str, more: str = "") -> VnfTarget:
        settings = placed(config(value=value), configured) + more
        return target(together(settings, placed(workload(more=USES), used)), namespace="prod")

    for more in ("", IMMUTABLE):
        before, after = package("1", more), package("2", more)
        plan = DRIVER.steps(change(before, after), standing(before))
        assert ("change", "web") in effects(plan)
        assert DRIVER.steps(change(before, after, configuration_files=(PATH,)), standing(before)) == plan
    (_, new), *_ = effects(plan)
    assert new.startswith("settings-"), "the immutable one goes when nobody uses it any more"


def test_a_modification_removes_nothing_that_the_package_lacks() -> None:
    before = target(together(config(), config("old"), workload(more=USES)))
    after = target(together(config(value="2"), workload(more=USES)))
    plan = DRIVER.steps(change(before, after, configuration_files=(PATH,)), standing(before))
    assert effects(plan) == [("change", "settings"), ("change", "web")]


def test_a_modification_without_a_change_has_no_step() -> None:
    now = package("1")
    assert DRIVER.steps(change(now, now, configuration_files=(PATH,)), standing(now)) == Plan()


def test_a_modification_names_only_manifests_of_the_vnf_that_have_configuration() -> None:
    now = target(workload())
    with pytest.raises(Unprocessable, match="is none of the VNF's manifests; they are: Files/kubernetes"):
        DRIVER.refuse(change(now, now, configuration_files=("other.yaml",)))
    with pytest.raises(Unprocessable, match="has neither a ConfigMap nor a Secret"):
        DRIVER.steps(change(now, now, configuration_files=(PATH,)), standing(now))


def test_an_immutable_configmap_is_replaced_under_a_new_name_and_the_former_goes_last() -> None:
    before, after = package("1", more=IMMUTABLE), package("2", more=IMMUTABLE)
    plan = DRIVER.steps(change(before, after), standing(before))
    (_, new), *_ = effects(plan)
    assert new.startswith("settings-")
    assert effects(plan) == [("make", new), ("change", "web"), ("remove", "settings")]
    assert not any(step.irreversible for step in plan.steps), "the former comes back with a rollback"


def test_pods_use_the_new_name_and_a_rollback_the_former() -> None:
    before, after = package("1", more=IMMUTABLE), package("2", more=IMMUTABLE)
    there = digests(before)
    new, web, _ = wanted_objects(after, there)
    container = applied(web)["spec"]["template"]["spec"]["containers"][0]
    assert container["envFrom"] == [{"configMapRef": {"name": new.plan.name}}]
    assert applied(new)["metadata"]["name"] == new.plan.name
    former = {one.id: one for one in wanted_objects(before, there)}
    container = applied(former["Deployment.apps/web"])["spec"]["template"]["spec"]["containers"][0]
    assert container["envFrom"] == [{"configMapRef": {"name": "settings"}}]


def test_an_immutable_configmap_keeps_its_new_name_until_it_changes_again() -> None:
    first, second, third = (package(value, more=IMMUTABLE) for value in "123")
    renamed = wanted_objects(second, digests(first))
    there = {one.id: one.plan.digest for one in renamed}
    assert [one.id for one in wanted_objects(second, there)] == [one.id for one in renamed]
    again = wanted_objects(third, there)
    assert again[0].id not in there


def test_an_immutable_secret_that_others_than_pods_name_keeps_its_name() -> None:
    ingress = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {tls: [{secretName: settings}]}
"""

    def with_ingress(value: str) -> VnfTarget:
        uses = "envFrom: [{secretRef: {name: settings}}]"
        return target(together(config(value=value, kind="Secret") + IMMUTABLE, workload(more=uses), ingress))

    plan = DRIVER.steps(change(with_ingress("1"), with_ingress("2")), standing(with_ingress("1")))
    assert effects(plan) == [("change", "settings"), ("change", "web")]


def test_pods_that_nobody_rolls_are_marked_with_what_they_were_made_from() -> None:
    def template(image: str) -> Any:
        (one,) = wanted_objects(target(workload("ReplicaSet", image=image)))
        return applied(one)["spec"]["template"]["metadata"]["annotations"]

    assert template("web:1") == template("web:1") != template("web:2")
