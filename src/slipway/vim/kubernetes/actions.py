"""What the steps of a Kubernetes VIM do: apply a wave, wait, remove, let pods be made anew. Each can be run twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from slipway.kube.api import Api
from slipway.kube.deletion import Doomed, delete
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectRef, Propagation, uid_of
from slipway.kube.ownership import Owner
from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.errors import VimError
from slipway.model.machine import PREREQUISITE, FoundObject, Outcome
from slipway.vim.kubernetes.account import account_of
from slipway.vim.kubernetes.apply_object import apply_object
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
)
from slipway.vim.kubernetes.cluster_api import removal_rounds
from slipway.vim.kubernetes.inventory import NONE_THERE, labelled, labelled_of
from slipway.vim.kubernetes.object_plan import CONTENT, OBJECT, VDU, FileObjects, ObjectPlan
from slipway.vim.kubernetes.object_steps import READY_TIMEOUT, REMOVE_TIMEOUT
from slipway.vim.kubernetes.session import Session, vim_errors
from slipway.vim.kubernetes.used_by_others import SHARED, refuse_if_used
from slipway.vim.kubernetes.vnfcs import list_placed_vnfcs
from slipway.vim.kubernetes.waits import let_new_pods_leave_first, until_gone, until_ready, until_vnfcs
from slipway.vim.kubernetes.waves import DEFINITION, Wave, wave_of
from slipway.waiting import Backoff

CHECK_TIMEOUT = 120.0  # seconds
APPLY_TIMEOUT = 600.0  # seconds: a webhook that is to be asked may only just be starting
AWAY_TIMEOUT = 120.0  # for an API server that does not answer to come back
ESTABLISHED_TIMEOUT = 120.0  # for definitions


class ObjectActions:
    def __init__(self, api: Callable[[VimConnection], Api]) -> None:
        self._api = api
        self.all: tuple[Action[Any], ...] = (
            Action(APPLY, Apply, self._apply, self._undo_apply, timeout=APPLY_TIMEOUT + READY_TIMEOUT),
            Action(WAIT, WaitReady, self._wait, _nothing, timeout=READY_TIMEOUT + 60),
            Action(REMOVE, Remove, self._remove, self._undo_remove, timeout=REMOVE_TIMEOUT + READY_TIMEOUT),
            Action(DELETE_PODS, DeletePods, self._delete_pods, timeout=READY_TIMEOUT + 60),
            Action(CHECK_UNUSED, CheckUnused, self._check_unused, _nothing, timeout=CHECK_TIMEOUT),
            Action(SWEEP, Sweep, self._sweep, timeout=REMOVE_TIMEOUT),
        )

    @asynccontextmanager
    async def session(self, ctx: StepContext) -> AsyncIterator[Session]:
        connection = await ctx.connection()
        with vim_errors():
            async with self._api(connection) as api:
                await _until_served(api)
                namespace = account_of(connection).namespace
                yield Session(api, Owner(ctx.instance_id, ctx.operation_id), namespace, ctx)

    async def _apply(self, args: Apply, ctx: StepContext) -> Outcome:
        async with self.session(ctx) as session:
            known = {one.id for one in args.former}
            objects = await _applied(session, args.files, args.namespace, present=known, force=args.force)
            definitions = [one.ref for one in map(Placed.found, objects) if _group_kind(one) == DEFINITION]
            await until_ready(session, definitions, (), ESTABLISHED_TIMEOUT)
            return Outcome(objects=tuple(objects))

    async def _undo_apply(self, args: Apply, ctx: StepContext) -> Outcome:
        """What was made goes; what was changed becomes as it was, with the pods that it had if they are there."""
        former = {one.id for one in args.former}
        made = [Placed.planned(one) for one in args.objects if one.id not in former]
        async with self.session(ctx) as session:
            await remove_objects(session, await _placed(session, made, args.namespace), 0, unless_used=True)
            vdus = [Placed.planned(one) for one in args.former if one.vdu]
            known = {id_ for ids in args.pods.values() for id_ in ids}
            await let_new_pods_leave_first(session, await roots_of(session, vdus, args.namespace), known)
            changed = await _changed_since(session, args)
            objects = await _applied(session, changed, args.namespace, present=former, force=True)
            waited: list[ObjectPlan | Placed] = [*(one for file in changed for one in file.objects), *vdus]
            found = await _until_ready(session, waited, args.namespace, args.rules)
            pods = await until_vnfcs(session, found, {one.vdu for one in vdus})
            former_pods = {id_ for vdu in vdus for id_ in args.pods.get(vdu.vdu or "", ())}
            ids = (*(one.id for one in made), *(PREREQUISITE + one.id for one in made))
            return Outcome(
                objects=tuple(objects),
                machines=tuple(pods),
                removed=(*ids, *sorted(former_pods - {pod.id for pod in pods})),
            )

    async def _wait(self, args: WaitReady, ctx: StepContext) -> Outcome:
        async with self.session(ctx) as session:
            found = await _until_ready(session, args.objects, args.namespace, args.rules)
            pods = await until_vnfcs(session, found, {one.vdu for one in args.vdus})
            known = {id_ for ids in args.pods.values() for id_ in ids}
            return Outcome(machines=tuple(pods), removed=tuple(sorted(known - {pod.id for pod in pods})))

    async def _remove(self, args: Remove, ctx: StepContext) -> Outcome:
        async with self.session(ctx) as session:
            await remove_objects(session, args.objects, args.grace_seconds)
            return Outcome(removed=(*(one.id for one in args.objects), *args.pods))

    async def _undo_remove(self, args: Remove, ctx: StepContext) -> Outcome:
        async with self.session(ctx) as session:
            objects = await _applied(session, args.before, args.namespace)
            plans = [one for file in args.before for one in file.objects]
            found = await _until_ready(session, plans, args.namespace, args.rules)
            pods = await until_vnfcs(session, found, {one.vdu for one in plans if one.vdu})
            return Outcome(objects=tuple(objects), machines=tuple(pods))

    async def _delete_pods(self, args: DeletePods, ctx: StepContext) -> Outcome:
        async with self.session(ctx) as session:
            roots = await roots_of(session, args.vdus, args.namespace)
            there = await list_placed_vnfcs(session.api, roots)
            doomed = [Doomed(ref, vnfc.id) for vnfc, ref in there if vnfc.id in args.pods]
            await gather_or_cancel(delete(session.api, one) for one in doomed)
            await until_gone(session, doomed, READY_TIMEOUT)
            objects = await _applied(session, args.again, args.namespace)
            found = await _until_ready(session, args.vdus, args.namespace, args.rules)
            pods = await until_vnfcs(session, found, {one.vdu for one in args.vdus}, gone=args.pods)
            return Outcome(objects=tuple(objects), machines=tuple(pods), removed=args.pods)

    async def _check_unused(self, args: CheckUnused, ctx: StepContext) -> Outcome:
        async with self.session(ctx) as session:
            await refuse_if_used(session, args.objects)
            return Outcome()

    async def _sweep(self, args: Sweep, ctx: StepContext) -> Outcome:
        async with self.session(ctx) as session:
            for left in removal_rounds(await _everything_labelled(session, args.namespaces)):
                doomed = [Doomed(_ref(one), uid_of(one)) for one in left]
                await gather_or_cancel(delete(session.api, one, propagation=_propagation(one.ref)) for one in doomed)
                await until_gone(session, doomed, REMOVE_TIMEOUT)
            return Outcome()


async def _until_served(api: Api) -> None:
    """An API server may be away for a minute: each attempt of a step begins with waiting for it."""
    backoff = Backoff(0.5, 10.0, timeout=AWAY_TIMEOUT)
    while True:
        try:
            await api.discovery.everything()
            return
        except KubeError as error:
            if not error.temporary or not await backoff.pause():
                raise


async def _nothing(args: WaitReady | CheckUnused, ctx: StepContext) -> Outcome:
    """Nothing was changed. What a wait noted is noted anew by the undo of what was applied."""
    return Outcome()


async def _until_ready(
    session: Session, objects: Sequence[ObjectPlan | Placed], override: str | None, rules: tuple[FileObjects, ...]
) -> dict[ObjectRef, Object]:
    refs = {await session.ref(one, override): one for one in objects}
    expiring = [ref for ref, one in refs.items() if one.expires]
    return await until_ready(session, list(refs), await session.rules(rules), READY_TIMEOUT, expiring=expiring)


async def _applied(
    session: Session,
    files: tuple[FileObjects, ...],
    override: str | None,
    *,
    present: Iterable[str] = (),
    force: bool = False,
) -> list[FoundObject]:
    there = set(present)

    async def one(plan: ObjectPlan, content: Object) -> FoundObject:
        with vim_errors(plan):
            return await apply_object(
                session, plan, content, override, present=plan.id in there, force=force, limit=APPLY_TIMEOUT
            )

    manifests = await session.manifests(files)
    return await gather_or_cancel(one(plan, manifest.content) for plan, manifest in manifests)


async def remove_objects(
    session: Session, objects: Sequence[Placed], grace: int | None, *, unless_used: bool = False
) -> None:
    """Those that are the instance's, and are then waited for. `unless_used`: VimError when others hang on them."""
    kinds = {(one.api_version, one.kind, one.namespace) for one in objects}
    names = {one.ref for one in objects}
    ours = [one for one in await labelled(session.api, session.owner.instance_id, kinds) if _ref(one) in names]
    if unless_used:
        refs = {_ref(one) for one in ours}
        await refuse_if_used(session, [one for one in objects if one.ref in refs and one.kind in SHARED])
    for some in removal_rounds(ours):
        await _remove_at_once(session, some, grace)


