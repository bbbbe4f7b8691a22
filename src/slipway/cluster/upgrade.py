"""From one version of Kubernetes to the next: what is asked for, whether it can be, and in which order it is done.

Pure. Every node is looked at before any is touched; programs that do not come with its image are there by then. Then
masters one by one, each back before the next one goes, and workers some at a time. On each node, as kubeadm wants it:
its configuration is brought to the new version, its pods leave, its kubelet changes, its pods may come back. When
something fails, all that comes after it waits for a retry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from slipway.cluster.parameters import NAME, PATH, ClusterParameters
from slipway.cluster.planning import batches, drain_id, drained, permit_id, permitted, step
from slipway.cluster.plans import FETCH_SECONDS, SMOKE, setup_of
from slipway.cluster.reading import Refusal
from slipway.cluster.recorded import is_unfinished, recorded_version
from slipway.cluster.roster import Nodes, Roster, checked_of, masters, parameters_of, workers
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.arguments import Examine, Fetch, Record, Restart, Smoke, Uncordon, Upgrade
from slipway.cluster.versions import Version, refuse_upgrade, version
from slipway.model.errors import BadRequest, RequestError, Unprocessable
from slipway.model.hooks import Edges, HookPlan
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.requests import ChangePackageRequest
from slipway.model.situation import Situation

HOOK = "change_current_package_end"
RECORD = "record the version"


def upgraded(roster: Roster, edges: Edges) -> HookPlan:
    new = wanted_version(roster.situation)
    if new is None or "end" not in edges:
        return HookPlan()
    control = masters(roster.after)
    site = msgspec.structs.replace(roster.site(control), version=str(new))
    source = roster.parameters.source.kind
    steps = list(_fetches(roster, site)) if source != "image" else []
    for node in roster.after:
        after = [_fetch(node)] if source != "image" else []
        steps.append(step(_examine(node), Examine(node=node, site=site, source=source), node=node, after=after))
    before = [_examine(node) for node in roster.after]
    for turn in _turns(roster):
        steps += [one for node in turn for one in _one(roster, node, site, after=before)]
        before = [_uncordon(node) for node in turn]
    if roster.parameters.smoke_test:
        steps.append(step(SMOKE, Smoke(site=site, nodes=roster.after), after=before))
        before = [SMOKE]
    changed = [Effect(Verb.CHANGE, "cluster", f"{site.name} to Kubernetes {new}")]
    return HookPlan(end=Plan.of(*steps, step(RECORD, Record(site=site), after=before, effects=changed)))


def wanted_version(situation: Situation) -> Version | None:
    """What the request names, or the image of the new package's masters. None: the cluster stays as it is."""
    request = situation.request
    if not isinstance(request, ChangePackageRequest):
        return None
    parameters = parameters_of(situation)
    given = request.additional_params.get(NAME) or {}
    if given.get("kubernetes_version") is not None:
        new = parameters.kubernetes_version
        wanted = _checked(situation, new, f"{PATH}.kubernetes_version", BadRequest) if new else None
        if wanted:
            _check_source(parameters, given, wanted)
        return wanted
    if parameters.script_path is not None or parameters.source.kind != "image":
        return None
    vdu = checked_of(situation, parameters).masters.vdu
    image = situation.flavour.vdus[vdu].image
    new = _version_in(image.version if image else None)
    return _checked(situation, new, f"vnfdId: the image of {vdu} has Kubernetes {new}", Unprocessable) if new else None


def _check_source(parameters: ClusterParameters, given: Mapping[str, Any], wanted: Version) -> None:
    """BadRequest where the nodes' programs come from elsewhere than their image and could not be those of `wanted`."""
    if parameters.script_path is not None:
        raise BadRequest(
            f"{PATH}.script_path: nodes that a script made stay at their version; leave kubernetes_version as it is."
        )
    if parameters.source.kind == "files" and given.get("source") is None:
        raise BadRequest(f"{PATH}.source.files: they are of the version that the nodes have; name those of {wanted}.")


def _checked(situation: Situation, new: Version, at: str, kind: type[RequestError]) -> Version | None:
    """Itself, or None when every node has it."""
    vnf = situation.instance.vnf
    stored = (situation.instance.parameters.get(NAME) or {}).get("kubernetes_version")
    old = recorded_version(vnf) or _version_in(stored)
    unfinished = is_unfinished(vnf)
    refusal = refuse_upgrade(old, new) if old else None
    if unfinished and new != old:
        refusal = Refusal(f"the upgrade to {old} was given up before every node had it", f"finish it: name {old}")
    if refusal:
        raise kind(refusal.at(at))
    if new == old and not unfinished:
        return None
    if HOOK not in situation.flavour.hooks:
        raise Unprocessable(
            f"vnfdId: flavour {situation.flavour.id!r} of the new VNFD has no hook {HOOK}, which brings the cluster "
            "to another version of Kubernetes; add it, or leave the version as it is."
        )
    return new


def _version_in(text: str | None) -> Version | None:
    """Images have versions of their own, too."""
    try:
        return version(text)
    except Refusal:
        return None


def _turns(roster: Roster) -> list[Nodes]:
    others = workers(roster.after)
    return [*((node,) for node in masters(roster.after)), *batches(others, len(others))]


def _one(roster: Roster, node: Node, site: Site, *, after: Sequence[str]) -> Iterator[Step]:
    control = site.masters
    if node.master and len(control) > 1:
        yield permitted(node, site, after=after)
        after = [permit_id(node)]
    source = roster.parameters.source.kind
    upgrade = Upgrade(node=node, site=site, first=node == control[0], source=source)
    yield step(_upgrade(node), upgrade, node=node, after=after)
    yield drained(roster, node, site, after=[_upgrade(node)], unless=site.version)
    yield step(_restart(node), Restart(node=node, site=site, source=source), node=node, after=[drain_id(node)])
    yield step(_uncordon(node), Uncordon(node=node, site=site), node=node, after=[_restart(node)])


def _fetches(roster: Roster, site: Site) -> Iterator[Step]:
    """Everywhere before anything changes anywhere: what can't be had is known then."""
    setup, vnfd = setup_of(roster), roster.situation.descriptor.vnfd_id
    for node in roster.after:
        yield step(_fetch(node), Fetch(node=node, site=site, setup=setup, vnfd=vnfd), node=node, timeout=FETCH_SECONDS)


def _fetch(node: Node) -> str:
    return f"fetch {node.slot}"


def _examine(node: Node) -> str:
    return f"examine {node.slot}"


def _upgrade(node: Node) -> str:
    return f"upgrade {node.slot}"


def _restart(node: Node) -> str:
    return f"restart {node.slot}"


def _uncordon(node: Node) -> str:
    return f"uncordon {node.slot}"
