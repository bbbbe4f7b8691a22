"""A change of package that names VDUs: objects of others stay as they are, and so does what these may use. Pure."""

from __future__ import annotations

from typing import Any

from slipway.model.descriptor import Vdu
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.target import VnfTarget
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.unit.vim.helm_targets import CHART, PATH, helm_target, releases_of
from tests.unit.vim.kubernetes_targets import change, config, flavour, standing, target, together, workload

DRIVER = KubernetesVimDriver()
USES = "envFrom: [{configMapRef: {name: settings}}]"
TWO = flavour(tuple(Vdu(name=name, initial=2, maximum=5, container=True) for name in ("web", "db")))


def package(version: str, *more: str) -> VnfTarget:
    def one(name: str) -> str:
        return workload(name=name, image=f"{name}:{version}", more=USES)

    return target(together(config(value=version) + "immutable: true\n", one("web"), one("db"), *more), of=TWO)


def effects(plan: Plan) -> list[tuple[str, str]]:
    return [(effect.verb.value, effect.name) for step in plan.steps for effect in step.effects]


def changed(before: VnfTarget, after: VnfTarget, *vdus: str, found: Found | None = None) -> list[tuple[str, str]]:
    there = found or standing(before)
    chosen: Any = {"chosen_vdus": frozenset(vdus)} if vdus else {}
    return effects(DRIVER.steps(change(before, after, there, **chosen), there))


def test_objects_of_other_vdus_and_what_these_use_stay() -> None:
    before, after = package("1", config("old")), package("2")
    (_, new), *_ = changed(before, after, "web")
    assert changed(before, after, "web") == [("make", new), ("change", "web")]
    whole = [("make", new), ("change", "web"), ("change", "db"), ("remove", "settings"), ("remove", "old")]
    assert changed(before, after) == whole
    assert changed(before, after, "web", "db") == whole


def test_what_the_new_package_lacks_goes_where_no_other_vdu_differs() -> None:
    before, after = target(together(config("old"), workload())), target(workload(image="web:2"))
    assert changed(before, after, "web") == [("change", "web"), ("remove", "old")]


def test_a_vdu_that_is_another_object_now_is_not_left_without_one() -> None:
    before = target(together(workload(), workload(name="db")), of=TWO)
    after = target(together(workload(image="web:2"), workload("StatefulSet", "db")), of=TWO)
    assert changed(before, after, "web") == [("change", "web"), ("make", "db"), ("remove", "db")]


def test_releases_of_other_vdus_stay() -> None:
    given: dict[str, Any] = {
        "using_helm_install_param": [
            {"exthelmchart": False, "helmreleasename": "db", "helmchartfile_path": "Files/charts/web-1.0.0.tgz"},
            {"exthelmchart": False, "helmreleasename": "web", "helmchartfile_path": PATH},
        ],
        "vdu_mapping": {"web": {"helmreleasename": "web"}},
    }
    before = helm_target(**given)
    after = helm_target(chart={**CHART, "README.md": b"new"}, **given)
    upgrades = changed(before, after, "web", found=releases_of(before))
    assert [verb for verb, _ in upgrades] == ["change", "change"], "the other release is of no VDU"
    assert [name for _, name in changed(before, after, "other", found=releases_of(before))] == [upgrades[0][1]]
