"""The API server on a master: the verbs on objects. What follows from each write is in `controllers`."""

from __future__ import annotations

import base64
import copy
import re
import sqlite3
from urllib.parse import unquote

from slipway.kube.interface import Object, Objects, PatchKind
from slipway.model.json_documents import merge_patch
from slipway.simulator.cluster.api import controllers
from slipway.simulator.cluster.api.errors import (
    ApiError,
    NoSuchPath,
    already_exists,
    bad_request,
    invalid,
    modified,
    not_found,
    uid_mismatch,
    version_mismatch,
)
from slipway.simulator.cluster.api.kinds import (
    BUILT_IN,
    BY_NAME,
    DAEMON_SET,
    DEFINITION,
    NAMESPACE,
    NODE,
    RBAC,
    SECRET,
    Kind,
    defined,
)
from slipway.simulator.cluster.api.nodes import reconcile_unreachable
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.api.requests import (
    Place,
    applied,
    fixed,
    group_of,
    page,
    patched_by_operations,
    place_of,
    selected,
)
from slipway.simulator.cluster.api.subresources import create_subresource
from slipway.simulator.cluster.api.workloads import with_daemon_set_status
from slipway.simulator.cluster.cluster import Cluster
from slipway.simulator.cluster.host import kubelet_of

SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
NOT_A_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character"
)
KUBELET = re.compile(r"/api/v1/nodes/([^/]+)/proxy/healthz")
HEALTHY = ("/readyz", "/livez", "/healthz")


