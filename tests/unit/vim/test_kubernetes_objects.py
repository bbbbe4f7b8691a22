"""Which objects a CNF is, in which order they are applied, and what changes and goes. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.descriptor import Vdu
from slipway.model.errors import BadRequest, PackageError, RequestError, Unprocessable
from slipway.model.machine import Found
from slipway.model.plan import Plan, Verb
from slipway.model.target import Renewal, VnfTarget
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.kubernetes.object_plan import rendered
from slipway.vim.kubernetes.wanted import wanted_objects
from tests.unit.vim.kubernetes_targets import (
    INSTANCE,
    PATH,
    change,
    config,
    flavour,
    standing,
    target,
    together,
    workload,
)

DRIVER = KubernetesVimDriver()
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pages.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Page, plural: pages}}
"""
USES = "envFrom: [{configMapRef: {name: settings}}]"


def object_of(kind: str, name: str = "a", api_version: str = "v1") -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}}}\n"


def ids(plan: Plan) -> list[str]:
    return [step.id for step in plan.steps]


def test_objects_are_applied_in_an_order_that_works_and_named_in_the_plan() -> None:
    hook = object_of("ValidatingWebhookConfiguration", api_version="admissionregistration.k8s.io/v1")
    role = object_of("Role", api_version="rbac.authorization.k8s.io/v1")
    text = together(
        object_of("Page", api_version="example.com/v1"), hook, workload(), object_of("Service"), config(), role,
        object_of("ServiceAccount"), CRD, object_of("Namespace"),
    )  # fmt: skip
    plan = DRIVER.steps(change(None, target(text)), Found()).checked()
    assert ids(plan) == [
        "apply namespaces", "apply custom resource definitions", "apply accounts and roles",
        "apply configuration and storage", "apply services", "apply workloads", "apply webhook configurations",
        "apply custom resources", "wait until ready",
    ]  # fmt: skip
    assert [step.after for step in plan.steps[1:]] == [(step.id,) for step in plan.steps[:-1]]
    made = [(effect.verb, effect.kind, effect.name) for step in plan.steps for effect in step.effects]
    assert (Verb.MAKE, "Deployment", "web") in made
    assert len(made) == 9


@pytest.mark.parametrize("kind", ["PriorityClass scheduling.k8s.io/v1", "RuntimeClass node.k8s.io/v1"])
def test_what_a_pod_is_refused_without_is_there_before_it(kind: str) -> None:
    name, api_version = kind.split()
    text = together(object_of("Pod", "web"), object_of(name, "fast", api_version))
    of = replace(flavour(), aspects={})
    plan = DRIVER.steps(change(None, target(text, of=of)), Found())
    assert ids(plan) == ["apply accounts and roles", "apply workloads", "wait until ready"]


def test_two_hundred_objects_are_a_small_plan_that_holds_no_content() -> None:
    text = together(workload(), *(config(f"c{number}", "s3cret", "Secret") for number in range(200)))
    plan = DRIVER.steps(change(None, target(text)), Found())
    assert len(plan.steps) == 3
    assert "s3cret" not in str(plan)


def test_the_vnfds_number_counts_and_not_the_manifests() -> None:
    text = workload().replace("spec:\n", "spec:\n  replicas: 9\n", 1)
    (one,) = wanted_objects(target(text, count=4))
    assert one.plan.replicas == 4
    applied = rendered({"metadata": {"name": "web"}, "spec": {"replicas": 9, "paused": True}}, one.plan, INSTANCE)
    assert applied["spec"] == {"replicas": 4, "paused": True}


def test_another_level_changes_the_workload_alone_and_undo_knows_the_number_before() -> None:
    text = together(config(), workload())
    plan = DRIVER.steps(change(target(text, 2), target(text, 3)), standing(target(text, 2)))
    assert ids(plan) == ["apply workloads", "wait until ready"]
    args = plan.steps[0].args
    assert [args[key][0]["objects"][0]["replicas"] for key in ("files", "before")] == [3, 2]


