"""What a POST to a subresource makes: a token, or an eviction, which a disruption budget may refuse."""

from __future__ import annotations

import secrets
import sqlite3
from datetime import UTC, datetime, timedelta

from slipway.kube.interface import Object
from slipway.kube.pods import condition, is_finished, is_terminating
from slipway.model.access import SHORTEST_KUBE_TOKEN
from slipway.simulator.cluster.api import controllers
from slipway.simulator.cluster.api.errors import ApiError, NoSuchPath, too_short, uid_mismatch
from slipway.simulator.cluster.api.kinds import BUDGET, POD, SERVICE_ACCOUNT
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.api.requests import Place, matches


def create_subresource(
    db: sqlite3.Connection, store: ObjectStore, cluster_id: str, place: Place, there: Object, body: Object
) -> Object:
    if (place.kind, place.subresource) == (POD, "eviction"):
        check_eviction(store, there, body)
        controllers.remove(db, store, cluster_id, POD, there)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
    if (place.kind, place.subresource) == (SERVICE_ACCOUNT, "token"):
        seconds = body["spec"]["expirationSeconds"]
        if seconds < SHORTEST_KUBE_TOKEN.total_seconds():
            raise too_short(seconds)
        life = timedelta(seconds=seconds)
        expires = (datetime.now(UTC) + life).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {**body, "status": {"token": f"simulated-{secrets.token_urlsafe(24)}", "expirationTimestamp": expires}}
    raise NoSuchPath


def check_eviction(store: ObjectStore, pod: Object, request: Object) -> None:
    """Refused when it may not go now. Its budget is asked first, then whether it is the one meant."""
    metadata = pod["metadata"]
    if not is_finished(pod) and not is_terminating(pod):
        _check_budgets(store, pod)
    wanted = ((request.get("deleteOptions") or {}).get("preconditions") or {}).get("uid")
    if wanted and wanted != metadata["uid"]:
        raise uid_mismatch(POD, metadata["name"], wanted, metadata["uid"])


def _check_budgets(store: ObjectStore, pod: Object) -> None:
    metadata = pod["metadata"]
    budgets = [
        budget
        for budget in store.all_of(BUDGET, metadata["namespace"])
        if matches(budget["spec"].get("selector"), metadata.get("labels"))
    ]
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(500, "InternalError", message)
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
        raise ApiError(429, "TooManyRequests", message, causes)


def _share(value: int | str, of: int) -> int:
    """A number, or a part in percent, rounded up."""
    return value if isinstance(value, int) else -(-int(value.rstrip("%")) * of // 100)
