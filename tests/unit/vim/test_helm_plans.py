"""Which steps a change of releases takes. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.errors import PackageError, Unprocessable
from slipway.model.machine import Found, FoundObject
from slipway.model.plan import Plan, Verb
from slipway.model.target import Renewal
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.kubernetes.helm.arguments import UNINSTALL, UPGRADE
from slipway.vim.kubernetes.helm.releases import release_name
from tests.unit.vim.helm_targets import CHART, PATH, flavour, helm_target, releases_of
from tests.unit.vim.kubernetes_targets import INSTANCE, change

DRIVER = KubernetesVimDriver()
TWO: dict[str, Any] = {
    "using_helm_install_param": [
        {"exthelmchart": False, "helmreleasename": "db", "helmchartfile_path": "Files/charts/web-1.0.0.tgz"},
        {"exthelmchart": False, "helmreleasename": "web", "helmchartfile_path": PATH},
    ],
    "vdu_mapping": {"web": {"helmreleasename": "web"}},
}


def plan_of(before: Any, after: Any, found: Found | None = None, **more: Any) -> Plan:
    stands = releases_of(before) if before else Found()
    return DRIVER.steps(change(before, after, stands, **more), stands if found is None else found).checked()


def test_charts_are_installed_in_the_order_of_the_request() -> None:
    plan = plan_of(None, helm_target(of=flavour(()), **TWO))
    assert [step.id for step in plan.steps] == ["install release db", "install release web"]
    assert plan.steps[1].after == ("install release db",)
    assert plan.steps[1].effects[0].verb is Verb.MAKE


def test_a_release_is_called_by_the_instance_so_that_it_is_nobody_elses() -> None:
    (step,) = plan_of(None, helm_target()).steps
    assert step.args["release"] == release_name("vnf", INSTANCE)
    assert INSTANCE.replace("-", "")[:12] in step.args["release"]
    assert len(release_name("a" * 40, INSTANCE)) <= 53


def test_a_plan_has_digests_and_no_content() -> None:
    (step,) = plan_of(None, helm_target(helm_parameters={"db.password": {"$secret": "1"}})).steps
    assert set(step.args["source"]["files"]) == {f"{PATH}/{name}" for name in CHART}
    assert step.args["values"] == {"db": {"password": {"$secret": "1"}}, "web": {"replicas": 2}}


def test_a_chart_may_say_which_value_is_the_number_of_a_vdu() -> None:
    about = CHART["Chart.yaml"] + b"annotations: {slipway.io/replicas.web: size}\n"
    (step,) = plan_of(None, helm_target(chart={**CHART, "Chart.yaml": about}, helm_value_names=None)).steps
    assert step.args["values"] == {"size": 2}


def test_a_vdu_that_scales_without_a_value_is_refused() -> None:
    with pytest.raises(Unprocessable, match=r"helm_value_names\.web"):
        plan_of(None, helm_target(helm_value_names=None))


def test_a_scale_upgrades_with_another_value_and_can_go_back() -> None:
    (step,) = plan_of(helm_target(), helm_target(3)).steps
    assert (step.id, step.action, step.irreversible) == ("upgrade release vnf", UPGRADE, False)
    assert step.args["values"] == {"web": {"replicas": 3}}
    assert step.args["revision"] == 3
    assert step.args["former"]["web"]["replicas"] == 2


@pytest.mark.parametrize("renewal", [Renewal(), Renewal(members=frozenset({"pod-0", "pod-1"}), everything=True)])
def test_a_release_stays_in_its_namespace_when_that_of_the_vim_changes(renewal: Renewal) -> None:
    plan = plan_of(helm_target(), helm_target(3), renewal=renewal)
    assert [step.args["namespace"] for step in plan.steps if step.action == UPGRADE] == ["default"]


def test_a_release_is_made_and_taken_back_where_the_vim_said_when_it_was_planned() -> None:
    (made,) = plan_of(None, helm_target(), namespace="then").steps
    assert made.args["namespace"] == "then"
    (gone,) = [step for step in plan_of(helm_target(), None, namespace="then").steps if step.action == UNINSTALL]
    assert (gone.args["namespace"], gone.args["namespaces"]) == ("then", ("default",))
    given = plan_of(None, helm_target(namespace="asked"), namespace="then")
    assert [step.args["namespace"] for step in given.steps] == ["asked"]


def test_what_somebody_has_removed_is_known_to_the_upgrade_so_that_it_can_leave_the_record() -> None:
    stands = releases_of(helm_target())
    removed = FoundObject(
        id="HelmRelease/vnf/ConfigMap/old", kind="ConfigMap", name="old", namespace="default", api_version="v1"
    )
    record = replace(stands, objects=(*stands.objects, removed))
    (step,) = DRIVER.steps(change(helm_target(), helm_target(3), record), stands).checked().steps
    assert removed.id in [one["id"] for one in step.args["objects"]]


def test_when_all_is_as_wanted_nothing_is_done() -> None:
    assert plan_of(helm_target(), helm_target()).steps == ()


def test_the_same_chart_in_another_package_is_no_change_and_another_one_is() -> None:
    moved = dataclasses.replace(helm_target(), vnfd_id="other")
    assert plan_of(helm_target(), moved).steps == ()
    other = {**CHART, "values.yaml": b"web: {replicas: 1, more: 1}\n"}
    assert [step.id for step in plan_of(helm_target(), helm_target(chart=other)).steps] == ["upgrade release vnf"]


def test_a_chart_that_a_package_lacks_goes_at_the_end_and_for_good() -> None:
    one = {**TWO, "using_helm_install_param": TWO["using_helm_install_param"][1:]}
    (step,) = plan_of(helm_target(of=flavour(()), **TWO), helm_target(of=flavour(()), **one)).steps
    assert (step.action, step.irreversible, step.last) == (UNINSTALL, True, True)
    assert list(step.args["releases"]) == ["HelmRelease/db"]
    assert [one["id"] for one in step.args["objects"]] == [
        f"HelmRelease/db/Deployment.apps/{release_name('db', INSTANCE)}-web"
    ]


def test_healed_pods_are_deleted_and_their_release_is_left() -> None:
    renewal = Renewal(members=frozenset({"pod-1"}))
    (step,) = plan_of(helm_target(), helm_target(), renewal=renewal).steps
    assert (step.id, step.irreversible) == ("delete pods", True)
    assert step.args["pods"] == ("pod-1",)
    assert [one["vdu"] for one in step.args["vdus"]] == ["web"]


def test_a_whole_heal_uninstalls_and_installs() -> None:
    renewal = Renewal(members=frozenset({"pod-0", "pod-1"}), everything=True)
    plan = plan_of(helm_target(), helm_target(), renewal=renewal)
    assert [step.id for step in plan.steps] == [
        "uninstall releases", "remove what else is left", "install release vnf",
    ]  # fmt: skip


def test_a_termination_also_looks_for_what_nobody_recorded() -> None:
    plan = plan_of(helm_target(), None, Found())
    assert [step.id for step in plan.steps] == ["uninstall releases", "remove what else is left"]
    assert plan.steps[0].args["all"] is True


def with_definition(stands: Found, release: str) -> Found:
    definition = FoundObject(
        id=f"HelmRelease/{release}/CustomResourceDefinition.apiextensions.k8s.io/pages.example.com",
        kind="CustomResourceDefinition",
        name="pages.example.com",
        api_version="apiextensions.k8s.io/v1",
    )
    return replace(stands, objects=(*stands.objects, definition))


def test_a_definition_of_a_chart_is_not_removed_before_it_is_known_that_nobody_else_uses_it() -> None:
    plan = plan_of(helm_target(), None, with_definition(releases_of(helm_target()), "vnf"))
    assert [step.id for step in plan.steps] == [
        "see that nobody else uses it", "uninstall releases", "remove what else is left",
    ]  # fmt: skip
    assert [one["name"] for one in plan.steps[0].args["objects"]] == ["pages.example.com"]


def test_nor_is_one_of_a_chart_that_a_new_package_lacks() -> None:
    one = {**TWO, "using_helm_install_param": TWO["using_helm_install_param"][1:]}
    before, after = (helm_target(of=flavour(()), **charts) for charts in (TWO, one))
    plan = plan_of(before, after, with_definition(releases_of(before), "db"))
    assert [step.id for step in plan.steps] == ["see that nobody else uses it", "uninstall releases"]


def test_a_chart_that_cannot_be_used_ends_it_before_anything_is_done() -> None:
    with pytest.raises(PackageError, match=r"no Chart\.yaml"):
        plan_of(None, helm_target(chart={"values.yaml": b""}))
