"""From a change to steps for Helm releases: one chart after another, each waited for; what is no longer wanted goes.

upgrade release web ── upgrade release db ── uninstall releases
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from slipway.model.errors import Unprocessable
from slipway.model.machine import Found, FoundObject
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.target import Change, VnfTarget
from slipway.vim.kubernetes.arguments import (
    DELETE_PODS,
    SWEEP,
    WAIT,
    DeletePods,
    Placed,
    Sweep,
    WaitReady,
    as_args,
)
from slipway.vim.kubernetes.cnf_parameters import FILES, FORCE
from slipway.vim.kubernetes.helm.arguments import UNINSTALL, UPGRADE, ChartSource, Uninstall, Upgrade, VduObject
from slipway.vim.kubernetes.helm.chart import files_of_chart, read_chart
from slipway.vim.kubernetes.helm.parameters import (
    CHART,
    CHARTS,
    HelmParameters,
    WantedChart,
    check_scaled,
    helm_parameters,
    uses_helm,
)
from slipway.vim.kubernetes.helm.releases import KIND, is_of_release, of_releases, release_id, release_name
from slipway.vim.kubernetes.helm.values import with_value
from slipway.vim.kubernetes.manifests import rules_in
from slipway.vim.kubernetes.object_plan import FileObjects, PlanStruct
from slipway.vim.kubernetes.object_steps import READY_TIMEOUT, REMOVE_TIMEOUT, has_other_pods, unused_checks

HELM_SECONDS = 600.0  # for one call of Helm: hooks of a chart may take their time
UPGRADE_TIMEOUT = 2 * HELM_SECONDS + READY_TIMEOUT
UNINSTALL_TIMEOUT = HELM_SECONDS + REMOVE_TIMEOUT
LABEL_LENGTH = 32  # of a digest: a label has at most 63 characters


@dataclass(frozen=True)
class WantedRelease:
    key: str
    name: str
    source: ChartSource
    values: dict[str, object]
    vdus: dict[str, VduObject]
    digest: str

    @property
    def id(self) -> str:
        return release_id(self.key)


def is_made_of_releases(change: Change, found: Found) -> bool:
    there = of_releases((*found.objects, *change.inventory.objects))
    return bool(there) or uses_helm(change.after) or (change.after is None and uses_helm(change.before))


def release_steps(change: Change, found: Found) -> Plan:
    if change.after is None:
        return _removal(change, found)
    everyone = {one.id for one in change.inventory.machines}
    if change.renewal.everything and change.renewal.members >= everyone:
        return Plan.chain(_removal(change, found), _towards(change, change.after, Found()))
    return _towards(change, change.after, found)


def wanted_releases(target: VnfTarget, instance_id: str) -> list[WantedRelease]:
    """In the order of the request. PackageError when a chart of the package can't be used. Pure."""
    parameters = helm_parameters(target)
    _refuse_objects_beside_charts(target)
    return [_wanted(target, parameters, chart, instance_id) for chart in parameters.charts]


def _wanted(target: VnfTarget, parameters: HelmParameters, chart: WantedChart, instance_id: str) -> WantedRelease:
    source, known = _source(target, chart)
    vdus, values = {}, dict(chart.values)
    for vdu, where in parameters.vdus.items():
        if where.release != chart.key:
            continue
        path = where.replicas or known.get(vdu)
        check_scaled(target, vdu, path)
        number = target.counts[vdu] if path else None
        value = ".".join(path) if path else None
        vdus[vdu] = VduObject(name=where.name, kind=where.kind, replicas=number, value=value)
        if path:
            values = with_value(values, path, number)
    content = msgspec.json.encode([_content(source), values, msgspec.to_builtins(vdus)], order="sorted")
    digest = sha256(content).hexdigest()[:LABEL_LENGTH]
    return WantedRelease(chart.key, release_name(chart.key, instance_id), source, values, vdus, digest)


def _refuse_objects_beside_charts(target: VnfTarget) -> None:
    """Manifests that a VNFD names beside charts are for readiness rules, unless the request chooses the charts."""
    manifests, charts = target.flavour.manifests, target.flavour.charts
    if not charts or any(target.parameters.get(name) is not None for name in (CHART, CHARTS)):
        return
    others = [path for path in manifests if path in target.files and not rules_in(path, target.files[path].content)[1]]
    if others:
        raise Unprocessable(
            f"The VNFD names charts ({charts[0]}) and manifests ({others[0]}), and a VNF is made of one or the other; "
            f"say which: additionalParams.{CHART}, or {FILES}."
        )


