"""The service account that Slipway uses on clusters that it made: its tokens expire, or end with the account."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slipway.kube import paths
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi
from slipway.model.access import SHORTEST_KUBE_TOKEN

NAME = "slipway"
NAMESPACE = "kube-system"
ACCOUNTS = paths.namespaced("/api/v1", NAMESPACE, "serviceaccounts")
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
VIM_TOKEN_LIFETIME = timedelta(hours=24)  # for the cluster as a VIM; renewed when half of it is over


@dataclass(frozen=True)
class ServiceAccountToken:
    value: str = field(repr=False)
    expires: datetime  # as granted, which may be sooner than asked


async def ensure_account(api: KubeApi) -> None:
    """An administrator of the whole cluster, as whoever installs anything in it must be."""
    await api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE}},
    )
    await api.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        }
    )


async def issue_token(api: KubeApi, lifetime: timedelta) -> ServiceAccountToken:
    """Makes the account where there is none."""
    await ensure_account(api)
    return await request_token(api, lifetime)


async def request_token(api: KubeApi, lifetime: timedelta) -> ServiceAccountToken:
    seconds = int(max(lifetime, SHORTEST_KUBE_TOKEN).total_seconds())
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    granted = (await api.create(f"{ACCOUNTS}/{NAME}/token", request)).get("status") or {}
    try:
        return ServiceAccountToken(granted["token"], datetime.fromisoformat(granted["expirationTimestamp"]))
    except (KeyError, ValueError):
        raise KubeError(f"The cluster granted no token to {NAMESPACE}/{NAME}.") from None


async def remove_account(api: KubeApi) -> None:
    """With the account all its tokens end, within the seconds that API servers remember them for."""
    await api.delete(f"{BINDINGS}/{NAME}")
    await api.delete(f"{ACCOUNTS}/{NAME}")
