"""Readiness rules that a package with charts brings: in files that its VNFD names beside them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from slipway.model.errors import PackageError, Unprocessable
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.target import Renewal, VnfTarget
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.unit.vim.helm_targets import PATH, flavour, helm_target, releases_of
from tests.unit.vim.kubernetes_targets import VNFD, change, config

DRIVER = KubernetesVimDriver()
RULES = "Files/readiness.yaml"
TEXT = b"""
apiVersion: slipway.io/v1
kind: ReadinessRules
rules:
- {apiVersion: example.com, kind: Database, ready: [{field: {path: status.phase, equals: Running}}]}
"""


def with_rules(count: int = 2, text: bytes = TEXT, **given: Any) -> VnfTarget:
    return helm_target(count, of=flavour(manifests=(RULES,)), beside={RULES: text}, **given)


def plan_of(before: VnfTarget | None, after: VnfTarget, **more: Any) -> Plan:
    stands = releases_of(before) if before else Found()
    return DRIVER.steps(change(before, after, stands, **more), stands).checked()


def paths(rules: Any) -> list[str]:
    return [one["path"] for one in rules]


def test_a_release_is_ready_by_the_rules_of_its_package_and_one_that_comes_back_by_those_of_its_own() -> None:
    (install,) = plan_of(None, with_rules()).steps
    assert paths(install.args["rules"]) == [RULES]
    assert "former_rules" not in install.args
    before = dataclasses.replace(with_rules(), vnfd_id="former")
    (upgrade,) = plan_of(before, with_rules(3)).steps
    assert [one["vnfd_id"] for one in upgrade.args["rules"]] == [VNFD]
    assert [one["vnfd_id"] for one in upgrade.args["former_rules"]] == ["former"]


def test_pods_that_come_in_the_place_of_others_are_waited_for_by_them_too() -> None:
    before = with_rules()
    (healed,) = plan_of(before, before, renewal=Renewal(members=frozenset({"pod-1"}))).steps
    assert (healed.id, paths(healed.args["rules"])) == ("delete pods", [RULES])
    stands = releases_of(before)
    fewer = Found(objects=stands.objects, machines=stands.machines[:1])
    (waited,) = DRIVER.steps(change(before, before, stands), fewer).steps
    assert (waited.id, paths(waited.args["rules"])) == ("wait until ready", [RULES])


def test_the_file_is_read_before_the_plan_is_made() -> None:
    assert set(DRIVER.package_files(with_rules())) == {RULES, f"{PATH}/*"}


def test_a_chart_of_a_repository_has_rules_in_the_package() -> None:
    external = {
        "exthelmchart": True, "helmreleasename": "web", "exthelmrepo_url": "https://charts.example.com",
        "helmchartname": "web", "helmchartversion": "1.0.0",
    }  # fmt: skip
    mapping = {"web": {"helmreleasename": "web"}}
    asked = helm_target(
        of=flavour((), (RULES,)), beside={RULES: TEXT}, using_helm_install_param=[external], vdu_mapping=mapping
    )
    (step,) = plan_of(None, asked).steps
    assert paths(step.args["rules"]) == [RULES]


def test_what_a_rule_says_wrong_is_told_when_the_operation_is_planned() -> None:
    with pytest.raises(PackageError, match="redy") as raised:
        plan_of(None, with_rules(text=TEXT.replace(b"ready:", b"redy:")))
    assert raised.value.file == RULES


def test_objects_beside_charts_are_refused_unless_the_request_says_that_charts_are_meant() -> None:
    for other in (config().encode(), b"replicas: 1\n"):  # a manifest, and values of a chart that are no manifest
        both = TEXT + b"---\n" + other
        with pytest.raises(Unprocessable, match=rf"names charts \({PATH}\) and manifests \({RULES}\)"):
            plan_of(None, with_rules(text=both))
        (step,) = plan_of(None, with_rules(text=both, helm_chart_path=PATH)).steps
        assert paths(step.args["rules"]) == [RULES]
    (step,) = plan_of(None, with_rules(text=b"replicas: 1\n", helm_chart_path=PATH)).steps
    assert "rules" not in step.args
