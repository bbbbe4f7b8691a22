"""What steps wait for, with errors as the VIM contract has them; and which pods leave when there are too many."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from slipway.kube.deletion import Doomed, wait_gone
from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectRef
from slipway.kube.readiness import Rule
from slipway.kube.wait_ready import wait_ready
from slipway.model.errors import StepError, VimError, VimFault
from slipway.model.machine import FoundMachine
from slipway.vim.kubernetes.object_plan import VDU
from slipway.vim.kubernetes.object_steps import READY_TIMEOUT
from slipway.vim.kubernetes.session import Session
from slipway.vim.kubernetes.vnfcs import list_placed_vnfcs, wait_for_vnfcs

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"  # the pods with the lowest leave first
LOWEST_COST = "-2147483648"


async def until_ready(
    session: Session,
    refs: Sequence[ObjectRef],
    rules: Sequence[Rule],
    limit: float,
    *,
    expiring: Collection[ObjectRef] = (),
) -> dict[ObjectRef, Object]:
    try:
        return await wait_ready(session.api, refs, rules, limit, session.ctx.progress, expiring=expiring)
    except KubeError:
        raise
    except StepError as error:  # the time is over: another attempt would take as long again
        raise VimError(error.detail, VimFault.PERMANENT) from None


async def until_gone(session: Session, doomed: Sequence[Doomed], limit: float) -> None:
    try:
        await wait_gone(session.api, doomed, limit, session.ctx.progress)
    except KubeError:
        raise
    except StepError as error:
        raise VimError(
            error.detail, VimFault.PERMANENT, cure="see why the finalizers that are named don't end, then retry."
        ) from None


async def until_vnfcs(
    session: Session, found: dict[ObjectRef, Object], vdus: Collection[str | None], gone: Sequence[str] = ()
) -> list[FoundMachine]:
    """Of these VDUs, once all are ready. `found`: their objects among others."""
    roots = [
        {**one, "apiVersion": ref.api_version, "kind": ref.kind}
        for ref, one in found.items()
        if (one["metadata"].get("annotations") or {}).get(VDU) in vdus
    ]
    try:
        return await wait_for_vnfcs(session.api, roots, READY_TIMEOUT, gone=gone, report=session.ctx.progress)
    except KubeError:
        raise
    except StepError as error:
        raise VimError(error.detail, VimFault.PERMANENT) from None


async def let_new_pods_leave_first(session: Session, roots: Sequence[Object], known: Collection[str]) -> None:
    """When a scale-out is taken back, the pods that it brought leave, and not whichever the controller likes."""
    there = await list_placed_vnfcs(session.api, roots)
    new = [ref for vnfc, ref in there if vnfc.id not in known and ref.kind == "Pod"]
    pods = await session.api.discovery.resource("v1", "Pod")
    patch = {"metadata": {"annotations": {DELETION_COST: LOWEST_COST}}}

    async def mark(pod: ObjectRef) -> None:
        try:
            await session.api.patch(pods.path(pod.namespace, pod.name), patch)
        except KubeError as error:
            if error.status != 404:  # it is gone already
                raise

    await gather_or_cancel(mark(pod) for pod in new)