class ApiServer:
    """For one call, in one transaction."""

    def __init__(self, db: sqlite3.Connection, cluster: Cluster) -> None:
        self.db, self.cluster = db, cluster
        self.store = ObjectStore(db, cluster.id)
        reconcile_unreachable(db, self.store, cluster.id)

    def text(self, path: str) -> str:
        if path in HEALTHY:
            return "ok"
        if asked := KUBELET.fullmatch(path):
            return self._kubelet_health(unquote(asked[1]))
        raise NoSuchPath

    def _kubelet_health(self, node: str) -> str:
        if self.store.find(NODE, "", node) is None:
            raise not_found(NODE, node)
        if kubelet_of(self.db, self.cluster.id, node) is None:
            raise ApiError(503, "ServiceUnavailable", "error trying to reach service: no route to host")
        return "ok"

    def get(self, path: str, query: dict[str, str]) -> Object:
        if path == "/version":
            major, minor, _ = self.cluster.version.removeprefix("v").split(".")
            return {"major": major, "minor": minor, "gitVersion": self.cluster.version, "platform": "linux/amd64"}
        version, rest = group_of(path)
        if not rest:
            return self._discovered(version)
        place = place_of(path, self.store)
        if place.name is None:
            return {"apiVersion": version, "kind": f"{place.kind.name}List", **page(self._listed(place, query), query)}
        if place.subresource not in (None, "status"):
            raise NoSuchPath
        found = self._existing(place)
        return with_daemon_set_status(self.store, found) if place.kind == DAEMON_SET else found

    def create(self, path: str, body: Object) -> Object:
        place = place_of(path, self.store)
        if place.subresource is not None:
            return create_subresource(self.db, self.store, self.cluster.id, place, self._existing(place), body)
        if place.name is not None or (place.kind.namespaced and place.namespace is None):
            raise NoSuchPath
        return self._add(place.kind, place.namespace, body)

    def kind_of(self, api_version: str, name: str) -> Kind | None:
        if kind := BY_NAME.get((api_version, name)):
            return kind
        custom = defined(self.store.all_of(DEFINITION))
        return next((kind for kind in custom if (kind.api_version, kind.name) == (api_version, name)), None)

    def apply(self, kind: Kind, manifest: Object) -> Object:
        namespace = (manifest["metadata"].get("namespace") or "default") if kind.namespaced else None
        there = self.store.find(kind, namespace or "", manifest["metadata"]["name"])
        before = self.store.applied(kind, there) if there else {}
        if there is None:
            result = self._add(kind, namespace, manifest)
        else:
            result = self._changed(kind, there, applied(copy.deepcopy(there), _stored(kind, manifest), before))
        self.store.note_applied(kind, result, _stored(kind, manifest))
        return result

    def patch(self, path: str, body: Object | Objects, how: PatchKind) -> Object:
        place = place_of(path, self.store)
        if place.name is None or place.subresource not in (None, "status"):
            raise NoSuchPath
        there = self._existing(place)
        if isinstance(body, list) != (how == "json"):
            raise bad_request("the body of the request was in an unknown format")
        if isinstance(body, list):
            wanted = patched_by_operations(copy.deepcopy(there), body)
        else:
            part = {"status": body.get("status", {})} if place.subresource else body
            wanted = merge_patch(copy.deepcopy(there), part)
        return self._changed(place.kind, there, wanted)

    def delete(self, path: str, uid: str | None, grace: int | None, version: str | None = None) -> None:
        place = place_of(path, self.store)
        if place.name is None or place.subresource is not None:
            raise NoSuchPath
        there = self._existing(place)
        found = there["metadata"]["uid"]
        if uid is not None and uid != found:
            raise uid_mismatch(place.kind, place.name, uid, found)
        if version is not None and version != there["metadata"]["resourceVersion"]:
            raise version_mismatch(place.kind, place.name, version, there["metadata"]["resourceVersion"])
        controllers.remove(self.db, self.store, self.cluster.id, place.kind, there, grace)

    def _existing(self, place: Place) -> Object:
        found = self.store.find(place.kind, place.namespace or "", place.name or "")
        if found is None:
            raise not_found(place.kind, place.name or "")
        return found

    def _listed(self, place: Place, query: dict[str, str]) -> Objects:
        """A node's pods by its name: however many others there are."""
        node = fixed(query, "spec.nodeName") if place.kind.name == "Pod" else None
        if not node:
            return selected(self.store.all_of(place.kind, place.namespace), query)
        pods = self.store.pods_on(node)
        return selected([pod for pod in pods if place.namespace in (None, pod["metadata"]["namespace"])], query)

    def _add(self, kind: Kind, namespace: str | None, body: Object) -> Object:
        name = (body.get("metadata") or {}).get("name")
        if not isinstance(name, str) or (kind.api_version != RBAC and not SUBDOMAIN.fullmatch(name)):
            raise invalid(kind, str(name), "metadata.name", f'Invalid value: "{name}": {NOT_A_SUBDOMAIN}')
        if namespace is not None and self.store.find(NAMESPACE, "", namespace) is None:
            raise not_found(NAMESPACE, namespace)
        if self.store.find(kind, namespace or "", name) is not None:
            raise already_exists(kind, name)
        new = copy.deepcopy(_stored(kind, body))
        if namespace is not None:
            new["metadata"]["namespace"] = namespace
        made = self.store.add(kind, new)
        return controllers.reconcile(self.db, self.store, self.cluster.id, kind, made)

    def _changed(self, kind: Kind, there: Object, wanted: Object) -> Object:
        old, new = there["metadata"], wanted["metadata"]
        if new.get("resourceVersion") != old["resourceVersion"]:
            raise modified(kind, old["name"])
        for fixed_ in ("name", "namespace", "uid", "creationTimestamp", "generation"):
            if fixed_ in old:
                new[fixed_] = old[fixed_]
        if wanted == there:
            return there
        if wanted.get("spec") != there.get("spec"):
            new["generation"] = old.get("generation", 1) + 1
        made = self.store.put(kind, wanted)
        return controllers.reconcile(self.db, self.store, self.cluster.id, kind, made)

    def _discovered(self, version: str) -> Object:
        kinds = [kind for kind in (*BUILT_IN, *defined(self.store.all_of(DEFINITION))) if kind.api_version == version]
        if not kinds:
            raise NoSuchPath
        resources = [{"name": kind.plural, "kind": kind.name, "namespaced": kind.namespaced} for kind in kinds]
        return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


def _stored(kind: Kind, body: Object) -> Object:
    """What a Secret is given in clear is kept in base64."""
    if kind != SECRET or "stringData" not in body:
        return body
    plain = {key: base64.b64encode(value.encode()).decode() for key, value in body["stringData"].items()}
    rest = {key: value for key, value in body.items() if key != "stringData"}
    return {**rest, "data": {**(body.get("data") or {}), **plain}}
