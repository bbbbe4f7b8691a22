"""What the steps carry: all that is known when a plan is made. Addresses and secrets are found in the step."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from slipway.cluster.site import Arguments, Node, Site


class OfCluster(Arguments, frozen=True, kw_only=True):
    """Done through the API of the site's masters."""

    site: Site


class OnNode(OfCluster, frozen=True, kw_only=True):
    """Of one node of the site."""

    node: Node


class Prepare(OnNode, frozen=True, kw_only=True):
    """`setup` holds the request's own words on source, proxy and registries; secrets in it are references.

    `vnfd`: of the package whose files are meant, where it is not the instance's own yet.
    """

    setup: dict[str, Any] = msgspec.field(default_factory=dict)
    vnfd: str | None = None


class Balance(OnNode, frozen=True, kw_only=True):
    """HAProxy and keepalived on one master, in front of all masters of the site."""


class Init(OnNode, frozen=True, kw_only=True):
    """The first master, where the cluster begins."""


class Join(OnNode, frozen=True, kw_only=True):
    """`kept`: the cluster stays if this operation is rolled back, so the node must leave it in order."""

    kept: bool


class Name(Arguments, frozen=True, kw_only=True):
    """The machine is called as its node will be."""

    node: Node


class Script(OnNode, frozen=True, kw_only=True):
    """The package's own script in place of our work. `first`: it begins the cluster. `kept` as in Join."""

    path: str
    first: bool
    kept: bool
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class Helm(OnNode, frozen=True, kw_only=True):
    """On a master: as an archive or program that `given` names, in the request's words, or by the package's script."""

    given: dict[str, Any] = msgspec.field(default_factory=dict)
    path: str | None = None
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class Ready(OnNode, frozen=True, kw_only=True):
    """The node is Ready, and labelled."""


class Network(OfCluster, frozen=True, kw_only=True):
    """`cni`: the name of a built-in one, or a manifest of the package."""

    cni: str


class Smoke(OfCluster, frozen=True, kw_only=True):
    """On any of the nodes. `foreign`: somebody else made them, so which images they have is to be seen."""

    nodes: tuple[Node, ...] = ()
    foreign: bool = False


class Register(OfCluster, frozen=True, kw_only=True):
    vim_name: str


class Unregister(Arguments, frozen=True, kw_only=True):
    """`site` is None where its machines are gone already."""

    instance: str
    site: Site | None = None


class Drain(OnNode, frozen=True, kw_only=True):
    """`unless` its kubelet has that version of Kubernetes already."""

    timeout: int
    empty_dir: Literal["delete", "refuse"]
    force: bool
    unless: str | None = None


class Permit(OnNode, frozen=True, kw_only=True):
    """Whether etcd can do without a master: asked before anything is done to it."""


class Leave(OnNode, frozen=True, kw_only=True):
    """A master leaves etcd."""


class Fetch(Prepare, frozen=True, kw_only=True):
    """The programs of the site's version come to a machine, and those in use stay."""


class Examine(OnNode, frozen=True, kw_only=True):
    """Whether a node can be brought to the site's version. Changes nothing. `source`: where its programs come from."""

    source: str = "image"


class Upgrade(OnNode, frozen=True, kw_only=True):
    """What kubeadm changes on a node for the site's version. The `first` master is where the cluster changes."""

    first: bool
    source: str = "image"


class Restart(OnNode, frozen=True, kw_only=True):
    """The kubelet, at the site's version."""

    source: str = "image"


class Uncordon(OnNode, frozen=True, kw_only=True):
    """Once the node is Ready at the site's version."""


class Record(OfCluster, frozen=True, kw_only=True):
    """That the cluster has the site's version."""


class Forget(OnNode, frozen=True, kw_only=True):
    """The Node object of a machine that is gone."""
