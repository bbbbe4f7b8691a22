"""Deleting objects of any kind, and waiting until they are really gone.

    await delete(api, Doomed(ref, uid), grace=30, propagation="Foreground")
    await wait_gone(api, [Doomed(ref, uid), ...], limit=300)

Only the object with that uid goes; another one that came under its name stays. What hangs is named, with its finalizers
and since when it is being deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError, short
from slipway.kube.interface import Object, ObjectApi, ObjectRef, Propagation, ReportProgress
from slipway.kube.pods import names
from slipway.kube.readiness import conditions, describe_condition
from slipway.kube.watch import select, wait_until
from slipway.model.errors import StepError
from slipway.waiting import Observation

MOST_CONDITIONS = 3  # of a namespace, in an error


@dataclass(frozen=True)
class Doomed:
    """`uid` None: whichever has the name."""

    ref: ObjectRef
    uid: str | None = None


async def delete(
    api: ObjectApi, doomed: Doomed, *, grace: int | None = None, propagation: Propagation = "Background"
) -> None:
    """No error when it is gone already, or when nobody serves its kind any more."""
    if resource := await _resource(api, doomed.ref):
        path = resource.path(doomed.ref.namespace, doomed.ref.name)
        await api.delete(path, uid=doomed.uid, grace=grace, propagation=propagation)


async def wait_gone(
    api: ObjectApi, doomed: Sequence[Doomed], limit: float, report: ReportProgress | None = None
) -> None:
    """StepError (temporary) names what is still there, its finalizers and its deletionTimestamp."""
    served = [one for one in doomed if await _resource(api, one.ref)]
    selections, called = await select(api, (one.ref for one in served), metadata_only=True)
    wanted = {called[one.ref]: one.uid for one in served}

    def look(found: Mapping[ObjectRef, _Left]) -> Observation:
        left = [f"{ref} {found[ref]}" for ref, uid in wanted.items() if ref in found and uid in (None, found[ref].uid)]
        return Observation(not left, f"{len(left)} left: {names(left, '; ')}")

    if wanted:
        what = f"{names(wanted)} to be gone"
        try:
            await wait_until(api, selections, look, what, limit, keep=_left, report=report)
        except KubeError:
            raise
        except StepError as error:
            why = [await _what_is_left_in(api, ref) for ref in sorted(wanted) if ref.kind == "Namespace"]
            raise StepError(" ".join([error.detail, *filter(None, why)]), temporary=error.temporary) from None


async def _what_is_left_in(api: ObjectApi, namespace: ObjectRef) -> str:
    """Its conditions name what holds it: the finalizers are those of objects in it. Empty when they can't be seen."""
    try:
        resource = await api.discovery.resource(namespace.api_version, namespace.kind)
        there = conditions(await api.get(resource.path(None, namespace.name)))
    except KubeError:
        return ""
    told = [describe_condition(kind, one) for kind, one in there.items() if one.get("status") == "True"]
    return f"{namespace}: {'; '.join(told[:MOST_CONDITIONS])}." if told else ""


@dataclass(frozen=True)
class _Left:
    uid: str
    since: str
    finalizers: tuple[str, ...]

    def __str__(self) -> str:
        if not self.since:
            return "(nobody has deleted it)"
        held = f", held by {', '.join(self.finalizers)}" if self.finalizers else ""
        return short(f"(being deleted since {self.since}{held})")


def _left(found: Object) -> _Left:
    metadata = found["metadata"]
    finalizers = tuple(str(one) for one in metadata.get("finalizers") or [])
    return _Left(str(metadata.get("uid")), str(metadata.get("deletionTimestamp") or ""), finalizers)


async def _resource(api: ObjectApi, ref: ObjectRef) -> Resource | None:
    """None when its CustomResourceDefinition is gone, and the object with it."""
    try:
        return await api.discovery.resource(ref.api_version, ref.kind)
    except KubeError as error:
        if error.status == 404:
            return None
        raise
