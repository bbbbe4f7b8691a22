"""What the steps carry: all that is known when a plan is made. Addresses and secrets are found in the step."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from slipway.cluster.site import Arguments, Node, Site


class Prepare(Arguments, frozen=True, kw_only=True):
    """`setup` holds the request's own words on source, proxy and registries; secrets in it are references."""

    node: Node
    site: Site
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class Balance(Arguments, frozen=True, kw_only=True):
    """HAProxy and keepalived on one master, in front of all masters of the site."""

    node: Node
    site: Site


class Init(Arguments, frozen=True, kw_only=True):
    node: Node
    site: Site


class Join(Arguments, frozen=True, kw_only=True):
    """`kept`: the cluster stays if this operation is rolled back, so the node must leave it in order."""

    node: Node
    site: Site
    kept: bool


class Name(Arguments, frozen=True, kw_only=True):
    """The machine is called as its node will be."""

    node: Node


class Script(Arguments, frozen=True, kw_only=True):
    """The package's own script in place of our work. `first`: it begins the cluster. `kept` as in Join."""

    node: Node
    site: Site
    path: str
    first: bool
    kept: bool
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class Helm(Arguments, frozen=True, kw_only=True):
    """On a master: as an archive or program that `given` names, in the request's words, or by the package's script."""

    node: Node
    site: Site
    given: dict[str, Any] = msgspec.field(default_factory=dict)
    path: str | None = None
    setup: dict[str, Any] = msgspec.field(default_factory=dict)


class Ready(Arguments, frozen=True, kw_only=True):
    node: Node
    site: Site


class Network(Arguments, frozen=True, kw_only=True):
    """`cni`: the name of a built-in one, or a manifest of the package."""

    site: Site
    cni: str


class Smoke(Arguments, frozen=True, kw_only=True):
    """`foreign`: somebody else made the nodes, so which images they have is to be seen."""

    site: Site
    foreign: bool = False


class Register(Arguments, frozen=True, kw_only=True):
    site: Site
    vim_name: str


class Unregister(Arguments, frozen=True, kw_only=True):
    instance: str


class Drain(Arguments, frozen=True, kw_only=True):
    """`unless` its kubelet has that version of Kubernetes already."""

    node: Node
    site: Site
    timeout: int
    empty_dir: Literal["delete", "refuse"]
    force: bool
    unless: str | None = None


class Permit(Arguments, frozen=True, kw_only=True):
    """Whether etcd can do without a master: asked before anything is done to it."""

    node: Node
    site: Site


class Leave(Arguments, frozen=True, kw_only=True):
    """A master leaves etcd."""

    node: Node
    site: Site


class Examine(Arguments, frozen=True, kw_only=True):
    """Whether a node can be brought to the site's version. Changes nothing."""

    node: Node
    site: Site


class Upgrade(Arguments, frozen=True, kw_only=True):
    """What kubeadm changes on a node for the site's version. The `first` master is where the cluster changes."""

    node: Node
    site: Site
    first: bool


class Restart(Arguments, frozen=True, kw_only=True):
    """The kubelet, at the site's version."""

    node: Node
    site: Site


class Uncordon(Arguments, frozen=True, kw_only=True):
    """Once the node is Ready at the site's version."""

    node: Node
    site: Site


class Record(Arguments, frozen=True, kw_only=True):
    """That the cluster has the site's version."""

    site: Site


class Forget(Arguments, frozen=True, kw_only=True):
    """The Node object of a machine that is gone."""

    node: Node
    site: Site
