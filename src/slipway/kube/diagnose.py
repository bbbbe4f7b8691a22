"""Why an object is not ready, in the cluster's own words, short enough for an error.

    text = await diagnose(api, [found, ...])

Conditions, the pods that belong to it and what they wait for, how their containers ended, warning events.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway.kube.interface import Object, ObjectApi


async def diagnose(api: ObjectApi, unready: Sequence[Object]) -> str:
    """One or two sentences for each of the first few; empty when the cluster tells nothing more, or can't be asked."""
    ...
