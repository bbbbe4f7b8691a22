"""Arguments of the steps that change a load balancer: JSON in the stored plan, without addresses."""

from __future__ import annotations

from slipway.cluster.spec import Node, StepArguments
from slipway.load_balancer.balancer import Balancer


class OfBalancer(StepArguments, frozen=True, kw_only=True):
    balancer: Balancer


class SetUp(OfBalancer, frozen=True, kw_only=True):
    """HAProxy on a new machine, with routes to these nodes and no others. Front-ends of CNFs are kept.

    `again`: the balancer was there before this operation, on a machine that is gone or to nodes that are.
    """

    nodes: tuple[Node, ...] = ()
    again: bool = False


class AddRoutes(OfBalancer, frozen=True, kw_only=True):
    """To nodes that are Ready; those that are masters get the API's route as well."""

    nodes: tuple[Node, ...]


class RemoveRoutes(OfBalancer, frozen=True, kw_only=True):
    """To nodes that are about to leave."""

    nodes: tuple[Node, ...]


class Forget(StepArguments, frozen=True, kw_only=True):
    """The balancer of a cluster that is terminated, or made without one."""

    cluster: str
