"""Arguments of the steps: all that is known when a plan is made. Addresses and secrets are found in the step."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from slipway.cluster.spec import ClusterSpec, Node, StepArguments


class OfCluster(StepArguments, frozen=True, kw_only=True):
    """Done through the API of the cluster's masters."""

    cluster: ClusterSpec = msgspec.field(name="site")  # as plans of older versions have it, which may still run


class OnNode(OfCluster, frozen=True, kw_only=True):
    """Of one node of the cluster."""

    node: Node


class Prepare(OnNode, frozen=True, kw_only=True):
    """`setup` holds the request's own words on source and proxy; secrets in it are references.

    `vnfd`: of the package whose files are meant, where it is not the instance's own yet.
    """

    setup: dict[str, Any] = msgspec.field(default_factory=dict)
    vnfd: str | None = None


class CheckRegistries(OnNode, frozen=True, kw_only=True):
    """Whether the node may use each of the registries; changes nothing. In the request's words: secrets are references.

    `setup`: as in Prepare, of which the proxy counts.
    """

    registries: tuple[dict[str, Any], ...]
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class ConnectRegistries(CheckRegistries, frozen=True, kw_only=True):
    """The node's containerd knows these registries and no others that it has from us.

    `former`: those before, for an undo; None: there is nothing to go back to, because the node goes with the operation.
    """

    former: tuple[dict[str, Any], ...] | None = None


class Balance(OnNode, frozen=True, kw_only=True):
    """HAProxy and keepalived on one master, in front of all masters of the cluster."""


class Init(OnNode, frozen=True, kw_only=True):
    """The first master, where the cluster begins."""


class Join(OnNode, frozen=True, kw_only=True):
    """`cluster_stays`: the cluster stays if this operation is rolled back, so the node must leave it in order."""

    cluster_stays: bool = msgspec.field(name="kept")


class SetHostName(StepArguments, frozen=True, kw_only=True):
    """The machine gets the host name that its node will have. `cluster_ip`: the address that several masters share."""

    node: Node
    cluster_ip: str | None = None


class RunNodeScript(OnNode, frozen=True, kw_only=True):
    """The package's own script in place of our work. `first`: it begins the cluster. `cluster_stays` as in Join."""

    path: str
    first: bool
    cluster_stays: bool = msgspec.field(name="kept")
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class Helm(OnNode, frozen=True, kw_only=True):
    """On a master: as an archive or program that `given` names, in the request's words, or by the package's script."""

    given: dict[str, Any] = msgspec.field(default_factory=dict)
    path: str | None = None
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class Ready(OnNode, frozen=True, kw_only=True):
    """The node is Ready, and labelled."""


class InstallNetwork(OfCluster, frozen=True, kw_only=True):
    """`cni`: the name of a built-in one, or a manifest of the package."""

    cni: str


class SmokeTest(OfCluster, frozen=True, kw_only=True):
    """On any of the nodes. `foreign`: Slipway did not make them, so which images they have is to be seen."""

    nodes: tuple[Node, ...] = ()
    foreign: bool = False


class Register(OfCluster, frozen=True, kw_only=True):
    """`at`: the machine in front of the masters, by which all others reach the API, and the `port` there."""

    vim_name: str
    at: Node | None = None
    port: int | None = None


class Unregister(StepArguments, frozen=True, kw_only=True):
    """`cluster` is None where its machines are gone already."""

    instance: str
    cluster: ClusterSpec | None = msgspec.field(default=None, name="site")


class Drain(OnNode, frozen=True, kw_only=True):
    """`unless` its kubelet has that version of Kubernetes already."""

    timeout: int
    empty_dir: Literal["delete", "refuse"]
    force: bool
    unless: str | None = None


class CheckQuorum(OnNode, frozen=True, kw_only=True):
    """Whether etcd can do without a master: asked before anything is done to it."""


class LeaveEtcd(OnNode, frozen=True, kw_only=True):
    """A master leaves etcd."""


class Fetch(Prepare, frozen=True, kw_only=True):
    """The programs of the cluster's version come to a machine, and those in use stay."""


class Examine(OnNode, frozen=True, kw_only=True):
    """Whether a node can be brought to the version; changes nothing. `source`: where its programs come from."""

    source: str = "image"


class Upgrade(OnNode, frozen=True, kw_only=True):
    """What kubeadm changes on a node for the cluster's version. The `first` master is where the cluster changes."""

    first: bool
    source: str = "image"


class Restart(OnNode, frozen=True, kw_only=True):
    """The kubelet, at the cluster's version."""

    source: str = "image"


class Uncordon(OnNode, frozen=True, kw_only=True):
    """Once the node is Ready at the cluster's version."""


class RecordVersion(OfCluster, frozen=True, kw_only=True):
    """That every node of the cluster has its version."""


class DeleteNode(OnNode, frozen=True, kw_only=True):
    """The Node object of a machine that is gone."""
