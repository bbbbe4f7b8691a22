"""Waiting until objects of any kind are ready; when they do not get so, why.

    found = await wait_ready(api, [ref, ...], rules, limit=500, report=ctx.progress)   # {ref: object}
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway.kube.interface import Object, ObjectApi, ObjectRef, ReportProgress
from slipway.kube.readiness import Rule


async def wait_ready(
    api: ObjectApi,
    refs: Sequence[ObjectRef],
    rules: Sequence[Rule],
    limit: float,
    report: ReportProgress | None = None,
) -> dict[ObjectRef, Object]:
    """The objects as they were when all were ready. StepError (temporary: the time is over) says what is not, and why:
    conditions, pods that do not start, warning events (`diagnose.py`)."""
    ...
