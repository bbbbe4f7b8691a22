"""The kinds that an API server knows, and the path each has. Those of CustomResourceDefinitions come to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from slipway.kube.interface import Object


class Kind(NamedTuple):
    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    @property
    def key(self) -> str:
        """How its objects are kept."""
        return f"{self.api_version}/{self.plural}"

    @property
    def full(self) -> str:
        """As errors name it: `nodes`, `deployments.apps`."""
        group, slash, _ = self.api_version.partition("/")
        return f"{self.plural}.{group}" if slash else self.plural


NAMESPACE = Kind("v1", "Namespace", "namespaces", False)
NODE = Kind("v1", "Node", "nodes", False)
POD = Kind("v1", "Pod", "pods")
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
DAEMON_SET = Kind("apps/v1", "DaemonSet", "daemonsets")
BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
PERSISTENT_VOLUME = Kind("v1", "PersistentVolume", "persistentvolumes", False)
DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)

RBAC = "rbac.authorization.k8s.io/v1"
BUILT_IN = (
    NAMESPACE,
    NODE,
    POD,
    SECRET,
    CONFIG_MAP,
    SERVICE_ACCOUNT,
    Kind("v1", "Service", "services"),
    Kind("v1", "Endpoints", "endpoints"),
    Kind("v1", "Event", "events"),
    CLAIM,
    PERSISTENT_VOLUME,
    DEPLOYMENT,
    DAEMON_SET,
    Kind("apps/v1", "StatefulSet", "statefulsets"),
    Kind("apps/v1", "ReplicaSet", "replicasets"),
    Kind("batch/v1", "Job", "jobs"),
    Kind("batch/v1", "CronJob", "cronjobs"),
    BUDGET,
    Kind(RBAC, "Role", "roles"),
    Kind(RBAC, "RoleBinding", "rolebindings"),
    Kind(RBAC, "ClusterRole", "clusterroles", False),
    Kind(RBAC, "ClusterRoleBinding", "clusterrolebindings", False),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Kind("networking.k8s.io/v1", "Ingress", "ingresses"),
    Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", False),
    Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False),
    Kind("coordination.k8s.io/v1", "Lease", "leases"),
    DEFINITION,
)
BY_NAME = {(kind.api_version, kind.name): kind for kind in BUILT_IN}
BY_PLURAL = {(kind.api_version, kind.plural): kind for kind in BUILT_IN}


def defined(definitions: Iterable[Object]) -> list[Kind]:
    return [
        Kind(f"{spec['group']}/{version['name']}", names["kind"], names["plural"], spec.get("scope") == "Namespaced")
        for spec in (definition["spec"] for definition in definitions)
        for names in [spec["names"]]
        for version in spec["versions"]
        if version.get("served")
    ]
