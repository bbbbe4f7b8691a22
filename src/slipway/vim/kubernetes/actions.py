"""What the steps of a Kubernetes VIM do: apply a wave, wait, remove, let pods be made anew. Each can be run twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from slipway.kube.api import Api
from slipway.kube.deletion import Doomed, delete, wait_gone
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectRef, Propagation
from slipway.kube.ownership import Owner
from slipway.kube.readiness import Rule
from slipway.kube.wait_ready import wait_ready
from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.errors import StepError, VimError, VimFault
from slipway.model.machine import FoundMachine, FoundObject, Outcome
from slipway.vim.kubernetes.account import account_of
from slipway.vim.kubernetes.apply_object import apply_object
from slipway.vim.kubernetes.arguments import (
    APPLY,
    CHECK_DEFINITIONS,
    DELETE_PODS,
    REMOVE,
    SWEEP,
    WAIT,
    Apply,
    CheckDefinitions,
    DeletePods,
    Placed,
    Remove,
    Sweep,
    WaitReady,
)
from slipway.vim.kubernetes.inventory import labelled, labelled_of
from slipway.vim.kubernetes.object_plan import CONTENT, OBJECT, PREREQUISITE, VDU, FileObjects, ObjectPlan
from slipway.vim.kubernetes.object_steps import READY_TIMEOUT, REMOVE_TIMEOUT
from slipway.vim.kubernetes.session import Session, vim_errors
from slipway.vim.kubernetes.vnfcs import list_vnfcs, wait_for_vnfcs
from slipway.vim.kubernetes.waves import DEFINITION, Wave, wave_of

APPLY_TIMEOUT = 600.0  # seconds: a webhook that is to be asked may only just be starting
ESTABLISHED_TIMEOUT = 120.0  # for definitions
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"  # the pods with the lowest leave first
LOWEST_COST = "-2147483648"


class ObjectActions:
    def __init__(self, api: Callable[[VimConnection], Api]) -> None:
        self._api = api
        self.all: tuple[Action[Any], ...] = (
            Action(APPLY, Apply, self._apply, self._undo_apply, timeout=APPLY_TIMEOUT + READY_TIMEOUT),
            Action(WAIT, WaitReady, self._wait, _forget, timeout=READY_TIMEOUT + 60),
            Action(REMOVE, Remove, self._remove, self._undo_remove, timeout=REMOVE_TIMEOUT + READY_TIMEOUT),
            Action(DELETE_PODS, DeletePods, self._delete_pods, timeout=READY_TIMEOUT + 60),
            Action(SWEEP, Sweep, self._sweep, timeout=REMOVE_TIMEOUT),
            Action(CHECK_DEFINITIONS, CheckDefinitions, self._check_definitions),
        )

    @asynccontextmanager
    async def _session(self, ctx: StepContext) -> AsyncIterator[Session]:
        connection = await ctx.connection()
        with vim_errors():
            async with self._api(connection) as api:
                namespace = account_of(connection).namespace
                yield Session(api, Owner(ctx.instance_id, ctx.operation_id), namespace, ctx)

    async def _apply(self, args: Apply, ctx: StepContext) -> Outcome:
        async with self._session(ctx) as session:
            known = {one.id for one in args.former}
            objects = await _applied(session, args.files, args.namespace, present=known, force=args.force)
            definitions = [one.ref for one in map(Placed.found, objects) if _group_kind(one) == DEFINITION]
            await _until_ready(session, definitions, (), ESTABLISHED_TIMEOUT)
            return Outcome(objects=tuple(objects))

    async def _undo_apply(self, args: Apply, ctx: StepContext) -> Outcome:
        """What was made goes; what was changed becomes as it was, with the pods that it had if they are there."""
        former = {one.id for one in args.former}
        made = [Placed.planned(one) for one in args.objects if one.id not in former]
        async with self._session(ctx) as session:
            await _remove(session, await _placed(session, made, args.namespace), 0)
            vdus = [Placed.planned(one) for one in args.former if one.vdu]
            await _let_new_pods_leave_first(session, vdus, args)
            changed = await _changed_since(session, args)
            objects = await _applied(session, changed, args.namespace, present=former, force=True)
            refs = [await session.ref(one, args.namespace) for file in changed for one in file.objects]
            refs += [await session.ref(one, args.namespace) for one in vdus]
            found = await _until_ready(session, refs, await session.rules(args.rules), READY_TIMEOUT)
            pods = await _vnfcs(session, found, vdus)
            known = {id_ for vdu in vdus for id_ in args.pods.get(vdu.vdu or "", ())}
            ids = (*(one.id for one in made), *(PREREQUISITE + one.id for one in made))
            return Outcome(
                objects=tuple(objects),
                machines=tuple(pods),
                removed=(*ids, *sorted(known - {pod.id for pod in pods})),
            )

    async def _wait(self, args: WaitReady, ctx: StepContext) -> Outcome:
        async with self._session(ctx) as session:
            refs = [await session.ref(one, args.namespace) for one in args.objects]
            found = await _until_ready(session, refs, await session.rules(args.rules), READY_TIMEOUT)
            pods = await _vnfcs(session, found, args.vdus)
            known = {id_ for ids in args.pods.values() for id_ in ids}
            return Outcome(machines=tuple(pods), removed=tuple(sorted(known - {pod.id for pod in pods})))

    async def _remove(self, args: Remove, ctx: StepContext) -> Outcome:
        async with self._session(ctx) as session:
            await _remove(session, args.objects, args.grace_seconds, pods=args.pods)
            return Outcome(removed=(*(one.id for one in args.objects), *args.pods))

    async def _undo_remove(self, args: Remove, ctx: StepContext) -> Outcome:
        async with self._session(ctx) as session:
            objects = await _applied(session, args.before, args.namespace)
            plans = [one for file in args.before for one in file.objects]
            refs = [await session.ref(one, args.namespace) for one in plans]
            found = await _until_ready(session, refs, (), READY_TIMEOUT)
            pods = await _vnfcs(session, found, [Placed.planned(one) for one in plans if one.vdu])
            return Outcome(objects=tuple(objects), machines=tuple(pods))

    async def _delete_pods(self, args: DeletePods, ctx: StepContext) -> Outcome:
        async with self._session(ctx) as session:
            roots = await _roots(session, args.vdus, args.namespace)
            there = [one for one in await list_vnfcs(session.api, roots) if one.id in args.pods]
            places = {root["metadata"]["annotations"][VDU]: root["metadata"]["namespace"] for root in roots}
            doomed = [Doomed(ObjectRef("v1", "Pod", one.name, places[one.vdu]), one.id) for one in there]
            await gather_or_cancel(delete(session.api, one) for one in doomed)
            await _until_gone(session, doomed, READY_TIMEOUT)
            objects = await _applied(session, args.again, args.namespace)
            refs = [await session.ref(one, args.namespace) for one in args.vdus]
            found = await _until_ready(session, refs, await session.rules(args.rules), READY_TIMEOUT)
            pods = await _vnfcs(session, found, args.vdus, gone=args.pods)
            return Outcome(objects=tuple(objects), machines=tuple(pods), removed=args.pods)

    async def _check_definitions(self, args: CheckDefinitions, ctx: StepContext) -> Outcome:
        async with self._session(ctx) as session:
            names = {one.ref for one in args.objects}
            ours = await labelled(session.api, ctx.instance_id, {(one.api_version, one.kind, None) for one in names})
            await _refuse_definitions_in_use(session, [one for one in ours if _ref(one) in names])
            return Outcome()

    async def _sweep(self, args: Sweep, ctx: StepContext) -> Outcome:
        async with self._session(ctx) as session:
            left = await _everything_labelled(session, args.namespaces)
            doomed = [Doomed(_ref(one), one["metadata"]["uid"]) for one in left]
            await gather_or_cancel(delete(session.api, one, propagation=_propagation(one.ref)) for one in doomed)
            await _until_gone(session, doomed, REMOVE_TIMEOUT)
            return Outcome()


async def _forget(args: WaitReady, ctx: StepContext) -> Outcome:
    """Nothing was changed; what was noted is noted anew by the undo of what was applied."""
    return Outcome()


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


async def _remove(session: Session, objects: Sequence[Placed], grace: int | None, *, pods: Sequence[str] = ()) -> None:
    """Those that are the instance's, and are then waited for."""
    kinds = {(one.api_version, one.kind, one.namespace) for one in objects}
    names = {one.ref for one in objects}
    ours = [one for one in await labelled(session.api, session.owner.instance_id, kinds) if _ref(one) in names]
    await _refuse_definitions_in_use(session, ours)
    ours = await _owners_gone(session, ours)
    roots = [one for one in ours if VDU in (one["metadata"].get("annotations") or {})]
    vnfcs = [one for one in await list_vnfcs(session.api, roots) if one.type == "Pod"] if grace is not None else []
    doomed = [Doomed(_ref(one), one["metadata"]["uid"]) for one in ours]
    await gather_or_cancel(
        delete(session.api, one, grace=grace if one.ref.kind == "Pod" else None, propagation=_propagation(one.ref))
        for one in doomed
    )
    places = {root["metadata"]["annotations"][VDU]: root["metadata"]["namespace"] for root in roots}
    await gather_or_cancel(
        delete(session.api, Doomed(ObjectRef("v1", "Pod", one.name, places[one.vdu]), one.id), grace=grace)
        for one in vnfcs
    )
    await _until_gone(session, doomed, REMOVE_TIMEOUT)