async def _remove_at_once(session: Session, ours: Sequence[Object], grace: int | None) -> None:
    roots = [one for one in ours if VDU in (one["metadata"].get("annotations") or {})]
    vnfcs = await list_placed_vnfcs(session.api, roots) if grace is not None else []
    doomed = [Doomed(_ref(one), uid_of(one)) for one in ours]
    await gather_or_cancel(
        delete(session.api, one, grace=grace if one.ref.kind == "Pod" else None, propagation=_propagation(one.ref))
        for one in doomed
    )
    pods = [Doomed(ref, vnfc.id) for vnfc, ref in vnfcs if ref.kind == "Pod"]
    await gather_or_cancel(delete(session.api, one, grace=grace) for one in pods)
    await until_gone(session, doomed, REMOVE_TIMEOUT)


async def _everything_labelled(session: Session, namespaces: Sequence[str]) -> list[Object]:
    """Of every kind that can be listed, cluster-wide; where that is not allowed, in the namespaces that are known."""

    async def some(resource: Any) -> list[Object]:
        places: list[str | None] = [None]
        for _ in range(2):
            try:
                pages = [await labelled_of(session.api, session.owner.instance_id, resource, place) for place in places]
                return [one for page in pages for one in page]
            except KubeError as error:
                if error.status in NONE_THERE:
                    return []
                if error.status != 403:
                    raise
                places = [*namespaces] if resource.namespaced else []
        return []

    resources = [one for one in await session.api.discovery.everything() if {"list", "delete"} <= one.verbs]
    found = await gather_or_cancel(some(resource) for resource in resources)
    by_uid = {uid_of(one): one for some_ in found for one in some_}  # several versions of a kind
    return list(by_uid.values())


