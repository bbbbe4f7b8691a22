"""What lets a machine into a cluster: a token that the cluster knows, the hash of its CA, for masters a key."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from typing import Any

from slipway.cluster.simulated.api.kinds import SECRET
from slipway.cluster.simulated.api.objects import ObjectStore
from slipway.cluster.simulated.cluster import Cluster
from slipway.kube.bootstrap import ca_hash

_UNKNOWN = "couldn't validate the identity of the API Server"


class NotLetIn(Exception):
    """What kubeadm prints after `error execution phase `."""


def check_discovery(cluster: Cluster, store: ObjectStore, ticket: dict[str, Any]) -> None:
    """In the order in which kubeadm finds out: is it signed with the token, and is the CA the one meant."""
    identifier, _, secret = str(ticket.get("token", "")).partition(".")
    found = store.find(SECRET, "kube-system", f"bootstrap-token-{identifier}")
    data = {key: base64.b64decode(value).decode() for key, value in (found or {}).get("data", {}).items()}
    if not data or _has_expired(data.get("expiration")):
        why = f'could not find a JWS signature in the cluster-info ConfigMap for token ID "{identifier}"'
        raise NotLetIn(f"preflight: {_UNKNOWN}: {why}")
    if data.get("token-secret") != secret:
        why = "failed to verify JWS signature of received cluster info object, can't trust this API Server"
        raise NotLetIn(f"preflight: {_UNKNOWN}: {why}")
    own = ca_hash(cluster.ca)
    if own not in ticket.get("caCertHashes", ()):
        why = "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys"
        raise NotLetIn(f'preflight: {_UNKNOWN}: {why} "{own}" are pinned')


def check_certificates(cluster: Cluster, key: str) -> None:
    uploaded = cluster.uploaded()
    if uploaded is None:
        why = (
            'error downloading the secret: Secret "kubeadm-certs" was not found in the "kube-system" Namespace. '
            "This Secret might have expired. Please, run `kubeadm init phase upload-certs --upload-certs` on a control "
            "plane to generate a new one"
        )
        raise NotLetIn(f"control-plane-prepare/download-certs: error downloading certs: {why}")
    if uploaded.key != hash_of(key):
        why = "error decoding secret data with provided key: cipher: message authentication failed"
        raise NotLetIn(f"control-plane-prepare/download-certs: error downloading certs: {why}")


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _has_expired(moment: str | None) -> bool:
    return moment is not None and datetime.fromisoformat(moment) <= datetime.now(UTC)
