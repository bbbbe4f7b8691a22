"""When objects are ready: built-in kinds, custom resources, and rules that a package brings."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.kube.field_path import field_path
from slipway.kube.interface import Object
from slipway.kube.readiness import BUILT_IN, Failed, Readiness, Ready, Waiting, readiness
from slipway.kube.readiness_rules import read_rules
from slipway.model.errors import PackageError

CAPI = "cluster.x-k8s.io/v1beta1"


def thing(api_version: str, kind: str, status: Object | None = None, generation: int = 1, **spec: Any) -> Object:
    metadata = {"name": "one", "namespace": "ns", "generation": generation}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}


def conditioned(*conditions: tuple[str, str], **more: Any) -> Object:
    listed = [{"type": kind, "status": status, "reason": "Because", "message": "so"} for kind, status in conditions]
    return {"conditions": listed, **more}


def deployment(wanted: int, **status: Any) -> Object:
    return thing("apps/v1", "Deployment", {"observedGeneration": 1, **status}, replicas=wanted)


def counts(updated: int, available: int, replicas: int) -> Object:
    return {"updatedReplicas": updated, "availableReplicas": available, "replicas": replicas}


READY = [
    deployment(2, **counts(2, 2, 2)),
    deployment(0),
    thing("apps/v1", "StatefulSet", {"observedGeneration": 1, "readyReplicas": 1, "availableReplicas": 1},
          replicas=1, updateStrategy={"type": "OnDelete"}),
    thing("apps/v1", "StatefulSet", {"observedGeneration": 1, "readyReplicas": 3, "availableReplicas": 3},
          replicas=3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}),
    thing("apps/v1", "DaemonSet", {"observedGeneration": 1}),
    thing("batch/v1", "Job", conditioned(("Complete", "True"))),
    thing("v1", "Pod", conditioned(("Ready", "True"), phase="Running")),
    thing("v1", "Pod", {"phase": "Succeeded"}),
    thing("v1", "PersistentVolumeClaim", {"phase": "Bound"}),
    thing("v1", "PersistentVolume", {"phase": "Available"}),
    thing("v1", "Namespace", {"phase": "Active"}),
    thing("v1", "Service", type="ClusterIP"),
    thing("v1", "Service", {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}, type="LoadBalancer"),
    thing("apiregistration.k8s.io/v1", "APIService", conditioned(("Available", "True"))),
    thing("apiextensions.k8s.io/v1", "CustomResourceDefinition",
          conditioned(("Established", "True"), ("NamesAccepted", "True"))),
    thing("autoscaling/v2", "HorizontalPodAutoscaler", conditioned(("AbleToScale", "True"))),
    thing("networking.k8s.io/v1", "Ingress"),
    thing("v1", "ConfigMap"),
    thing("rbac.authorization.k8s.io/v1", "Role"),
    thing("sea.test/v1", "Ship"),
    thing("sea.test/v1", "Ship", conditioned(("Ready", "True"), ("Available", "True"), observedGeneration=1)),
]  # fmt: skip

WAITING = [
    (thing("apps/v1", "Deployment", replicas=1), "its controller has seen generation 0 of 1"),
    (deployment(2, **counts(2, 1, 2)), "status.availableReplicas is 1, must be at least 2 (spec.replicas)"),
    (deployment(2, **counts(2, 2, 3)), "status.replicas is 3, must be 2"),
    (deployment(2, **counts(1, 2, 3)), "status.updatedReplicas is 1"),
    (thing("apps/v1", "Deployment", {"observedGeneration": 1, **counts(1, 1, 1)}, 2, replicas=1), "generation 1 of 2"),
    (thing("apps/v1", "StatefulSet", {"observedGeneration": 1, "readyReplicas": 1}, replicas=2), "status.readyRep"),
    (thing("apps/v1", "DaemonSet", {"observedGeneration": 1, "desiredNumberScheduled": 2}), "numberAvailable is not"),
    (thing("batch/v1", "Job"), "there is no condition Complete yet"),
    (thing("v1", "Pod", conditioned(("Ready", "False"), phase="Running")), "Ready is False (Because: so)"),
    (thing("v1", "Pod", {"phase": "Pending"}), "status.phase is Pending, must be one of Running, Succeeded"),
    (thing("v1", "PersistentVolumeClaim", {"phase": "Pending"}), "status.phase is Pending, must be Bound"),
    (thing("v1", "Service", {"loadBalancer": {}}, type="LoadBalancer"), "status.loadBalancer.ingress is missing"),
    (thing("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "there is no condition Established yet"),
    (thing("sea.test/v1", "Ship", conditioned(("Ready", "False"))), "Ready is False (Because: so)"),
    (thing("sea.test/v1", "Ship", conditioned(("Ready", "True"), ("Available", "Unknown"))), "Available is Unknown"),
    (thing("sea.test/v1", "Ship", conditioned(("Ready", "True"), observedGeneration=3), 4), "generation 3 of 4"),
    (thing(CAPI, "Cluster", {"v1beta2": conditioned(("Available", "False"))}), "Available is False"),
    (thing(CAPI, "Cluster", {**conditioned(("Ready", "False")), "v1beta2": {}}), "Ready is False"),
]

FAILED = [
    (thing("batch/v1", "Job", conditioned(("Failed", "True"))), "Failed is True (Because: so)"),
    (thing("v1", "Pod", {"phase": "Failed"}), "status.phase is Failed"),
    (thing("v1", "PersistentVolumeClaim", {"phase": "Lost"}), "status.phase is Lost"),
    (thing("sea.test/v1", "Ship", conditioned(("Ready", "False"), ("Stalled", "True"))), "Stalled is True"),
    (thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", conditioned(("NamesAccepted", "False"))), "NamesA"),
]


def reason(state: Readiness) -> str:
    return "" if isinstance(state, Ready) else state.reason


@pytest.mark.parametrize("found", READY, ids=lambda found: f"{found['kind']}")
def test_what_is_ready(found: Object) -> None:
    assert readiness(found) == Ready()


@pytest.mark.parametrize(("found", "why"), WAITING, ids=lambda value: value["kind"] if isinstance(value, dict) else "")
def test_what_is_waited_for_says_why(found: Object, why: str) -> None:
    state = readiness(found)
    assert isinstance(state, Waiting), state
    assert why in state.reason


@pytest.mark.parametrize(("found", "why"), FAILED, ids=lambda value: value["kind"] if isinstance(value, dict) else "")
def test_what_will_never_be_ready_is_not_waited_for(found: Object, why: str) -> None:
    state = readiness(found)
    assert isinstance(state, Failed), state
    assert why in state.reason


def test_a_deployment_past_its_deadline_has_failed() -> None:
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late"}
    assert readiness(deployment(1, conditions=[late])) == Failed(
        "Progressing is False (ProgressDeadlineExceeded: too late)"
    )


def test_what_is_being_deleted_is_not_ready() -> None:
    found = thing("v1", "ConfigMap")
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert readiness(found) == Waiting("it is being deleted since 2026-01-01T00:00:00Z")


def test_a_condition_of_a_former_generation_does_not_count() -> None:
    found = thing("sea.test/v1", "Ship", conditioned(("Ready", "True")), generation=2)
    found["status"]["conditions"][0]["observedGeneration"] = 1
    assert isinstance(readiness(found), Waiting)


MACHINES: list[Any] = [
    {
        "apiVersion": CAPI,
        "kind": "MachineDeployment",
        "ready": [
            {"field": {"path": "status.updatedReplicas", "equals_field": "spec.replicas"}},
            {"field": {"path": "{.status.readyReplicas}", "at_least": 2}},
            {"condition": {"type": "Available"}},
        ],
        "failed": [{"field": {"path": "status.phase", "equals": "Failed"}}],
    },
    {"apiVersion": "cluster.x-k8s.io", "kind": "MachineDeployment", "name": "one", "ready": [
        {"field": {"path": "$.metadata.annotations['sea.test/state']", "one_of": ["calm", "fair"]}}]},
]  # fmt: skip


def test_a_rule_of_the_package_takes_the_place_of_conditions() -> None:
    rules = read_rules(MACHINES[:1], "readiness.yaml")
    status = {"updatedReplicas": 3, "readyReplicas": 2, **conditioned(("Available", "True"), ("Ready", "False"))}
    found = thing(CAPI, "MachineDeployment", status, replicas=3)
    assert readiness(found, rules) == Ready()
    assert isinstance(readiness(found), Waiting)
    found["status"]["updatedReplicas"] = 2
    assert "status.updatedReplicas is 2, must be 3 (spec.replicas)" in reason(readiness(found, rules))
    found["status"]["phase"] = "Failed"
    assert readiness(found, rules) == Failed("status.phase is Failed")


def test_a_rule_for_a_name_comes_before_one_for_the_kind_and_any_version_fits_a_group() -> None:
    rules = read_rules(MACHINES, "readiness.yaml")
    found = thing("cluster.x-k8s.io/v1beta2", "MachineDeployment")
    assert "sea.test/state" in reason(readiness(found, rules))
    found["metadata"]["annotations"] = {"sea.test/state": "calm"}
    assert readiness(found, rules) == Ready()
    assert "updatedReplicas" not in reason(readiness({**found, "apiVersion": "other.test/v1"}, rules))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({}, "it is not a list"),
        ([3], "rule 1: it is not a mapping"),
        ([{"kind": "Ship"}], "rule 1: apiVersion must be a string"),
        ([{"apiVersion": "a/v1", "kind": "Ship"}], "rule 1 (Ship): it has neither ready nor failed"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "when": []}], "rule 1: 'when' is not known"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "ready": [{}]}], "rule 1 (Ship), ready[0]: it must have either"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "ready": [{"condition": {"type": "Ready", "status": "yes"}}]}],
         "rule 1 (Ship), ready[0], condition: status must be True, False or Unknown"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "ready": [{"field": {"path": "a"}}]}], "it must have one of equals"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "ready": [{"field": {"path": "a[*]", "exists": True}}]}],
         "ready[0], field: path can't be read from character 2 on ('[*]')"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "ready": [{"field": {"path": "a", "at_least": "3"}}]}], "a number"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "ready": [{"field": {"path": "a", "equals": {}}}]}],
          "must be a string"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "ready": [{"field": {"path": "a" * 300, "exists": True}}]}],
         "path must be a string of 1 to 253 characters"),
        ([{"apiVersion": "a/v1", "kind": "Ship", "ready": [{}] * 21}], "there are 21 entries; at most 20 are read"),
        ([{}] * 101, "there are 101 entries"),
    ],
)  # fmt: skip
def test_a_rule_that_can_not_be_used_is_named(rules: Any, words: str) -> None:
    with pytest.raises(PackageError) as caught:
        read_rules(rules, "Files/readiness.yaml")
    assert words in caught.value.detail
    assert caught.value.detail.startswith("Files/readiness.yaml: ")
    assert "Cure: " in caught.value.detail


def test_true_in_yaml_without_quotes_is_the_status_true() -> None:
    (rule,) = read_rules(
        [{"apiVersion": "v1", "kind": "Pod", "ready": [{"condition": {"type": "A", "status": True}}]}], "f"
    )
    assert rule.group == ""
    assert readiness(thing("v1", "Pod", conditioned(("A", "True"))), [rule]) == Ready()


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.b", 1), (".a.b", 1), ("$.a.b", 1), ("{.a.b}", 1), ("a['b']", 1), ("l[1].c", 2), ("l[7]", None),
     ("a.b.c", None), ("a.x-y", None)],
)  # fmt: skip
def test_paths(path: str, value: Any) -> None:
    assert field_path(path).of({"a": {"b": 1}, "l": [0, {"c": 2}]}) == value


@pytest.mark.parametrize("path", ["", ".", "a..b", "a b", "a[", "a[x]", "a[-1]", "[0]b", "a.", "a." * 40 + "b", "$"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match=r"must have|can't be read"):
        field_path(path)


KEYS = st.sampled_from(
    ["status", "conditions", "type", "phase", "replicas", "spec", "v1beta2", "observedGeneration", "apiVersion", "kind"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=15,
)


@given(kind=st.sampled_from(BUILT_IN), spec=JSON, status=JSON)
def test_an_object_of_any_shape_has_a_readiness(kind: Any, spec: Any, status: Any) -> None:
    api_version = f"{kind.group}/v1" if kind.group else "v1"
    found = {"apiVersion": api_version, "kind": kind.kind, "metadata": {"name": "x"}, "spec": spec, "status": status}
    assert isinstance(readiness(found), Ready | Waiting | Failed)
    assert isinstance(readiness({**found, "kind": "Other"}), Ready | Waiting | Failed)


@given(JSON)
def test_rules_of_any_shape_are_read_or_refused(document: Any) -> None:
    with contextlib.suppress(PackageError):
        read_rules(document, "f")
