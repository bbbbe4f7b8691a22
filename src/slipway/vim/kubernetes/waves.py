"""In which order objects are made; the reverse is that in which they are removed."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum


class Wave(IntEnum):
    """Objects of one wave are made at once."""

    NAMESPACES = 0
    DEFINITIONS = 1  # of custom resources; the next wave waits until they are established
    ACCOUNTS = 2
    CONFIGURATION = 3
    SERVICES = 4
    WORKLOADS = 5  # and whatever is not said to come elsewhere
    WEBHOOKS = 6  # after the workloads that serve them
    CUSTOM_RESOURCES = 7

    @property
    def title(self) -> str:
        return _TITLES[self]


_TITLES = {
    Wave.NAMESPACES: "namespaces",
    Wave.DEFINITIONS: "custom resource definitions",
    Wave.ACCOUNTS: "accounts and roles",
    Wave.CONFIGURATION: "configuration and storage",
    Wave.SERVICES: "services",
    Wave.WORKLOADS: "workloads",
    Wave.WEBHOOKS: "webhook configurations",
    Wave.CUSTOM_RESOURCES: "custom resources",
}
DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
# What is in these is lost with them, whatever makes them again.
FOR_GOOD = frozenset({"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition"})
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_WAVES = {
    ("", "Namespace"): Wave.NAMESPACES,
    DEFINITION: Wave.DEFINITIONS,
    ("", "ServiceAccount"): Wave.ACCOUNTS,
    ("scheduling.k8s.io", "PriorityClass"): Wave.ACCOUNTS,
    ("node.k8s.io", "RuntimeClass"): Wave.ACCOUNTS,  # a pod that names one that is not there is refused
    ("", "LimitRange"): Wave.ACCOUNTS,
    ("", "ResourceQuota"): Wave.ACCOUNTS,
    ("", "ConfigMap"): Wave.CONFIGURATION,
    ("", "Secret"): Wave.CONFIGURATION,
    ("", "PersistentVolume"): Wave.CONFIGURATION,
    ("", "PersistentVolumeClaim"): Wave.CONFIGURATION,
    ("storage.k8s.io", "StorageClass"): Wave.CONFIGURATION,
    ("networking.k8s.io", "NetworkPolicy"): Wave.CONFIGURATION,
    ("", "Service"): Wave.SERVICES,
    ("", "Endpoints"): Wave.SERVICES,
    ("networking.k8s.io", "Ingress"): Wave.SERVICES,
    ("apiregistration.k8s.io", "APIService"): Wave.WEBHOOKS,
}
# Groups that every API server has itself; an object of any other is a custom resource. For the order alone.
_BUILT_IN = frozenset(
    {
        "", "apps", "batch", "autoscaling", "policy", "extensions", "events.k8s.io", "networking.k8s.io", _RBAC,
        "storage.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", _ADMISSION, "scheduling.k8s.io",
        "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io", "resource.k8s.io",
        "certificates.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
    }
)  # fmt: skip


def wave_of(api_version: str, kind: str, custom: Collection[tuple[str, str]] = ()) -> Wave:
    """`custom`: group and kind of what definitions beside it define."""
    group = api_version.rpartition("/")[0]
    if group not in _BUILT_IN or (group, kind) in custom:
        return Wave.CUSTOM_RESOURCES
    if group in (_RBAC, _ADMISSION):
        return Wave.ACCOUNTS if group == _RBAC else Wave.WEBHOOKS
    return _WAVES.get((group, kind), Wave.WORKLOADS)
