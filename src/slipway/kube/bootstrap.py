"""Bootstrap tokens, with which a machine joins as a node. Made as `kubeadm token create` makes them."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from datetime import UTC, datetime, timedelta

from slipway.kube import paths
from slipway.kube.credentials import ca_of
from slipway.kube.interface import KubeApi
from slipway.model.errors import StepError

NAMESPACE = "kube-system"
GROUP = "system:bootstrappers:kubeadm:default-node-token"  # kubeadm init lets it ask for a node's certificate
_ALPHABET = string.ascii_lowercase + string.digits
_TOKEN = re.compile(r"([a-z0-9]{6})\.[a-z0-9]{16}")


async def make_token(api: KubeApi, lifetime: timedelta) -> str:
    """The cluster itself removes it when its time is over."""
    token = new_token()
    identifier, secret = token.split(".")
    expiration = datetime.now(UTC) + lifetime
    content = {
        "token-id": identifier,
        "token-secret": secret,
        "expiration": expiration.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": GROUP,
        "description": "Made by Slipway for nodes that join.",
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": _secret_name(identifier), "namespace": NAMESPACE},
        "stringData": content,
    }
    await api.create(paths.namespaced("/api/v1", NAMESPACE, "secrets"), manifest)
    return token


def new_token() -> str:
    return f"{_random(6)}.{_random(16)}"


async def remove_token(api: KubeApi, token: str) -> None:
    if not (match := _TOKEN.fullmatch(token)):
        # It may be another secret, so it is not shown.
        raise StepError(
            "The bootstrap token to remove is not of the form [a-z0-9]{6}.[a-z0-9]{16}.",
            cure="remove it by hand: kubectl -n kube-system get secrets; kubeadm token delete.",
        )
    await api.delete(paths.namespaced("/api/v1", NAMESPACE, "secrets", _secret_name(match[1])))


async def cluster_ca(api: KubeApi) -> str:
    """The cluster's CA as PEM, from what kubeadm leaves for everybody who wants to join."""
    found = await api.get(paths.namespaced("/api/v1", "kube-public", "configmaps", "cluster-info"))
    return ca_of(found.get("data", {}).get("kubeconfig", ""))


def ca_hash(pem: str) -> str:
    """What a joining machine knows the cluster's CA by: the hash of its public key."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        key = x509.load_pem_x509_certificate(pem.encode()).public_key()
    except ValueError:
        raise StepError("The cluster's CA is not a PEM certificate.") from None
    info = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(info).hexdigest()}"


def _secret_name(identifier: str) -> str:
    return f"bootstrap-token-{identifier}"


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