async def _owners_gone(session: Session, ours: Sequence[Object]) -> list[Object]:
    """What else there is, once those are gone that others of ours belong to: only their controllers know in which order
    the rest goes. A Cluster of Cluster API is removed with all of its machines, as long as its infrastructure stands.
    """
    uids = {one["metadata"]["uid"] for one in ours}
    owned = [one for one in ours if uids & {of["uid"] for of in one["metadata"].get("ownerReferences") or []}]
    owners = [one for one in ours if one not in owned] if owned else []
    doomed = [Doomed(_ref(one), one["metadata"]["uid"]) for one in owners]
    await gather_or_cancel(delete(session.api, one) for one in doomed)
    await _until_gone(session, doomed, REMOVE_TIMEOUT)
    return owned or list(ours)


async def _refuse_definitions_in_use(session: Session, ours: Sequence[Object]) -> None:
    """With a definition all its custom resources go, those of others as well."""
    for one in ours:
        if (one["apiVersion"].rpartition("/")[0], one["kind"]) != DEFINITION:
            continue
        resource = await session.api.discovery.resource(one["apiVersion"], one["kind"])
        spec = (await session.api.get(resource.path(None, one["metadata"]["name"])))["spec"]
        version = next(version["name"] for version in spec["versions"] if version["storage"])
        custom = await session.api.discovery.resource(f"{spec['group']}/{version}", spec["names"]["kind"])
        selector = f"slipway.io/instance!={session.owner.instance_id}"
        listed = await session.api.list(custom.collection(), metadata_only=True, labelSelector=selector)
        others = [other for other in listed if not other["metadata"].get("ownerReferences")]  # who made it has it
        if others:
            named = ", ".join(
                "/".join(filter(None, (other["metadata"].get("namespace"), other["metadata"]["name"])))
                for other in others[:5]
            )
            raise VimError(
                f"CustomResourceDefinition {one['metadata']['name']} is kept: {len(others)} objects of others would go "
                f"with it ({spec['names']['kind']} {named}).",
                VimFault.PERMANENT,
                cure="remove those first, then retry.",
            )


