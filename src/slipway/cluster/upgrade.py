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

from slipway.cluster.change import ClusterChange, Nodes, masters, workers
from slipway.cluster.parameters import NAME, PATH, ClusterParameters
from slipway.cluster.planning import batches, drain_id, drain_step, quorum_id, quorum_step, step
from slipway.cluster.plans import FETCH_SECONDS, SMOKE
from slipway.cluster.recorded import recorded_version, upgrade_is_unfinished
from slipway.cluster.request import ClusterRequest
from slipway.cluster.schema import Refusal
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.arguments import Examine, Fetch, RecordVersion, Restart, SmokeTest, Uncordon, Upgrade
from slipway.cluster.versions import Version, refuse_upgrade, version
from slipway.model.errors import BadRequest, RequestError, Unprocessable
from slipway.model.hooks import Edges, HookPlan
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.situation import Situation

HOOK = "change_current_package_end"
RECORD = "record the version"


def plan_upgrade(change: ClusterChange, edges: Edges) -> HookPlan:
    new = wanted_version(change.request)
    if new is None or "end" not in edges:
        return HookPlan()
    control = masters(change.after)
    cluster = msgspec.structs.replace(change.cluster(control), version=str(new))
    source = change.parameters.source.kind
    steps = list(_fetches(change, cluster)) if source != "image" else []
    for node in change.after:
        after = [_fetch(node)] if source != "image" else []
        steps.append(step(_examine(node), Examine(node=node, cluster=cluster, source=source), node=node, after=after))
    before = [_examine(node) for node in change.after]
    for turn in _turns(change):
        steps += [one for node in turn for one in _one(change, node, cluster, after=before)]
        before = [_uncordon(node) for node in turn]
    if change.parameters.smoke_test:
        steps.append(step(SMOKE, SmokeTest(cluster=cluster, nodes=change.after), after=before))
        before = [SMOKE]
    changed = [Effect(Verb.CHANGE, "cluster", f"{cluster.name} to Kubernetes {new}")]
    return HookPlan(end=Plan.of(*steps, step(RECORD, RecordVersion(cluster=cluster), after=before, effects=changed)))


def wanted_version(request: ClusterRequest) -> Version | None:
    """What the request names, or the image of the new package's masters. None: the cluster stays as it is."""
    situation, parameters, given = request.situation, request.parameters, request.asked
    if given.get("kubernetes_version") is not None:
        new = parameters.kubernetes_version
        wanted = checked_upgrade(situation, new, f"{PATH}.kubernetes_version", BadRequest) if new else None
        if wanted:
            _check_source(parameters, given, wanted)
        return wanted
    if parameters.script_path is not None or parameters.source.kind != "image":
        return None
    vdu = request.checked.masters.vdu
    image = situation.flavour.vdus[vdu].image
    new = _version_in(image.version if image else None)
    return (
        checked_upgrade(situation, new, f"vnfdId: the image of {vdu} has Kubernetes {new}", Unprocessable)
        if new
        else None
    )


def _check_source(parameters: ClusterParameters, given: Mapping[str, Any], wanted: Version) -> None:
    """BadRequest where the nodes' programs come from elsewhere than their image and could not be those of `wanted`."""
    if parameters.script_path is not None:
        raise BadRequest(
            f"{PATH}.script_path: nodes that a script made stay at their version; leave kubernetes_version as it is."
        )
    if parameters.source.kind == "files" and given.get("source") is None:
        raise BadRequest(f"{PATH}.source.files: they are of the version that the nodes have; name those of {wanted}.")


def checked_upgrade(situation: Situation, new: Version, at: str, kind: type[RequestError]) -> Version | None:
    """Itself, or None when every node has it."""
    vnf = situation.instance.vnf
    stored = (situation.instance.parameters.get(NAME) or {}).get("kubernetes_version")
    old = recorded_version(vnf) or _version_in(stored)
    unfinished = upgrade_is_unfinished(vnf)
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


def _turns(change: ClusterChange) -> list[Nodes]:
    others = workers(change.after)
    return [*((node,) for node in masters(change.after)), *batches(others, len(others))]


def _one(change: ClusterChange, node: Node, cluster: ClusterSpec, *, after: Sequence[str]) -> Iterator[Step]:
    control = cluster.masters
    if node.master and len(control) > 1:
        yield quorum_step(node, cluster, after=after)
        after = [quorum_id(node)]
    source = change.parameters.source.kind
    upgrade = Upgrade(node=node, cluster=cluster, first=node == control[0], source=source)
    yield step(_upgrade(node), upgrade, node=node, after=after)
    yield drain_step(change, node, cluster, after=[_upgrade(node)], unless=cluster.version)
    yield step(_restart(node), Restart(node=node, cluster=cluster, source=source), node=node, after=[drain_id(node)])
    yield step(_uncordon(node), Uncordon(node=node, cluster=cluster), node=node, after=[_restart(node)])


def _fetches(change: ClusterChange, cluster: ClusterSpec) -> Iterator[Step]:
    """Everywhere before anything changes anywhere: what can't be had is known then."""
    setup, vnfd = change.request.setup, change.situation.descriptor.vnfd_id
    for node in change.after:
        yield step(
            _fetch(node), Fetch(node=node, cluster=cluster, setup=setup, vnfd=vnfd), node=node, timeout=FETCH_SECONDS
        )


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
