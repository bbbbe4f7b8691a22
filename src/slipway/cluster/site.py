"""A cluster as its steps see it: plain data in a plan, without addresses, which only machines that stand have."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.cluster.kubernetes_names import Taint
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.node_parameters import NodeParameters
from slipway.cluster.values import Secret


class Arguments(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a step carries: JSON in the plan, this type in the hand."""


class Login(Arguments, frozen=True, kw_only=True):
    """Secrets are references; the step that logs in opens them."""

    username: str
    port: int = 22
    password: Any = None
    private_key: Any = None
    passphrase: Any = None


class Node(Arguments, frozen=True, kw_only=True):
    """`slot` is the machine's name in the VNF, `name` that of the node in Kubernetes; both stay over a heal."""

    machine: str  # its id, which a heal changes
    slot: str
    name: str
    master: bool
    ssh: str  # connection points
    nic: str
    login: Login
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] | None = None


class Site(Arguments, frozen=True, kw_only=True):
    """What the nodes of a cluster have in common. `masters` are those to work through, best first."""

    instance: str
    masters: tuple[Node, ...]
    networks: ClusterNetworks
    vip: str | None = None
    version: str | None = None  # None: what the machine has
    image_repository: str | None = None

    @property
    def name(self) -> str:
        return f"slipway-{self.instance[:8]}"


def login_of(parameters: NodeParameters) -> Login:
    return Login(
        username=parameters.username,
        port=parameters.ssh_port,
        password=_document(parameters.password),
        private_key=_document(parameters.private_key),
        passphrase=_document(parameters.passphrase),
    )


def _document(secret: Secret | None) -> Any:
    return None if secret is None else secret.document
