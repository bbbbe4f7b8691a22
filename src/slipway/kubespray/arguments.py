"""Arguments of the steps of a cluster by kubespray: JSON in the stored plan, secrets by reference."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.cluster.spec import ClusterSpec, Node, Server, StepArguments

PREFIX = "kubespray"


class AnsibleServer(StepArguments, frozen=True, kw_only=True):
    """Where Ansible runs. `inventory` is a directory for this instance alone."""

    server: Server
    root: str
    inventory: str
    instance: str


class OnServer(StepArguments, frozen=True, kw_only=True):
    ansible: AnsibleServer


class PrepareServer(OnServer, frozen=True, kw_only=True):
    """What is needed there is there, and the inventory's directory is ours. `passwords`: some nodes want one."""

    passwords: bool = False
    claims: bool = False  # this operation comes there first: a rollback leaves nothing


class WriteInventory(OnServer, frozen=True, kw_only=True):
    """Of these nodes, in that order. `before`: those to go back to, where the cluster stays.

    `published`: machines beside the nodes at whose connection points the API is called, so that certificates name them.
    """

    cluster: ClusterSpec
    nodes: tuple[Node, ...]
    before: tuple[Node, ...] = ()
    published: tuple[Node, ...] = ()
    plugin: str | None = None
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class RunPlaybook(OnServer, frozen=True, kw_only=True):
    """`run` names the run within its operation. `nodes` are all of the inventory: dead ones among them are left out.

    `limit`: the nodes that it is for; none is all. `joining`: those that leave the cluster again in a rollback.
    `setup`: as in the inventory, for the secrets that no error may tell.
    """

    playbook: str
    run: str
    cluster: ClusterSpec
    nodes: tuple[Node, ...]
    limit: tuple[str, ...] = ()
    variables: dict[str, Any] = msgspec.field(default_factory=dict)
    joining: tuple[Node, ...] = ()
    setup: dict[str, Any] = msgspec.field(default_factory=dict)
    seconds: int
    if_changed: str | None = None  # a step that wrote the inventory: only if that told kubespray something new


class RemoveNodes(OnServer, frozen=True, kw_only=True):
    """By remove-node.yml: `leaving` are among `nodes`, those of the inventory. `setup`: as for a playbook."""

    run: str
    cluster: ClusterSpec
    nodes: tuple[Node, ...]
    leaving: tuple[Node, ...]
    setup: dict[str, Any] = msgspec.field(default_factory=dict)
    seconds: int


class PointClusterInfo(StepArguments, frozen=True, kw_only=True):
    """`cluster-info` and `kubeadm-config`, by which nodes join, name a master that is there."""

    cluster: ClusterSpec


class CleanServer(OnServer, frozen=True, kw_only=True):
    """Nothing of the instance is left there. `forceful`: a server that can't be reached is no reason to stay."""

    forceful: bool = False


def kubespray_action(kind: type[Any]) -> str:
    return f"{PREFIX}.{kind.__name__.lower()}"