def test_when_all_is_as_wanted_there_is_no_step() -> None:
    now = target(together(config(), workload()))
    assert DRIVER.steps(change(now, now), standing(now)) == Plan()


def test_pods_that_came_by_themselves_are_noted() -> None:
    now = target(workload())
    plan = DRIVER.steps(change(now, now, inventory=standing(now)), standing(now, pods=3))
    assert ids(plan) == ["wait until ready"]


def test_what_uses_a_changed_configuration_starts_anew_and_others_do_not() -> None:
    def package(value: str) -> VnfTarget:
        return target(together(config(value=value), workload(more=USES), workload("DaemonSet", "agent")))

    plan = DRIVER.steps(change(package("1"), package("2")), standing(package("1")))
    changed = [effect.name for step in plan.steps for effect in step.effects]
    assert changed == ["settings", "web"]


def test_what_a_new_package_lacks_goes_last_and_can_be_made_again() -> None:
    before, after = target(together(config(), workload())), target(workload())
    plan = DRIVER.steps(change(before, after), standing(before))
    assert ids(plan) == ["remove configuration and storage"]
    assert not plan.steps[0].irreversible
    assert plan.steps[0].args["before"]


def test_what_is_made_again_by_a_rollback_is_ready_by_the_rules_of_its_package() -> None:
    rules = (
        "apiVersion: slipway.io/v1\nkind: ReadinessRules\nrules:\n"
        "- {apiVersion: example.com/v1, kind: Page, ready: [{field: {path: status.url, exists: true}}]}\n"
    )
    page = object_of("Page", api_version="example.com/v1")
    before, after = target(together(page, rules, workload())), target(workload())
    (step,) = DRIVER.steps(change(before, after), standing(before)).steps
    assert step.id == "remove custom resources"
    assert [one["path"] for one in step.args["rules"]] == [PATH]


def test_data_that_a_new_package_lacks_goes_at_the_very_end_for_good() -> None:
    before, after = target(together(object_of("PersistentVolumeClaim"), workload())), target(workload(image="web:2"))
    step = DRIVER.steps(change(before, after), standing(before)).steps[-1]
    assert (step.id, step.irreversible, step.last) == ("remove configuration and storage", True, True)


@pytest.mark.parametrize("shared", [CRD, object_of("Namespace")])
def test_what_others_may_use_is_looked_at_before_a_new_package_takes_it_away(shared: str) -> None:
    before, after = target(together(shared, workload())), target(workload(image="web:2"))
    plan = DRIVER.steps(change(before, after), standing(before)).checked()
    assert ids(plan)[:2] == ["see that nobody else uses it", "apply workloads"]
    assert plan.steps[1].after == (plan.steps[0].id,)


def test_everything_goes_in_the_reverse_order() -> None:
    now = target(together(CRD, config(), workload(), object_of("Page", api_version="example.com/v1")))
    plan = DRIVER.steps(change(now, None, grace_seconds=10), standing(now))
    assert ids(plan) == [
        "see that nobody else uses it",
        "remove custom resources", "remove workloads", "remove configuration and storage",
        "remove custom resource definitions", "remove what else is left",
    ]  # fmt: skip
    assert [step.irreversible for step in plan.steps] == [False, True, True, True, True, True]


