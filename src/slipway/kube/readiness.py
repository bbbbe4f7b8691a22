"""Whether an object is ready: pure, and by rules that are data (`readiness_rules.py` reads those of a package).

    match readiness(found, rules):
        case Ready(): ...
        case Waiting(reason): ...      # soon, perhaps
        case Failed(reason): ...       # waiting longer is of no use

A PersistentVolumeClaim may wait for the first pod that uses it: wait for all objects at once, not one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from slipway.kube.errors import short
from slipway.kube.field_path import FieldPath, field_path
from slipway.kube.interface import Object

READY_CONDITIONS = ("Ready", "Available")
# Cluster API's objects of v1beta1 have their newer conditions in a place of their own.
CONDITION_PLACES = (field_path("status.conditions"), field_path("status.v1beta2.conditions"))
OBSERVED = field_path("status.observedGeneration")


@dataclass(frozen=True)
class Ready:
    pass


@dataclass(frozen=True)
class Waiting:
    reason: str


@dataclass(frozen=True)
class Failed:
    reason: str


Readiness = Ready | Waiting | Failed
Comparison = Literal["equals", "not_equals", "exists", "at_least", "one_of"]


@dataclass(frozen=True)
class Field:
    """A value at a path, compared with `value`, or with what is at another path."""

    path: FieldPath
    comparison: Comparison
    value: Any = None
    other: FieldPath | None = None
    when: tuple[Field, ...] = ()  # if one of these does not hold, the check does not count

    def holds(self, found: Object) -> bool:
        value, wanted = self.path.of(found), self.other.of(found) if self.other else self.value
        match self.comparison:
            case "equals":
                return _same(value, wanted)
            case "not_equals":
                return not _same(value, wanted)
            case "exists":
                return (value not in (None, "", [], {})) is self.value
            case "at_least":
                return _number(value) >= _number(wanted)
            case "one_of":
                return any(_same(value, one) for one in wanted)

    def state(self, found: Object) -> str:
        value = self.path.of(found)
        return short(f"{self.path} is {'not there' if value is None else value}")

    def describe(self, found: Object) -> str:
        """Of a check that does not hold."""
        if self.comparison == "exists":
            return f"{self.path} is {'missing' if self.value else 'there'}"
        wanted = f"{self.other.of(found)} ({self.other})" if self.other else self.value
        relation = {"at_least": "at least ", "not_equals": "not ", "one_of": "one of "}.get(self.comparison, "")
        values = ", ".join(map(str, wanted)) if isinstance(wanted, tuple) else wanted
        return f"{self.state(found)}, must be {relation}{short(str(values))}"


@dataclass(frozen=True)
class Condition:
    """One of the conditions in the status, with this status."""

    type: str
    status: str = "True"
    reason: str | None = None
    when: tuple[Field, ...] = ()

    def holds(self, found: Object) -> bool:
        there = conditions(found).get(self.type, {})
        fits = there.get("status") == self.status and not _is_stale(found, there)
        return fits and self.reason in (None, there.get("reason"))

    def state(self, found: Object) -> str:
        return describe_condition(self.type, conditions(found).get(self.type, {}))

    describe = state


Check = Field | Condition


@dataclass(frozen=True)
class Rule:
    """For a kind, or the one object with that name: ready when all of `ready` hold, failed when one of `failed` does.

    `version` "" is any; `observed`: its controller says which generation it has seen, and must have seen this one.
    """

    group: str
    kind: str
    ready: tuple[Check, ...] = ()
    failed: tuple[Check, ...] = ()
    version: str = ""
    name: str | None = None
    observed: bool = False

    def is_about(self, found: Object) -> bool:
        group, _, version = str(found.get("apiVersion", "")).rpartition("/")
        is_kind = (group, found.get("kind")) == (self.group, self.kind) and self.version in ("", version)
        return is_kind and self.name in (None, (found.get("metadata") or {}).get("name"))


def readiness(found: Object, rules: Sequence[Rule] = ()) -> Readiness:
    """By the first rule that is about this object (one with its name before others), the table of built-in kinds, or
    its conditions. What says nothing of itself is ready when it is there."""
    metadata = found.get("metadata") or {}
    if since := metadata.get("deletionTimestamp"):
        return Waiting(f"it is being deleted since {short(str(since))}")
    rule = _rule_for(found, rules)
    if rule is None:
        return _by_observation(found, must=False) or _by_conditions(found)
    for check in _counting(rule.failed, found):
        if check.holds(found):
            return Failed(check.state(found))
    if waiting := _by_observation(found, must=rule.observed):
        return waiting
    missing = [check.describe(found) for check in _counting(rule.ready, found) if not check.holds(found)]
    return Waiting("; ".join(missing[:5])) if missing else Ready()


def conditions(found: Object) -> dict[str, Object]:
    """By type. The newer of two of the same type wins."""
    listed: dict[str, Object] = {}
    for place in CONDITION_PLACES:
        listing = place.of(found)
        for one in listing if isinstance(listing, list) else []:
            if isinstance(one, dict) and isinstance(one.get("type"), str):
                listed[one["type"]] = one
    return listed


def describe_condition(kind: str, found: Object) -> str:
    if not found:
        return f"there is no condition {kind} yet"
    why = ": ".join(str(part) for part in (found.get("reason"), found.get("message")) if part)
    return short(f"{kind} is {found.get('status')}" + (f" ({short(why)})" if why else ""))


def _rule_for(found: Object, rules: Sequence[Rule]) -> Rule | None:
    fitting = [rule for rule in rules if rule.is_about(found)]
    fitting.sort(key=lambda rule: rule.name is None)
    return next(iter(fitting), None) or next((rule for rule in BUILT_IN if rule.is_about(found)), None)


def _by_observation(found: Object, *, must: bool) -> Waiting | None:
    generation = (found.get("metadata") or {}).get("generation")
    observed = OBSERVED.of(found)
    if isinstance(generation, int) and (must or observed is not None) and _number(observed) < generation:
        return Waiting(f"its controller has seen generation {_number(observed)} of {generation}")
    return None


def _by_conditions(found: Object) -> Readiness:
    """As custom resources do it, mostly: Ready or Available; Stalled when its controller has given up."""
    there = conditions(found)
    if there.get("Stalled", {}).get("status") == "True":
        return Failed(describe_condition("Stalled", there["Stalled"]))
    for kind in READY_CONDITIONS:
        if kind not in there:
            continue
        if _is_stale(found, there[kind]):
            return Waiting(f"{kind} is still that of a former generation")
        if there[kind].get("status") != "True":
            return Waiting(describe_condition(kind, there[kind]))
    return Ready()


def _is_stale(found: Object, condition: Object) -> bool:
    generation, observed = (found.get("metadata") or {}).get("generation"), condition.get("observedGeneration")
    return isinstance(generation, int) and isinstance(observed, int) and observed < generation


def _counting(checks: Iterable[Check], found: Object) -> list[Check]:
    return [check for check in checks if all(one.holds(found) for one in check.when)]


def _same(value: Any, wanted: Any) -> bool:
    """A count of nothing is left out by Kubernetes. True is not 1, as it is in Python."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return (value or False) is (wanted or False)
    if isinstance(wanted, int | float) or isinstance(value, int | float):
        return (
            isinstance(value, int | float | None)
            and isinstance(wanted, int | float | None)
            and ((value or 0) == (wanted or 0))
        )
    return bool(value == wanted)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _field(
    path: str, comparison: Comparison, value: Any = None, *, other: str = "", when: tuple[Field, ...] = ()
) -> Field:
    return Field(field_path(path), comparison, value, field_path(other) if other else None, when)