def _rules(target: VnfTarget | None) -> tuple[FileObjects, ...]:
    """Files with readiness rules, of those that the VNFD names beside charts."""
    if target is None:
        return ()
    files = {path: target.files[path] for path in target.flavour.manifests if path in target.files}
    return tuple(
        FileObjects(vnfd_id=target.vnfd_id, path=path, digest=file.digest)
        for path, file in files.items()
        if rules_in(path, file.content)[0]
    )


def _content(source: ChartSource) -> object:
    """What a chart is, wherever it is read from and whoever may read it: two packages may have the same one."""
    if source.path is None:
        return [source.url, source.chart, source.version]
    return {name.removeprefix(source.path): digest for name, digest in source.files.items()}


def _source(target: VnfTarget, chart: WantedChart) -> tuple[ChartSource, Mapping[str, tuple[str, ...]]]:
    """And which values it says to be the numbers of VDUs; of one that is elsewhere that is not known yet."""
    if there := chart.repository:
        source = ChartSource(
            url=there.url,
            chart=there.chart,
            version=there.version,
            ca=there.ca,
            username=there.username,
            password=there.password,
        )
        return source, {}
    path = chart.path or ""
    files = files_of_chart(path, target.files)
    read = read_chart(path, {name: file.content for name, file in files.items()})
    digests = {name: file.digest for name, file in files.items()}
    return ChartSource(vnfd_id=target.vnfd_id, path=path, files=digests), read.replicas


def _towards(change: Change, after: VnfTarget, found: Found) -> Plan:
    wanted = wanted_releases(after, change.instance_id)
    there = {one.id: one for one in of_releases(found.objects)}
    stale = [
        one for one in wanted if one.id not in there or (there[one.id].digest != one.digest and _is_chosen(change, one))
    ]
    surplus = [one for id_, one in there.items() if id_ not in {one.id for one in wanted}]
    upgrades = [_upgrade(change, after, one, there.get(one.id), found) for one in stale]
    steps = [*upgrades, *_delete_pods(change, found)]
    settled = [one for one in wanted if one not in stale]
    if not steps and settled and has_other_pods(change, found):
        steps.append(_wait(change, found))
    steps += _uninstalls(change, surplus, found)
    steps = [*unused_checks(_objects_of(surplus, found)), *steps]
    return Plan.chain(*(Plan.of(step) for step in steps))


def _is_chosen(change: Change, one: WantedRelease) -> bool:
    """A release is upgraded as a whole, for any of its VDUs; one of others follows with the next operation."""
    return change.chosen_vdus is None or not one.vdus or not change.chosen_vdus.isdisjoint(one.vdus)


def _upgrade(change: Change, after: VnfTarget, one: WantedRelease, there: FoundObject | None, found: Found) -> Step:
    was = wanted_releases(change.before, change.instance_id) if change.before else []
    former = next((before.vdus for before in was if before.key == one.key), {})
    known = next((thing for thing in of_releases(change.inventory.objects) if thing.id == one.id), None)
    stood = known or there
    objects = {thing.id: thing for thing in (*change.inventory.objects, *found.objects)}  # what is gone leaves them
    args = Upgrade(
        key=one.key,
        release=one.name,
        source=one.source,
        values=one.values,
        digest=one.digest,
        vdus=one.vdus,
        namespace=_namespace(change, after),
        revision=int(stood.fields) if there and stood and stood.fields else None,
        former=former if there else {},
        force=change.additional_params.get(FORCE) is True,
        objects=tuple(Placed.found(thing) for thing in objects.values() if is_of_release(thing, one.key)),
        fields={
            thing.id: thing.fields
            for thing in change.inventory.objects
            if thing.fields and is_of_release(thing, one.key)
        },
        pods=_pods(change, found, one.vdus),
        rules=_rules(after),
        former_rules=_rules(change.before) if there else (),
    )
    effect = Effect(Verb.CHANGE if there else Verb.MAKE, KIND, one.name)
    return _step(f"{'upgrade' if there else 'install'} release {one.key}", UPGRADE, args, [effect], UPGRADE_TIMEOUT)


def _namespace(change: Change, after: VnfTarget) -> str | None:
    """That of the releases there are; of the first ones the VIM says it now, whatever it says when they are made."""
    recorded = (one.namespace for one in of_releases(change.inventory.objects) if one.namespace)
    return helm_parameters(after).namespace or next(recorded, change.namespace)


def _parameter(before: VnfTarget | None) -> str | None:
    return helm_parameters(before).namespace if before and uses_helm(before) else None


