"""From a change to steps: waves of objects to apply, one wait for all of them, and what is no longer wanted goes.

    apply configuration ── apply services ── apply workloads ── wait until ready ── remove what is gone

Removing everything goes the other way, wave after wave, so that custom resources leave while their controllers run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from slipway.model.machine import PREREQUISITE, Found, FoundObject
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.target import Change, VnfTarget
from slipway.vim.kubernetes.arguments import (
    APPLY,
    CHECK_UNUSED,
    DELETE_PODS,
    REMOVE,
    SWEEP,
    WAIT,
    Apply,
    CheckUnused,
    DeletePods,
    Placed,
    Remove,
    Sweep,
    WaitReady,
    as_args,
)
from slipway.vim.kubernetes.cluster_api import MACHINE
from slipway.vim.kubernetes.cnf_parameters import FORCE, cnf_parameters, configuration_paths
from slipway.vim.kubernetes.configuration import configuration_and_users, has_same_key
from slipway.vim.kubernetes.manifests import rules_of
from slipway.vim.kubernetes.object_plan import FileObjects, PlanStruct
from slipway.vim.kubernetes.used_by_others import SHARED
from slipway.vim.kubernetes.wanted import WantedObject, home_of, in_files, wanted_objects
from slipway.vim.kubernetes.waves import FOR_GOOD, Wave, wave_of

READY_TIMEOUT = 900.0  # seconds until all is ready
REMOVE_TIMEOUT = 600.0
BARE_POD = "Pod"
KnownPods = dict[str, tuple[str, ...]]  # ids, by VDU


def steps_of(change: Change, found: Found) -> Plan:
    if change.after is None:
        return _removal(change, found)
    everyone = {one.id for one in change.inventory.machines}
    if change.renewal.everything and change.renewal.members >= everyone:
        gone = _removal(change, found)
        return Plan.chain(gone, _towards(change, change.after, Found(), known=_pods(change, found)))
    return _towards(change, change.after, found, known=_pods(change, found), recorded=change.inventory.objects)


def _towards(
    change: Change, after: VnfTarget, found: Found, known: KnownPods, recorded: Sequence[FoundObject] = ()
) -> Plan:
    """Of what is recorded and gone, Jobs that have ended by themselves are not run again."""
    ids = {one.id for one in found.objects}
    gone = [one for one in recorded if one.id not in ids]
    expired = [one for one in gone if one.expires]
    there = {one.id.removeprefix(PREREQUISITE): one for one in (*found.objects, *expired)}
    digests = {id_: one.digest for id_, one in there.items()}
    home = home_of(change.inventory.objects) or change.namespace
    wanted = wanted_objects(after, digests, home)
    was = {one.id: one for one in wanted_objects(change.before, digests, home)}
    stale = [one for one in wanted if one.id not in there or there[one.id].digest != one.plan.digest]
    here = {one.id: one for one in (*there.values(), *gone)}  # what is gone has to leave the record, too
    surplus = [one for id_, one in here.items() if id_ not in {one.id for one in wanted} and _is_ours(one)]
    if change.configuration_files:
        stale = configuration_and_users(wanted, stale, configuration_paths(change))
        surplus = [one for one in surplus if one.id in was and has_same_key(was[one.id], stale)]
    if held := _held_back(change, stale, there):
        stale = [one for one in stale if one not in held]
        surplus = [one for one in surplus if one.vdu]  # the rest may be what those still use
    applied = Plan.chain(*(Plan.of(step) for step in _applies(change, after, stale, was, there, known)))
    healed = _delete_pods(change, after, found, wanted)
    waited = Plan()
    if stale or healed.steps or has_other_pods(change, found):
        waited = Plan.of(_wait(after, stale, wanted, known))
    checked = Plan.chain(*(Plan.of(step) for step in unused_checks(surplus)))
    removed = Plan.chain(*(Plan.of(step) for step in _removes(change, surplus, was)))
    return Plan.chain(checked, applied, healed, waited, removed)


def _held_back(change: Change, stale: Sequence[WantedObject], there: Collection[str]) -> list[WantedObject]:
    """Objects of VDUs that the request does not name: they follow with the next operation."""
    if change.chosen_vdus is None:
        return []
    return [one for one in stale if one.plan.vdu and one.plan.vdu not in change.chosen_vdus and one.id in there]


def _is_ours(one: FoundObject) -> bool:
    return not one.id.startswith(PREREQUISITE)


def _applies(
    change: Change,
    after: VnfTarget,
    stale: Sequence[WantedObject],
    was: dict[str, WantedObject],
    there: dict[str, FoundObject],
    known: KnownPods,
) -> Iterable[Step]:
    for wave in Wave:
        now = [one for one in stale if one.wave is wave]
        before = [was[one.id] for one in now if one.id in there and one.id in was]
        if now:
            args = Apply(
                files=in_files(now),
                before=in_files(before),
                rules=rule_files(change.before) if before and change.before else (),
                namespace=cnf_parameters(after).namespace,
                force=change.additional_params.get(FORCE) is True,
                pods=known,
            )
            effects = [
                Effect(Verb.CHANGE if one.id in there else Verb.MAKE, one.plan.kind, one.plan.name) for one in now
            ]
            yield _step(f"apply {wave.title}", APPLY, args, effects)


def _wait(after: VnfTarget, stale: Sequence[WantedObject], wanted: Sequence[WantedObject], known: KnownPods) -> Step:
    vdus = [Placed.planned(one.plan) for one in wanted if one.plan.vdu]
    waited = {one.id: Placed.planned(one.plan) for one in stale} | {one.id: one for one in vdus}
    args = WaitReady(
        objects=tuple(waited.values()),
        vdus=tuple(vdus),
        rules=rule_files(after),
        namespace=cnf_parameters(after).namespace,
        pods=known,
    )
    return _step("wait until ready", WAIT, args, (), timeout=READY_TIMEOUT + 60)


def _delete_pods(change: Change, after: VnfTarget, found: Found, wanted: Sequence[WantedObject]) -> Plan:
    """Others come in their place, so there is no way back."""
    chosen = [one for one in found.machines if one.id in change.renewal.members]
    if not chosen:
        return Plan()
    vdus = {one.plan.vdu: one for one in wanted if one.plan.vdu in {pod.vdu for pod in chosen}}
    args = DeletePods(
        pods=tuple(sorted(one.id for one in chosen)),
        vdus=tuple(Placed.planned(one.plan) for one in vdus.values()),
        again=in_files([one for one in vdus.values() if one.plan.kind == BARE_POD]),
        rules=rule_files(after),
        namespace=cnf_parameters(after).namespace,
    )
    effects = [Effect(Verb.REMOVE, one.type or BARE_POD, one.name) for one in chosen]
    name = "delete machines" if all(one.type == MACHINE for one in chosen) else "delete pods"
    return Plan.of(_step(name, DELETE_PODS, args, effects, irreversible=True, timeout=READY_TIMEOUT + 60))


def _removal(change: Change, found: Found) -> Plan:
    """Everything, and whatever else has the label."""
    ours = [one for one in found.objects if _is_ours(one)]
    if not ours and not found.machines and not change.inventory.objects and change.before is None:
        return Plan()
    pods = tuple(sorted({*(one.id for one in found.machines), *(one.id for one in change.inventory.machines)}))
    steps = [*unused_checks(ours), *_removes(change, ours, {}, pods, for_good=True)]
    places = sorted({one.namespace for one in (*change.inventory.objects, *found.objects) if one.namespace})
    rest = Sweep(namespaces=tuple(places))
    sweep = _step("remove what else is left", SWEEP, rest, (), irreversible=True, timeout=REMOVE_TIMEOUT)
    return Plan.chain(*(Plan.of(step) for step in (*steps, sweep)))


def unused_checks(objects: Sequence[FoundObject]) -> Iterable[Step]:
    """Before anything is removed: without its controllers nobody could end what others have of a kind."""
    shared = [one for one in objects if one.kind in SHARED]
    if shared:
        args = CheckUnused(objects=tuple(Placed.found(one) for one in shared))
        yield _step("see that nobody else uses it", CHECK_UNUSED, args, ())


def _removes(
    change: Change,
    objects: Sequence[FoundObject],
    was: dict[str, WantedObject],
    pods: tuple[str, ...] = (),
    *,
    for_good: bool = False,
) -> Iterable[Step]:
    for wave in reversed(Wave):
        gone = [one for one in objects if wave_of(one.api_version or "v1", one.kind) is wave]
        if not gone:
            continue
        lost = for_good or any(one.kind in FOR_GOOD or one.id not in was for one in gone)
        before = [] if for_good else [was[one.id] for one in gone if one.id in was]
        args = Remove(
            objects=tuple(Placed.found(one) for one in reversed(gone)),
            before=in_files(before),
            rules=rule_files(change.before) if before and change.before else (),
            namespace=cnf_parameters(change.before).namespace if change.before and not for_good else None,
            pods=pods if wave is Wave.WORKLOADS else (),
            grace_seconds=change.grace_seconds if for_good and not change.renewal.members else None,
        )
        effects = [Effect(Verb.REMOVE, one.kind, one.name) for one in gone]
        timeout = REMOVE_TIMEOUT + change.grace_seconds
        yield _step(f"remove {wave.title}", REMOVE, args, effects, irreversible=lost, last=lost and not for_good,
                    timeout=timeout)  # fmt: skip


def rule_files(target: VnfTarget) -> tuple[FileObjects, ...]:
    """Those that have readiness rules."""
    files = cnf_parameters(target).files
    return tuple(
        FileObjects(vnfd_id=target.vnfd_id, path=path, digest=target.files[path].digest)
        for path in files
        if path in target.files and rules_of(target.files, [path])
    )


def _pods(change: Change, found: Found) -> KnownPods:
    """Those there are, and those of the record."""
    pods: dict[str, set[str]] = {}
    for one in (*found.machines, *change.inventory.machines):
        pods.setdefault(one.vdu, set()).add(one.id)
    return {vdu: tuple(sorted(ids)) for vdu, ids in sorted(pods.items())}


def has_other_pods(change: Change, found: Found) -> bool:
    """Pods come and go by themselves: then the record is brought up to date."""
    return {one.id for one in found.machines} != {one.id for one in change.inventory.machines}


def _step(
    id_: str,
    action: str,
    args: PlanStruct,
    effects: Iterable[Effect],
    *,
    irreversible: bool = False,
    last: bool = False,
    timeout: float | None = None,
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
