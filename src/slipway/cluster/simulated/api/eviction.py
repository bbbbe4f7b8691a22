"""A pod asked to leave: its disruption budget lets it go, or holds it."""

from __future__ import annotations

from slipway.cluster.simulated.api.kinds import BUDGET, POD
from slipway.cluster.simulated.api.objects import ObjectStore
from slipway.cluster.simulated.api.refusal import Refused, another
from slipway.cluster.simulated.api.selecting import matches
from slipway.kube.pods import condition, is_finished, is_terminating
from slipway.kube.seam import Object


def check_eviction(store: ObjectStore, pod: Object, request: Object) -> None:
    """Refused when it may not go now. Its budget is asked first, then whether it is the one meant."""
    metadata = pod["metadata"]
    if not is_finished(pod) and not is_terminating(pod):
        _check_budgets(store, pod)
    wanted = ((request.get("deleteOptions") or {}).get("preconditions") or {}).get("uid")
    if wanted and wanted != metadata["uid"]:
        raise another(POD, metadata["name"], wanted, metadata["uid"])


def _check_budgets(store: ObjectStore, pod: Object) -> None:
    metadata = pod["metadata"]
    budgets = [
        budget
        for budget in store.all_of(BUDGET, metadata["namespace"])
        if matches(budget["spec"].get("selector"), metadata.get("labels"))
    ]
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise Refused(500, "InternalError", message)
    for budget in budgets:
        _check_budget(store, budget)


def _check_budget(store: ObjectStore, budget: Object) -> None:
    spec, metadata = budget["spec"], budget["metadata"]
    pods = [
        pod
        for pod in store.all_of(POD, metadata["namespace"])
        if matches(spec.get("selector"), pod["metadata"].get("labels")) and not is_finished(pod)
    ]
    healthy = [pod for pod in pods if condition(pod, "Ready").get("status") == "True" and not is_terminating(pod)]
    if "minAvailable" in spec:
        needed = _share(spec["minAvailable"], len(pods))
    else:
        needed = len(pods) - _share(spec.get("maxUnavailable", 1), len(pods))
    if len(healthy) - 1 < needed:
        told = f"The disruption budget {metadata['name']} needs {needed} healthy pods and has {len(healthy)} currently"
        causes = [{"reason": "DisruptionBudget", "message": told}]
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        raise Refused(429, "TooManyRequests", message, causes)


def _share(value: int | str, of: int) -> int:
    """A number, or a part in percent, rounded up."""
    return value if isinstance(value, int) else -(-int(value.rstrip("%")) * of // 100)
