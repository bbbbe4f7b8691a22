"""A cluster and its nodes as plain data in a plan: without addresses, which machines get when they are made."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.cluster.kubernetes_names import Taint
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.parameters import AnsibleParameters, LoginParameters
from slipway.cluster.values import Secret


class StepArguments(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Arguments of a step: JSON in the stored plan."""


class SshLogin(StepArguments, frozen=True, kw_only=True):
    """Secrets are references; the step that logs in opens them."""

    username: str
    port: int = 22
    password: Any = None
    private_key: Any = None
    passphrase: Any = None


class Server(StepArguments, frozen=True, kw_only=True):
    """A machine that no VIM made: a request names its address. `host_key`: pinned, or of the first contact."""

    address: str
    login: SshLogin
    host_key: str | None = None


class Node(StepArguments, frozen=True, kw_only=True):
    """`slot` is the machine's name in the VNF, `name` that of the node in Kubernetes; both stay over a heal."""

    machine: str  # its id, which a heal changes
    slot: str
    name: str
    master: bool
    ssh: str  # connection points
    nic: str
    login: SshLogin
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] | None = None


class ClusterSpec(StepArguments, frozen=True, kw_only=True):
    """What the nodes of a cluster have in common. `masters` are those to work through, best first.

    `vip_port`: the port of the VIM's template whose address is the virtual one: `vip`, once a step is run.
    `floating_ip`: the template's name of the floating IP by which the API is called from elsewhere: `outside`, then.
    """

    instance: str
    masters: tuple[Node, ...]
    networks: ClusterNetworks
    vip: str | None = None
    vip_port: str | None = None
    floating_ip: str | None = None
    outside: str | None = None
    version: str | None = None  # None: what the machine has
    image_repository: str | None = None

    @property
    def name(self) -> str:
        return f"slipway-{self.instance[:8]}"

    @property
    def balanced(self) -> bool:
        """Several masters behind a virtual address."""
        return self.vip is not None or self.vip_port is not None


def login_of(parameters: LoginParameters | AnsibleParameters) -> SshLogin:
    return SshLogin(
        username=parameters.username,
        port=parameters.ssh_port,
        password=_document(parameters.password),
        private_key=_document(parameters.private_key),
        passphrase=_document(parameters.passphrase),
    )


def _document(secret: Secret | None) -> Any:
    return None if secret is None else secret.document
