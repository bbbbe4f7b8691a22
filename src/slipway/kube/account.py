"""The account a cluster is driven by once it stands: its tokens end by themselves, or with the account."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slipway.kube import paths
from slipway.kube.failure import KubeError
from slipway.kube.seam import KubeApi

NAME = "slipway"
NAMESPACE = "kube-system"
ACCOUNTS = paths.namespaced("/api/v1", NAMESPACE, "serviceaccounts")
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
SHORTEST = timedelta(minutes=10)  # the API grants no less
LONGEST = timedelta(days=7)
FETCHED = timedelta(hours=12)  # for a person, who can fetch another
REGISTERED = timedelta(hours=24)  # for the cluster as a VIM; renewed when half of it is over


@dataclass(frozen=True)
class Token:
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


async def granted_token(api: KubeApi, lifetime: timedelta) -> Token:
    """Also where somebody removed the account."""
    await ensure_account(api)
    return await request_token(api, lifetime)


async def request_token(api: KubeApi, lifetime: timedelta) -> Token:
    seconds = int(max(lifetime, SHORTEST).total_seconds())
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    granted = (await api.create(f"{ACCOUNTS}/{NAME}/token", request)).get("status") or {}
    try:
        return Token(granted["token"], datetime.fromisoformat(granted["expirationTimestamp"]))
    except (KeyError, ValueError):
        raise KubeError(f"The cluster granted no token to {NAMESPACE}/{NAME}.") from None


async def remove_account(api: KubeApi) -> None:
    """With the account all its tokens end, within the seconds that API servers remember them for."""
    await api.delete(f"{BINDINGS}/{NAME}")
    await api.delete(f"{ACCOUNTS}/{NAME}")