async def _everything_labelled(session: Session, namespaces: Sequence[str]) -> list[Object]:
    """Of every kind that can be listed, cluster-wide; where that is not allowed, in the namespaces that are known."""

    async def some(resource: Any) -> list[Object]:
        places: list[str | None] = [None]
        for _ in range(2):
            try:
                pages = [await labelled_of(session.api, session.owner.instance_id, resource, place) for place in places]
                return [one for page in pages for one in page]
            except KubeError as error:
                if error.status in (404, 405):
                    return []
                if error.status != 403:
                    raise
                places = [*namespaces] if resource.namespaced else []
        return []

    resources = [one for one in await session.api.discovery.everything() if {"list", "delete"} <= one.verbs]
    found = await gather_or_cancel(some(resource) for resource in resources)
    by_uid = {one["metadata"]["uid"]: one for some_ in found for one in some_}  # several versions of a kind
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


async def _let_new_pods_leave_first(session: Session, vdus: Sequence[Placed], args: Apply) -> None:
    """When a scale-out is taken back, the pods that it brought leave, and not whichever the controller likes."""
    roots = await _roots(session, vdus, args.namespace)
    known = {id_ for ids in args.pods.values() for id_ in ids}
    places = {root["metadata"]["annotations"][VDU]: root["metadata"]["namespace"] for root in roots}
    new = [one for one in await list_vnfcs(session.api, roots) if one.id not in known and one.type == "Pod"]
    pods = await session.api.discovery.resource("v1", "Pod")
    patch = {"metadata": {"annotations": {DELETION_COST: LOWEST_COST}}}

    async def mark(pod: FoundMachine) -> None:
        try:
            await session.api.patch(pods.path(places[pod.vdu], pod.name), patch)
        except KubeError as error:
            if error.status != 404:  # it is gone already
                raise

    await gather_or_cancel(mark(pod) for pod in new)


