"""Names of nodes and etcd members, labels that say where a node runs, and the ports that everybody agrees on.

A name comes from the slot and the instance, not from an address. So it stays over a heal, and it can't collide, however
large the network is and whichever IP version it has.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from functools import lru_cache

from slipway.cluster.kubernetes_names import is_label_value

API_PORT = 6443
BALANCED_API_PORT = 16443  # HAProxy on every master, in front of all API servers
ETCD_CLIENT_PORT = 2379
ETCD_PEER_PORT = 2380

COMPUTE_HOST_LABEL = "CIS-node"
ZONE_LABEL = "kubernetes.io/zone"
STANDARD_ZONE_LABEL = "topology.kubernetes.io/zone"

LONGEST_NAME = 63
_DIGEST = 10


@lru_cache(maxsize=10_000)
def node_name(instance_id: str, slot: str) -> str:
    """`workerNode-2` of an instance -> `workernode-2-1f0c9a34be`. Different slots never share a name."""
    digest = _digest(f"{instance_id}\0{slot}")
    stem, dash, number = slot.rpartition("-")
    number = f"-{number}" if dash and re.fullmatch("[0-9]{1,9}", number, re.ASCII) else ""
    plain = re.sub("[^a-z0-9]+", "-", (stem if number else slot).lower()).strip("-") or "node"
    room = LONGEST_NAME - len(number) - len(digest) - 1
    return f"{plain[:room].rstrip('-')}{number}-{digest}"


def etcd_member_name(node: str) -> str:
    """kubeadm calls the member on a master as the node."""
    return node


def host_and_port(host: str, port: int) -> str:
    """`10.0.0.1:6443`, `[fd00::1]:6443`"""
    try:
        ipv6 = ipaddress.ip_address(host).version == 6
    except ValueError:
        ipv6 = False
    return f"[{host}]:{port}" if ipv6 else f"{host}:{port}"


def virtual_router_id(instance_id: str) -> int:
    """1 to 255, so that clusters on one network mostly differ; peers are named one by one, so a match does no harm."""
    return int.from_bytes(hashlib.sha256(instance_id.encode()).digest()[:4]) % 255 + 1


def location_labels(compute_host: str | None, zone: str | None) -> dict[str, str]:
    """Where a node runs, as far as the VIM tells."""
    labels = {}
    if compute_host:
        labels[COMPUTE_HOST_LABEL] = label_value(compute_host)
    if zone:
        labels[ZONE_LABEL] = labels[STANDARD_ZONE_LABEL] = label_value(zone)
    return labels


def label_value(text: str) -> str:
    """A VIM's own word as the value of a label; when it must be changed, a digest keeps it apart from others."""
    if is_label_value(text):
        return text
    plain = re.sub("[^A-Za-z0-9_.-]+", "-", text).strip("-_.")
    return f"{plain[: LONGEST_NAME - _DIGEST - 1]}-{_digest(text)}".lstrip("-")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