def test_chosen_pods_are_deleted_and_the_whole_is_made_again_when_asked_so() -> None:
    now = target(workload())
    healed = change(now, now, renewal=Renewal(members=frozenset({"pod-1"})))
    assert ids(DRIVER.steps(healed, standing(now))) == ["delete pods", "wait until ready"]
    whole = change(now, now, renewal=Renewal(members=frozenset({"pod-0", "pod-1"}), everything=True))
    assert ids(DRIVER.steps(whole, standing(now))) == [
        "remove workloads", "remove what else is left", "apply workloads", "wait until ready",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("vdu", "parameters"),
    [
        (Vdu(name="VDU1", title="web", initial=2), {}),
        (Vdu(name="VDU1", title="other", initial=2), {"vdu_mapping": {"VDU1": {"kind": "Deployment", "name": "web"}}}),
    ],
)
def test_a_vdu_of_machines_is_the_object_that_it_names(vdu: Vdu, parameters: dict[str, Any]) -> None:
    """As packages written for other managers have it, with the manifests in the request."""
    files: dict[str, Any] = {"lcm-kubernetes-def-files": ["Files/other.yaml"]}
    now = target(workload(), of=flavour((vdu,)), **files, **parameters)
    DRIVER.refuse(change(None, now))
    assert [one.plan.vdu for one in wanted_objects(now)] == ["VDU1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (together(config(), config()), "ConfigMap settings is there twice; the other one is in"),
        (CRD.replace("{name:", "{namespace: a, name:"), "objects of its kind have none"),
        (together(CRD, "apiVersion: example.com/v1\nkind: Page\nmetadata: {name: a, namespace: b}\n"), "have none"),
        (config(), "VDU web: no workload of the manifests is named 'web'"),
        (together(workload(), workload("StatefulSet")), "Deployment web and StatefulSet web are named so"),
        (workload("DaemonSet"), "DaemonSet web, which has no number of replicas"),
    ],
)
def test_what_can_not_be_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises((PackageError, Unprocessable)) as raised:
        DRIVER.steps(change(None, target(text)), Found())
    assert said in raised.value.detail


def test_a_mapping_that_fits_several_objects_is_refused_by_their_names() -> None:
    """The first was scaled and had its pods counted, and the others stayed as they were."""
    placed = [workload().replace("{name: web}", f"{{namespace: {place}, name: web}}") for place in ("a", "b")]
    mapping: dict[str, Any] = {"vdu_mapping": {"web": {"kind": "Deployment", "name": "web"}}}
    with pytest.raises(Unprocessable, match=r"vdu_mapping\.web: .*Deployment\.apps/a/web, Deployment\.apps/b/web"):
        DRIVER.steps(change(None, target(together(*placed), **mapping)), Found())
    DRIVER.steps(change(None, target(together(placed[0], config()), **mapping)), Found())
    standing_ones = Found(objects=standing(target(placed[0])).objects)
    DRIVER.steps(change(target(together(*placed), **mapping), None, standing_ones), standing_ones)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"lcm-kubernetes-def-files": "a.yaml"}, "it must be a list of paths"),
        ({"lcm-kubernetes-def-files": []}, "it must be a list of paths"),
        ({"lcm-kubernetes-def-files": ["https://example.com/a.yaml"]}, "put the file into the package"),
        ({"lcm-kubernetes-def-files": [PATH, f"./{PATH}"]}, "name it once"),
        ({"namespace": "No"}, "additionalParams.namespace"),
        ({"vdu_mapping": {"db": {"kind": "Pod", "name": "a"}}}, "has no such VDU; it has: web"),
        ({"vdu_mapping": {"web": {"kind": "Pod"}}}, "an object with kind and name"),
        ({"vdu_mapping": {"web": {"kind": "Pod", "name": "a", "helmreleasename": "b"}}}, "nothing is done about it"),
    ],
)  # fmt: skip
def test_parameters_are_checked_at_the_request(parameters: dict[str, Any], said: str) -> None:
    now = target(workload())
    with pytest.raises(RequestError) as raised:
        DRIVER.refuse(change(None, _with(now, parameters)))
    assert said in raised.value.detail


def test_objects_do_not_move_to_another_namespace() -> None:
    before, after = target(workload()), target(workload(), namespace="other")
    with pytest.raises(Unprocessable, match="can't move"):
        DRIVER.refuse(change(before, after))