async def _changed_since(session: Session, args: Apply) -> tuple[FileObjects, ...]:
    """Of what was there before, what is not as it was applied then: the rest is left to whoever changed it."""
    placed = await _placed(session, [Placed.planned(one) for one in args.former], args.namespace)
    kinds = {(one.api_version, one.kind, one.namespace) for one in placed}
    ours = await labelled(session.api, session.owner.instance_id, kinds)
    notes = [one["metadata"].get("annotations") or {} for one in ours]
    applied = {one.get(OBJECT): one.get(CONTENT) for one in notes}
    return tuple(
        replace(file, objects=tuple(one for one in file.objects if applied.get(one.id) != one.digest))
        for file in args.before
    )


async def roots_of(session: Session, vdus: Sequence[Placed], override: str | None) -> list[Object]:
    """The objects that the VDUs are, as far as they are there and the instance's."""
    placed = await _placed(session, vdus, override)
    kinds = {(one.api_version, one.kind, one.namespace) for one in placed}
    names = {one.ref for one in placed}
    ours = await labelled(session.api, session.owner.instance_id, kinds)
    return [one for one in ours if _ref(one) in names and VDU in (one["metadata"].get("annotations") or {})]


async def _placed(session: Session, objects: Sequence[Placed], override: str | None) -> list[Placed]:
    """With their namespaces; without those that can't be there: of a kind that nobody serves, or in no place of it."""
    placed = []
    for one in objects:
        try:
            ref = await session.ref(one, override)
        except KubeError as error:
            if error.status != 404:
                raise
            continue
        except VimError:  # it has a namespace, and its kind has none
            continue
        placed.append(replace(one, namespace=ref.namespace))
    return placed


def _propagation(ref: ObjectRef) -> Propagation:
    """Workloads stay until their pods are gone, so that none is left when they are.

    Not so custom resources: the garbage collector learns of a new kind within half a minute only, and what belongs to
    them is for their controllers to remove.
    """
    return "Foreground" if wave_of(ref.api_version, ref.kind) is Wave.WORKLOADS else "Background"


def _ref(one: Object) -> ObjectRef:
    metadata = one["metadata"]
    return ObjectRef(one["apiVersion"], one["kind"], metadata["name"], metadata.get("namespace"))


def _group_kind(one: Placed) -> tuple[str, str]:
    return one.api_version.rpartition("/")[0], one.kind
