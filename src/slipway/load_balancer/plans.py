"""Steps of a cluster's plans that concern its load balancer. Pure; whoever plans the cluster puts them in order:

new cluster      set_up(balancer, nodes), which may be while nodes are made: those that do not answer get nothing
scale out        add_routes(balancer, new nodes, after they are Ready)
scale in         remove_routes(balancer, nodes that go) before they are drained
heal of nodes    remove_routes first, add_routes after they are Ready again
heal of balancer set_up(balancer, nodes, again=True) on its new machine; no step before, for it may be dead
whole heal       set_up(balancer, all nodes, again=True)
termination      forget(cluster), at the end
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from slipway.cluster.spec import Node, StepArguments
from slipway.load_balancer.arguments import AddRoutes, Forget, RemoveRoutes, SetUp
from slipway.load_balancer.balancer import Balancer
from slipway.model.plan import Effect, Step, Verb

PREFIX = "load_balancer"
ACTION_NAMES: dict[type[StepArguments], str] = {
    SetUp: f"{PREFIX}.set_up",
    AddRoutes: f"{PREFIX}.add_routes",
    RemoveRoutes: f"{PREFIX}.remove_routes",
    Forget: f"{PREFIX}.forget",
}
FORGET = "forget the load balancer"


def set_up(balancer: Balancer, nodes: Iterable[Node], *, after: Sequence[str] = (), again: bool = False) -> Step:
    """HAProxy on the balancer's machine: the API to the masters among the nodes, front-ends to all of them."""
    effect = Effect(Verb.CHANGE if again else Verb.MAKE, "load balancer", balancer.node.slot)
    args = SetUp(balancer=balancer, nodes=tuple(nodes), again=again)
    return _step(set_up_id(balancer), args, [balancer.node], after, effect)


def add_routes(balancer: Balancer, nodes: Sequence[Node], *, after: Sequence[str]) -> Step:
    """`after`: the steps that say that the nodes are Ready."""
    return _step(add_id(nodes), AddRoutes(balancer=balancer, nodes=tuple(nodes)), nodes, after, _changed(balancer))


def remove_routes(balancer: Balancer, nodes: Sequence[Node], *, after: Sequence[str] = ()) -> Step:
    """The first that is done to nodes that leave; drains come after it."""
    return _step(
        remove_id(nodes), RemoveRoutes(balancer=balancer, nodes=tuple(nodes)), nodes, after, _changed(balancer)
    )


def forget(cluster_id: str, *, after: Sequence[str] = ()) -> Step:
    return _step(FORGET, Forget(cluster=cluster_id), (), after)


def set_up_id(balancer: Balancer) -> str:
    return f"set up load balancer {balancer.node.slot}"


def add_id(nodes: Sequence[Node]) -> str:
    return f"add routes to {_named(nodes)}"


def remove_id(nodes: Sequence[Node]) -> str:
    return f"remove routes to {_named(nodes)}"


def _named(nodes: Sequence[Node]) -> str:
    return ", ".join(node.slot for node in nodes)


def _changed(balancer: Balancer) -> Effect:
    return Effect(Verb.CHANGE, "load balancer", balancer.node.slot)


def _step(step_id: str, args: StepArguments, nodes: Sequence[Node], after: Sequence[str], *effects: Effect) -> Step:
    return Step(
        id=step_id,
        action=ACTION_NAMES[type(args)],
        args=msgspec.json.decode(msgspec.json.encode(args)),  # as the journal will give it back
        nodes=tuple(node.slot for node in nodes),
        after=tuple(after),
        effects=effects,
    )
