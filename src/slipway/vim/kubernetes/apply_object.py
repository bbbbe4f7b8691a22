"""One object of a manifest, applied: looked at first where others may have a claim to it, replaced where it must be."""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from slipway.kube.apply import FIELD_CONFLICT, ForeignObject, ObjectBeingDeleted, apply, refuse_if_being_deleted
from slipway.kube.deletion import Doomed, delete, wait_gone
from slipway.kube.errors import DENIED, KubeError
from slipway.kube.interface import Object, ObjectRef, uid_of
from slipway.kube.ownership import owner_of
from slipway.model.errors import VimError, VimFault
from slipway.model.machine import PREREQUISITE, FoundObject
from slipway.vim.kubernetes.cnf_parameters import FORCE
from slipway.vim.kubernetes.drift import own_fields
from slipway.vim.kubernetes.object_plan import CONFIGURATION, ObjectPlan, rendered
from slipway.vim.kubernetes.pod_references import at, pod_path
from slipway.vim.kubernetes.scale_path import find_scale_path
from slipway.vim.kubernetes.session import Session
from slipway.vim.kubernetes.waves import DEFINITION, FOR_GOOD, Wave, wave_of
from slipway.waiting import Backoff

# What API servers say of fields that can't be changed.
IMMUTABLE = (
    "immutable", "are forbidden", "may not change fields", "may not change once set", "cannot change roleRef",
    "may not be changed",
)  # fmt: skip
NOT_ROLLED = frozenset({"Pod", "ReplicaSet"})  # nobody starts their pods anew when these have changed
DEFINED_TIMEOUT = 5.0  # seconds for a kind that was defined to be served
REPLACED_TIMEOUT = 300.0  # seconds for an object to be gone before it is made anew


async def apply_object(
    session: Session,
    plan: ObjectPlan,
    content: Object,
    override: str | None,
    *,
    present: bool,
    force: bool,
    limit: float,
) -> FoundObject:
    """Tried again while a webhook does not answer yet, or a namespace has no account for pods yet.

    A kind that was only just defined may be unknown for a moment. What is being deleted is made anew when it is gone.
    """
    backoff, defined = Backoff(0.3, 5.0, timeout=limit), Backoff(0.3, 1.0, timeout=DEFINED_TIMEOUT)
    told = False
    while True:
        try:
            return await _apply_once(session, plan, content, override, present=present, force=force)
        except ObjectBeingDeleted as error:
            session.ctx.progress(f"{plan} is made when the one that is being deleted is gone")
            await wait_gone(session.api, [Doomed(error.ref, error.uid)], REPLACED_TIMEOUT, session.ctx.progress)
            present = False
        except KubeError as error:
            if not (_may_pass(error) or error.status == 404):
                raise
            if not await (defined if error.status == 404 else backoff).pause():
                raise
            if not told:
                session.ctx.progress(f"{plan} is tried again: {error.detail}")
            told = True


async def _apply_once(
    session: Session, plan: ObjectPlan, content: Object, override: str | None, *, present: bool, force: bool
) -> FoundObject:
    ref = await session.ref(plan, override)
    plan = await _with_replicas_path(session, plan)
    body = rendered(content, plan, session.owner.instance_id)
    body["metadata"] = {key: value for key, value in body["metadata"].items() if key != "namespace"}
    if ref.namespace:
        body["metadata"]["namespace"] = ref.namespace
    if (ref.api_version.rpartition("/")[0], ref.kind) == DEFINITION and await _is_served_already(session, ref, content):
        return _found(plan, ref, PREREQUISITE + plan.id)
    if present and plan.kind in NOT_ROLLED and await _has_other_configuration(session, ref, plan):
        await _remove(session, plan, ref, "has pods of a former template or configuration")
        present = False
    try:
        expect: Literal["absent", "present"] = "present" if present else "absent"
        applied = await apply(session.api, body, session.owner, expect=expect, force=force)
    except KubeError as error:
        if error.cause(FIELD_CONFLICT):
            raise VimError(
                error.detail.partition(" Cure: ")[0],
                VimFault.PERMANENT,
                cure="if it is for somebody else to set (replicas of an autoscaled Deployment), leave it out of the "
                f"manifest; to set it all the same, roll back and ask again with additionalParams {FORCE}=true.",
            ) from None
        if not _is_immutable(error):
            raise
        for_good = plan.kind in FOR_GOOD or wave_of(plan.api_version, plan.kind) is Wave.CUSTOM_RESOURCES
        if for_good or await _takes_its_claims_along(session, ref):
            raise VimError(
                error.detail.partition(" Cure: ")[0],
                VimFault.PERMANENT,
                cure="give the object another name in the new package: were it made anew, all that it holds would go.",
            ) from None
        await _remove(session, plan, ref, "can't be changed")
        applied = await apply(session.api, body, session.owner)
    return replace(_found(plan, ref, plan.id), fields=own_fields(applied.object))


