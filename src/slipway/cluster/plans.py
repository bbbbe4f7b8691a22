"""The hooks of a cluster's VNFD as steps: pure, from who comes and who goes to what is done, in which order.

Everything that can be at once is at once. Masters join one after another, because etcd takes one new member at a time;
those that are healed leave and come back one by one, so that etcd keeps its quorum throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from slipway.cluster.parameters import NAME
from slipway.cluster.planning import batches, drain_id, drained, pairs, permit_id, permitted, step
from slipway.cluster.roster import Nodes, Roster, masters, workers
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.arguments import (
    Balance,
    Forget,
    Init,
    Join,
    Leave,
    Network,
    Prepare,
    Ready,
    Register,
    Smoke,
    Unregister,
)
from slipway.model.hooks import Batch, Edges, HookPlan, Lane
from slipway.model.merge import merge_patch
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.requests import InstantiateRequest, ModifyRequest

NETWORK = "set up the pods' network"
SMOKE = "run a pod"
REGISTER = "register the cluster as a VIM"
UNREGISTER = "unregister the cluster"
FETCH_SECONDS = 3600.0  # for a machine whose programs have to come from elsewhere


def new_cluster(roster: Roster) -> Plan:
    """All nodes are new: the first master begins, everybody else joins."""
    control = masters(roster.after)
    first, site = control[0], roster.site(control)
    begun = f"init {first.slot}"
    waits = [_prepare(first), *(_balance(node) for node in control if site.vip)]
    init = step(begun, Init(node=first, site=site), node=first, after=waits,
                effects=[Effect(Verb.MAKE, "cluster", site.name)])  # fmt: skip
    return Plan.of(
        *_preparations(roster, roster.after, site),
        *_balancers(control, site, after=[_prepare(node) for node in control]),
        init,
        step(NETWORK, Network(site=site, cni=roster.parameters.cni), after=[begun]),
        *_joins(control[1:], site, behind=begun, kept=False),
        *_joins(workers(roster.after), site, behind=begun, kept=False),
        _ready(first, site, after=[NETWORK]),
        *(_ready(node, site, after=[_join(node), NETWORK]) for node in roster.after if node != first),
        *_proofs(roster, site),
    )


def scaled(roster: Roster, edges: Edges) -> HookPlan:
    """Evacuate before the VIM takes machines away; forget them and let others join after it made its changes."""
    return HookPlan(
        start=_departures(roster) if "start" in edges else Plan(),
        end=_arrivals(roster) if "end" in edges else _all_forgotten(roster),
    )


def healed(roster: Roster, edges: Edges) -> HookPlan:
    """Nodes leave, are made anew and come back: masters one by one, workers a third at a time."""
    return HookPlan(
        start=_heal_departures(roster) if "start" in edges else Plan(),
        end=_heal_arrivals(roster) if "end" in edges else _all_forgotten(roster),
        lanes=_heal_lanes(roster, _back if "end" in edges else _forget),
    )


def _all_forgotten(roster: Roster) -> Plan:
    """What is left of nodes whose machines are gone, where no other hook would care for it."""
    site = roster.site(masters(roster.staying))
    return Plan.of(*(_forgotten(node, site) for node in roster.leaving))


def _heal_lanes(roster: Roster, back: Callable[[Node], str]) -> tuple[Lane, ...]:
    others = batches(workers(roster.leaving), len(workers(roster.after)))
    turns = ([(node,) for node in roster.healed_masters], others)
    return tuple(tuple(_batch(nodes, back) for nodes in lane) for lane in turns)


def _batch(nodes: Nodes, back: Callable[[Node], str]) -> Batch:
    return Batch(tuple(node.slot for node in nodes), tuple(back(node) for node in nodes))


def _departures(roster: Roster) -> Plan:
    """Before machines go for good: their pods move, masters leave etcd."""
    site = roster.site(masters(roster.staying))
    steps = [drained(roster, node, site) for node in workers(roster.leaving)]
    for before, node in pairs(masters(roster.leaving)):
        steps += _departure(roster, node, site, after=[_leave(before)] if before else [])
    return Plan.of(*steps)


def _arrivals(roster: Roster) -> Plan:
    """After machines went and came: nobody remembers the former, and the latter join."""
    site = roster.site(masters(roster.staying))
    new = masters(roster.coming)
    moved = new or masters(roster.leaving)
    control = roster.site(masters(roster.after))
    balancing = [_prepare(node) for node in new] + [_forget(node) for node in masters(roster.leaving)]
    return Plan.of(
        *(_forgotten(node, site) for node in roster.leaving),
        *_preparations(roster, roster.coming, site),
        *(_balancers(control.masters, control, after=balancing) if moved else ()),
        *_joins(new, site, behind=None, kept=True),
        *_joins(workers(roster.coming), site, behind=None, kept=True),
        *(_ready(node, site, after=[_join(node)]) for node in roster.coming),
    )


def _heal_departures(roster: Roster) -> Plan:
    """As `_departures`, without an order among the nodes: they go in batches."""
    site = roster.site(masters(roster.staying))
    steps = [drained(roster, node, site) for node in workers(roster.leaving)]
    for node in roster.healed_masters:
        steps += _departure(roster, node, site, after=[])
    return Plan.of(*steps)


def _heal_arrivals(roster: Roster) -> Plan:
    """Each healed node forgets who it was, and joins again. What a balancer knows of its master is written anew."""
    site = roster.site(masters(roster.staying))
    new = {node.slot: node for node in roster.coming}
    standing = {node.slot: node for node in masters(roster.before)}
    steps: list[Step] = []
    for old in roster.healed_masters:
        standing[old.slot] = new[old.slot]
        routes = list(_routes(roster, new[old.slot], roster.site(standing.values())))
        steps += [*routes, *_rejoined(roster, new[old.slot], site, after=[route.id for route in routes])]
    for node in workers(roster.coming):
        steps += _rejoined(roster, node, site)
    return Plan.of(*steps)


def _routes(roster: Roster, healed: Node, now: Site) -> Iterator[Step]:
    """Every balancer with the machines of that moment, but for those machines that are yet to be healed themselves."""
    for node in now.masters if now.vip else ():
        if node not in roster.leaving:
            yield step(_route(node, healed), Balance(node=node, site=now), node=node, after=[_prepare(healed)])


def unregistered(instance: str, site: Site | None) -> Plan:
    gone = [Effect(Verb.REMOVE, "VIM", "of the cluster")]
    return Plan.of(step(UNREGISTER, Unregister(instance=instance, site=site), effects=gone))


def _rejoined(roster: Roster, node: Node, site: Site, after: Sequence[str] = ()) -> Iterator[Step]:
    yield _forgotten(node, site)
    yield from _preparations(roster, [node], site)
    yield step(_join(node), Join(node=node, site=site, kept=True), node=node,
               after=[_prepare(node), _forget(node), *after])  # fmt: skip
    yield _ready(node, site, after=[_join(node)])


def _preparations(roster: Roster, nodes: Iterable[Node], site: Site) -> Iterator[Step]:
    setup = setup_of(roster)
    longer = FETCH_SECONDS if roster.parameters.source.kind != "image" else None
    for node in nodes:
        yield step(_prepare(node), Prepare(node=node, site=site, setup=setup), node=node, timeout=longer)


def _balancers(nodes: Iterable[Node], site: Site, *, after: Sequence[str]) -> Iterator[Step]:
    if site.vip is not None:
        for node in nodes:
            yield step(_balance(node), Balance(node=node, site=site), node=node, after=after)


def _joins(nodes: Nodes, site: Site, *, behind: str | None, kept: bool) -> Iterator[Step]:
    """Workers all at once, masters one after another."""
    for before, node in pairs(nodes):
        turn = [_join(before)] if before and node.master else []
        routed = [_balance(node)] if node.master and site.vip else []
        yield step(
            _join(node),
            Join(node=node, site=site, kept=kept),
            node=node,
            after=[_prepare(node), *([behind] if behind else []), *turn, *routed],
            effects=[Effect(Verb.MAKE, "node", node.name)],
        )


def _ready(node: Node, site: Site, *, after: Sequence[str]) -> Step:
    return step(_back(node), Ready(node=node, site=site), node=node, after=after)


def _departure(roster: Roster, node: Node, site: Site, *, after: Sequence[str]) -> Iterator[Step]:
    """A master goes: only if etcd can do without it, which is asked before its pods have to move."""
    yield permitted(node, site, after=after)
    yield drained(roster, node, site, after=[permit_id(node)])
    effects = [Effect(Verb.REMOVE, "etcd member", node.name)]
    yield step(_leave(node), Leave(node=node, site=site), node=node, after=[drain_id(node)], effects=effects)


def _forgotten(node: Node, site: Site) -> Step:
    effects = [Effect(Verb.REMOVE, "node", node.name)]
    return step(_forget(node), Forget(node=node, site=site), node=node, effects=effects)


def _proofs(roster: Roster, site: Site) -> Iterator[Step]:
    """That pods run, and the cluster's credentials for whoever uses it."""
    ready = [_back(node) for node in roster.after]
    if roster.parameters.smoke_test:
        yield step(SMOKE, Smoke(site=site, nodes=roster.after), after=ready)
    name = roster.parameters.vim_name_for(site.instance)
    after = [SMOKE] if roster.parameters.smoke_test else ready
    made = [Effect(Verb.MAKE, "VIM", name)]
    yield step(REGISTER, Register(site=site, vim_name=name), after=after, effects=made)


def setup_of(roster: Roster) -> dict[str, object]:
    """The parts of the request that a machine is prepared with, in the request's own words."""
    request = roster.situation.request
    given = {} if isinstance(request, ModifyRequest) else request.additional_params.get(NAME) or {}
    if not isinstance(request, InstantiateRequest):
        given = merge_patch(roster.situation.instance.parameters.get(NAME) or {}, given)
    wanted = ("source", "proxy", "private_registry_connection_info")
    return {key: given[key] for key in wanted if given.get(key) is not None}


def _prepare(node: Node) -> str:
    return f"prepare {node.slot}"


def _balance(node: Node) -> str:
    return f"balance {node.slot}"


def _route(node: Node, healed: Node) -> str:
    return _balance(node) if node.slot == healed.slot else f"{_balance(node)} for {healed.slot}"


def _join(node: Node) -> str:
    return f"join {node.slot}"


def _back(node: Node) -> str:
    return f"ready {node.slot}"


def _leave(node: Node) -> str:
    return f"leave etcd {node.slot}"


def _forget(node: Node) -> str:
    return f"forget {node.slot}"
