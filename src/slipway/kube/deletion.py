"""Deleting objects of any kind, and waiting until they are really gone.

    await delete(api, Doomed(ref, uid), grace=30, propagation="Foreground")
    await wait_gone(api, [Doomed(ref, uid), ...], limit=300)

Only the object with that uid goes; another one that came under its name stays. What hangs is named, with its finalizers
and since when it is being deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slipway.kube.interface import ObjectApi, ObjectRef, Propagation, ReportProgress


@dataclass(frozen=True)
class Doomed:
    """`uid` None: whichever has the name."""

    ref: ObjectRef
    uid: str | None = None


async def delete(
    api: ObjectApi, doomed: Doomed, *, grace: int | None = None, propagation: Propagation = "Background"
) -> None:
    """No error when it is gone already, or when nobody serves its kind any more."""
    ...


async def wait_gone(
    api: ObjectApi, doomed: Sequence[Doomed], limit: float, report: ReportProgress | None = None
) -> None:
    """StepError (temporary) names what is still there, its finalizers and its deletionTimestamp."""
    ...