async def _with_replicas_path(session: Session, plan: ObjectPlan) -> ObjectPlan:
    """A plan that does not say where the number is, follows what the cluster says of the kind."""
    if plan.replicas is None or plan.replicas_path is not None:
        return plan
    path = await find_scale_path(session, plan)
    return replace(plan, replicas_path=path, replicas=plan.replicas if path else None)


async def _has_other_configuration(session: Session, ref: ObjectRef, plan: ObjectPlan) -> bool:
    there = await _find(session, ref)
    if there is None:
        return False
    notes = at(there, *pod_path(plan.kind)[:-1], "metadata", "annotations")
    return owner_of(there) == session.owner.instance_id and notes.get(CONFIGURATION) != plan.configuration


async def _remove(session: Session, plan: ObjectPlan, ref: ObjectRef, why: str) -> None:
    """Ours alone: somebody else may have put another one there since it was looked at."""
    there = await _find(session, ref)
    if there is None:
        return
    if owner_of(there) != session.owner.instance_id:
        raise ForeignObject(ref, owner_of(there))
    session.ctx.progress(f"{plan} {why}, and is made anew")
    doomed = Doomed(ref, uid_of(there))
    await delete(session.api, doomed, propagation="Foreground")
    await wait_gone(session.api, [doomed], REPLACED_TIMEOUT, session.ctx.progress)


async def _takes_its_claims_along(session: Session, ref: ObjectRef) -> bool:
    """A StatefulSet may say that the claims it made go with it, and all that is in their volumes."""
    there = await _find(session, ref) if ref.kind == "StatefulSet" else None
    return at(there, "spec", "persistentVolumeClaimRetentionPolicy").get("whenDeleted") == "Delete"


async def _find(session: Session, ref: ObjectRef) -> Object | None:
    resource = await session.api.discovery.resource(ref.api_version, ref.kind)
    try:
        return await session.api.get(resource.path(ref.namespace, ref.name))
    except KubeError as error:
        if error.status == 404:
            return None
        raise


async def _is_served_already(session: Session, ref: ObjectRef, content: Object) -> bool:
    """A definition of somebody else's that says the same: something to rely on, neither ours nor ours to remove."""
    there = await _find(session, ref)
    if there is None or owner_of(there) == session.owner.instance_id:
        return False
    refuse_if_being_deleted(ref, there)
    if not _holds(there.get("spec"), content.get("spec")):
        raise ForeignObject(ref, owner_of(there))
    return True


def _holds(there: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; the server may have added to it, and leaves out what says nothing."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            _holds(there.get(key), value) or (key not in there and key != "default" and _says_nothing(value))
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        if not isinstance(there, list) or len(there) != len(wanted):
            return False
        return all(_holds(one, other) for one, other in zip(there, wanted, strict=True))
    return bool(there == wanted)


def _says_nothing(value: Any) -> bool:
    """`preserveUnknownFields: false`, `description: ""`: the same as if it were not written. Not so 0, a limit."""
    return value is None or value is False or value == "" or value == []


def _may_pass(error: KubeError) -> bool:
    no_account = error.status == 403 and "serviceaccount" in error.detail and "not found" in error.detail
    return error.temporary or no_account


def _is_immutable(error: KubeError) -> bool:
    """Not so what a policy or a webhook refuses, or a mistake beside it: an object made anew would be refused as well.

    Its name is no reason, whatever it is.
    """
    if error.status != 422 or DENIED.search(error.detail):
        return False
    said = [cause.message for cause in error.causes] or [error.detail.partition(" is invalid: ")[2]]
    return all(any(word in one for word in IMMUTABLE) for one in said)


def _found(plan: ObjectPlan, ref: ObjectRef, id_: str) -> FoundObject:
    return FoundObject(
        id=id_,
        kind=ref.kind,
        name=ref.name,
        namespace=ref.namespace,
        api_version=ref.api_version,
        digest=plan.digest,
        expires=plan.expires,
    )