def _count(path: str, other: str = "spec.replicas", when: tuple[Field, ...] = ()) -> Field:
    return _field(path, "at_least", other=other, when=when)


_ROLLS = _field("spec.updateStrategy.type", "not_equals", "OnDelete")
_NO_PARTITION = _field("spec.updateStrategy.rollingUpdate.partition", "equals", 0)
_RUNS = _field("status.phase", "equals", "Running")
_LOAD_BALANCER = _field("spec.type", "equals", "LoadBalancer")

BUILT_IN: tuple[Rule, ...] = (
    Rule(
        "apps",
        "Deployment",
        ready=(
            _count("status.updatedReplicas"),
            _count("status.availableReplicas"),
            _field("status.replicas", "equals", other="spec.replicas"),  # and none of the former version
        ),
        failed=(Condition("Progressing", "False", "ProgressDeadlineExceeded"),),
        observed=True,
    ),
    Rule(
        "apps",
        "StatefulSet",
        ready=(
            _count("status.readyReplicas"),
            _count("status.availableReplicas"),
            _count("status.updatedReplicas", when=(_ROLLS, _NO_PARTITION)),
        ),
        observed=True,
    ),
    Rule(
        "apps",
        "DaemonSet",
        ready=(
            _count("status.updatedNumberScheduled", "status.desiredNumberScheduled", when=(_ROLLS,)),
            _count("status.numberAvailable", "status.desiredNumberScheduled"),
        ),
        observed=True,
    ),
    Rule("apps", "ReplicaSet", ready=(_count("status.availableReplicas"),), observed=True),
    Rule("", "ReplicationController", ready=(_count("status.availableReplicas"),), observed=True),
    Rule("batch", "Job", ready=(Condition("Complete"),), failed=(Condition("Failed"),)),
    Rule(
        "",
        "Pod",
        ready=(
            _field("status.phase", "one_of", ("Running", "Succeeded")),
            Condition("Ready", when=(_RUNS,)),
        ),
        failed=(_field("status.phase", "equals", "Failed"),),
    ),
    Rule(
        "",
        "PersistentVolumeClaim",
        ready=(_field("status.phase", "equals", "Bound"),),
        failed=(_field("status.phase", "equals", "Lost"),),
    ),
    Rule(
        "",
        "PersistentVolume",
        ready=(_field("status.phase", "one_of", ("Available", "Bound")),),
        failed=(_field("status.phase", "equals", "Failed"),),
    ),
    Rule("", "Namespace", ready=(_field("status.phase", "equals", "Active"),)),
    Rule("", "Node", ready=(Condition("Ready"),)),
    Rule(
        "",
        "Service",
        ready=(_field("status.loadBalancer.ingress", "exists", True, when=(_LOAD_BALANCER,)),),
    ),
    Rule("storage.k8s.io", "VolumeAttachment", ready=(_field("status.attached", "equals", True),)),
    Rule("autoscaling", "HorizontalPodAutoscaler", ready=(Condition("AbleToScale"),)),
    Rule("apiregistration.k8s.io", "APIService", ready=(Condition("Available"),)),
    Rule(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        ready=(Condition("Established"), Condition("NamesAccepted")),
        failed=(Condition("NamesAccepted", "False"),),
    ),
    # Who serves an Ingress, and whether it gets an address, is not for its status to say; likewise the rest.
    Rule("networking.k8s.io", "Ingress"),
    Rule("policy", "PodDisruptionBudget"),
)