async def _roots(session: Session, vdus: Sequence[Placed], override: str | None) -> list[Object]:
    """The objects that the VDUs are, as far as they are there and the instance's."""
    placed = await _placed(session, vdus, override)
    kinds = {(one.api_version, one.kind, one.namespace) for one in placed}
    names = {one.ref for one in placed}
    ours = await labelled(session.api, session.owner.instance_id, kinds)
    return [one for one in ours if _ref(one) in names and VDU in (one["metadata"].get("annotations") or {})]


async def _placed(session: Session, objects: Sequence[Placed], override: str | None) -> list[Placed]:
    """With their namespaces; without those whose kind nobody serves (any more)."""
    placed = []
    for one in objects:
        try:
            ref = await session.ref(one, override)
        except KubeError as error:
            if error.status != 404:
                raise
            continue
        placed.append(replace(one, namespace=ref.namespace))
    return placed


async def _until_ready(
    session: Session, refs: Sequence[ObjectRef], rules: Sequence[Rule], limit: float
) -> dict[ObjectRef, Object]:
    try:
        return await wait_ready(session.api, refs, rules, limit, session.ctx.progress)
    except KubeError:
        raise
    except StepError as error:  # the time is over: another attempt would take as long again
        raise VimError(error.detail, VimFault.PERMANENT) from None


async def _until_gone(session: Session, doomed: Sequence[Doomed], limit: float) -> None:
    try:
        await wait_gone(session.api, doomed, limit, session.ctx.progress)
    except KubeError:
        raise
    except StepError as error:
        raise VimError(
            error.detail, VimFault.PERMANENT, cure="see why the finalizers that are named don't end, then retry."
        ) from None


async def _vnfcs(
    session: Session, found: dict[ObjectRef, Object], vdus: Sequence[Placed], gone: Sequence[str] = ()
) -> list[FoundMachine]:
    names = {(one.kind, one.name) for one in vdus}
    roots = [
        {**one, "apiVersion": ref.api_version, "kind": ref.kind}
        for ref, one in found.items()
        if (ref.kind, ref.name) in names
    ]
    try:
        return await wait_for_vnfcs(session.api, roots, READY_TIMEOUT, gone=gone, report=session.ctx.progress)
    except KubeError:
        raise
    except StepError as error:
        raise VimError(error.detail, VimFault.PERMANENT) from None


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