def test_what_lasts_is_not_taken_from_a_request_for_the_moment() -> None:
    now = target(workload())
    with pytest.raises(Unprocessable, match="vdu_mapping: it is read at the instantiation"):
        DRIVER.refuse(change(now, now, additional_params={"vdu_mapping": {}}))


def test_links_are_refused_by_name() -> None:
    now = target(workload())
    with pytest.raises(Unprocessable, match="extVirtualLinks"):
        DRIVER.refuse(change(now, now, reconnects=True))


def test_dependencies_between_vdus_are_refused_by_name() -> None:
    vdus = (Vdu(name="web", container=True, depends_on=("store",)), Vdu(name="store", container=True))
    with pytest.raises(Unprocessable, match="VDU web: the VNFD wants store to be there before it"):
        DRIVER.refuse(change(None, target(workload(), of=flavour(vdus))))


def test_a_file_that_the_package_lacks_is_named() -> None:
    now = _with(target(workload()), {"lcm-kubernetes-def-files": ["Files/none.yaml"]}, frozenset({PATH}))
    with pytest.raises(Unprocessable, match=r"no file 'Files/none\.yaml'"):
        DRIVER.refuse(change(None, now))


def test_a_bad_parameter_is_a_bad_request() -> None:
    with pytest.raises(BadRequest):
        DRIVER.refuse(change(None, _with(target(workload()), {"namespace": 7})))


def _with(now: VnfTarget, parameters: dict[str, Any], names: frozenset[str] = frozenset()) -> VnfTarget:
    from dataclasses import replace

    return replace(now, parameters=parameters, file_names=names)


JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: prepare}\nspec: {ttlSecondsAfterFinished: 0, template: {}}\n"


def test_a_job_that_has_ended_and_gone_by_itself_is_not_run_again() -> None:
    before, after = (target(together(workload(), JOB), count=count) for count in (2, 3))
    record = standing(before)
    record = replace(record, objects=tuple(replace(one, expires=one.kind == "Job") for one in record.objects))
    there = replace(record, objects=tuple(one for one in record.objects if one.kind != "Job"))
    plan = DRIVER.steps(change(before, after, record), there)
    assert [effect.kind for step in plan.steps for effect in step.effects] == ["Deployment"]
    anew = target(together(workload(), JOB.replace("template: {}", "template: {spec: {}}")))
    plan = DRIVER.steps(change(before, anew, record), there)
    (effect,) = [effect for step in plan.steps for effect in step.effects]
    assert (effect.kind, effect.name) == ("Job", "prepare")
    whole = Renewal(members=frozenset(pod.id for pod in record.machines), everything=True)
    plan = DRIVER.steps(change(before, before, record, renewal=whole), there)
    assert ("Job", Verb.MAKE) in [(effect.kind, effect.verb) for step in plan.steps for effect in step.effects]


def test_a_job_that_goes_by_itself_is_waited_for_as_one() -> None:
    plan = DRIVER.steps(change(None, target(together(workload(), JOB))), Found())
    waited = {one["kind"]: one.get("expires", False) for one in plan.steps[-1].args["objects"]}
    assert waited == {"Deployment": False, "Job": True}


def test_what_somebody_has_removed_and_a_new_package_lacks_leaves_the_record() -> None:
    """Else it would be told for ever that it is gone."""
    before, after = target(together(workload(), config("old"))), target(together(workload(image="web:2")))
    record = standing(before)
    there = replace(record, objects=tuple(one for one in record.objects if one.kind != "ConfigMap"))
    steps = DRIVER.steps(change(before, after, record), there).checked().steps
    assert [step.id for step in steps][-1] == "remove configuration and storage"
    assert [one["id"] for one in steps[-1].args["objects"]] == ["ConfigMap/old"]
    whole = Renewal(members=frozenset(pod.id for pod in record.machines), everything=True)
    DRIVER.steps(change(before, before, record, renewal=whole), there).checked()
