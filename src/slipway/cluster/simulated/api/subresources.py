"""What is made by a POST below an object: an eviction, a token."""

from __future__ import annotations

import secrets
import sqlite3
from datetime import UTC, datetime, timedelta

from slipway.cluster.simulated.api import reactions
from slipway.cluster.simulated.api.eviction import check_eviction
from slipway.cluster.simulated.api.kinds import POD, SERVICE_ACCOUNT
from slipway.cluster.simulated.api.objects import ObjectStore
from slipway.cluster.simulated.api.refusal import NoSuchPath, too_short
from slipway.cluster.simulated.api.requests import Place
from slipway.kube.account import SHORTEST
from slipway.kube.seam import Object


def made_by_subresource(
    db: sqlite3.Connection, store: ObjectStore, cluster_id: str, place: Place, there: Object, body: Object
) -> Object:
    if (place.kind, place.subresource) == (POD, "eviction"):
        check_eviction(store, there, body)
        reactions.remove(db, store, cluster_id, POD, there)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
    if (place.kind, place.subresource) == (SERVICE_ACCOUNT, "token"):
        seconds = body["spec"]["expirationSeconds"]
        if seconds < SHORTEST.total_seconds():
            raise too_short(seconds)
        life = timedelta(seconds=seconds)
        expires = (datetime.now(UTC) + life).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {**body, "status": {"token": f"simulated-{secrets.token_urlsafe(24)}", "expirationTimestamp": expires}}
    raise NoSuchPath