def _delete_pods(change: Change, found: Found) -> Iterable[Step]:
    """Others come in their place, so there is no way back."""
    chosen = [one for one in found.machines if one.id in change.renewal.members]
    if not chosen:
        return
    roots = [one for one in found.objects if one.vdu in {pod.vdu for pod in chosen}]
    if bare := [one for one in roots if one.kind == "Pod"]:
        raise Unprocessable(
            f"Pod {bare[0].name} of VDU {bare[0].vdu} has no controller that would make it anew; heal the whole VNF, "
            "or make it a Deployment in the chart."
        )
    args = DeletePods(
        pods=tuple(sorted(one.id for one in chosen)),
        vdus=tuple(map(Placed.found, roots)),
        rules=_rules(change.after),
    )
    effects = [Effect(Verb.REMOVE, one.type or "Pod", one.name) for one in chosen]
    yield _step("delete pods", DELETE_PODS, args, effects, READY_TIMEOUT + 60, irreversible=True)


def _wait(change: Change, found: Found) -> Step:
    """Pods come and go by themselves: the record is brought up to date."""
    roots = tuple(Placed.found(one) for one in found.objects if one.vdu)
    vdus = {one.vdu for one in roots if one.vdu}
    pods = {vdu: _pods(change, found, [vdu]) for vdu in sorted(vdus)}
    args = WaitReady(objects=roots, vdus=roots, rules=_rules(change.after), pods=pods)
    return _step("wait until ready", WAIT, args, (), READY_TIMEOUT + 60)


def _uninstalls(change: Change, gone: Sequence[FoundObject], found: Found) -> Iterable[Step]:
    """Of charts that a new package lacks. Their data goes with them, so at the very end and for good."""
    if not gone:
        return
    objects = _objects_of(gone, found)
    args = Uninstall(
        releases={one.id: (one.name, one.namespace or "") for one in gone},
        objects=tuple(map(Placed.found, objects)),
        pods=_pods(change, found, {one.vdu for one in objects if one.vdu}),
    )
    effects = [Effect(Verb.REMOVE, KIND, one.name) for one in gone]
    yield _step("uninstall releases", UNINSTALL, args, effects, UNINSTALL_TIMEOUT, irreversible=True, last=True)


def _objects_of(releases: Sequence[FoundObject], found: Found) -> list[FoundObject]:
    return [one for one in found.objects if any(one.id.startswith(f"{release.id}/") for release in releases)]


def _removal(change: Change, found: Found) -> Plan:
    """Everything, and whatever else has the label."""
    there = {one.id: one for one in (*of_releases(change.inventory.objects), *of_releases(found.objects))}
    if not there and change.before is None:
        return Plan()
    args = Uninstall(
        releases={one.id: (one.name, one.namespace or "") for one in there.values()},
        objects=tuple(Placed.found(one) for one in found.objects if is_of_release(one)),
        pods=tuple(sorted({one.id for one in (*found.machines, *change.inventory.machines)})),
        namespaces=tuple(sorted({one.namespace for one in there.values() if one.namespace})),
        namespace=_parameter(change.before) or change.namespace,
        all=True,
        grace_seconds=None if change.renewal.members else change.grace_seconds,
    )
    effects = [Effect(Verb.REMOVE, KIND, one.name) for one in there.values()]
    timeout = UNINSTALL_TIMEOUT + change.grace_seconds
    places = {one.namespace for one in (*change.inventory.objects, *found.objects) if one.namespace}
    sweep = Sweep(namespaces=tuple(sorted(places)))
    return Plan.chain(
        *(Plan.of(step) for step in unused_checks([one for one in found.objects if is_of_release(one)])),
        Plan.of(_step("uninstall releases", UNINSTALL, args, effects, timeout, irreversible=True)),
        Plan.of(_step("remove what else is left", SWEEP, sweep, (), REMOVE_TIMEOUT, irreversible=True)),
    )


def _pods(change: Change, found: Found, vdus: Iterable[str]) -> tuple[str, ...]:
    names = set(vdus)
    return tuple(sorted({one.id for one in (*found.machines, *change.inventory.machines) if one.vdu in names}))


def _step(
    id_: str,
    action: str,
    args: PlanStruct,
    effects: Iterable[Effect],
    timeout: float,
    *,
    irreversible: bool = False,
    last: bool = False,
) -> Step:
    return Step(
        id=id_,
        action=action,
        args=as_args(args),
        effects=tuple(effects),
        irreversible=irreversible,
        last=last,
        timeout=timeout,
    )
