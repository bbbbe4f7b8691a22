"""Waiting until objects of any kind are ready; when they do not get so, why.

found = await wait_ready(api, [ref, ...], rules, limit=500, report=ctx.progress)   # {ref: object}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from slipway.kube.diagnose import diagnose
from slipway.kube.drain import gather_or_cancel
from slipway.kube.ended_jobs import how_it_ended
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectApi, ObjectRef, ReportProgress
from slipway.kube.pods import names
from slipway.kube.readiness import Failed, Readiness, Ready, Rule, Waiting, readiness
from slipway.kube.watch import select, wait_until
from slipway.model.errors import StepError
from slipway.waiting import Observation

NAMED = 5  # objects that are not ready, in an error


async def wait_ready(
    api: ObjectApi,
    refs: Sequence[ObjectRef],
    rules: Sequence[Rule],
    limit: float,
    report: ReportProgress | None = None,
    *,
    expiring: Collection[ObjectRef] = (),
) -> dict[ObjectRef, Object]:
    """The objects as they were when all were ready, without their managedFields.

    `expiring`: Jobs that go by themselves once they have ended. How they ended is what was seen last, or in their
    events; they are not in what is answered.

    StepError (temporary: the time is over) says what is not ready and why: the check that does not hold, pods that do
    not start, warning events (`diagnose.py`).
    """
    selections, called = await select(api, refs)
    wanted, passing = set(called.values()), {called[ref] for ref in expiring}
    unready: list[Object] = []
    ended = await gather_or_cancel(how_it_ended(api, called[ref]) for ref in expiring)
    last = {called[ref]: state for ref, state in zip(expiring, ended, strict=True) if state is not None}

    def keep(found: Object) -> Object | None:
        metadata = found["metadata"]
        ref = ObjectRef(found["apiVersion"], found["kind"], metadata["name"], metadata.get("namespace"))
        slim = {key: value for key, value in metadata.items() if key != "managedFields"}
        if ref in passing and isinstance(state := readiness(found, rules), Ready | Failed):
            last[ref] = state
        return found | {"metadata": slim} if ref in wanted else None

    def look(found: Mapping[ObjectRef, Object | None]) -> Observation:
        states = [
            (ref, state)
            for ref in sorted(wanted)
            if not isinstance(state := _state(found.get(ref), rules, last.get(ref)), Ready)
        ]
        failed = [(ref, state) for ref, state in states if isinstance(state, Failed)]
        unready[:] = [one for ref, _ in failed or states if (one := found.get(ref))]
        reasons = [f"{ref}: {state.reason}" for ref, state in failed or states]
        more = f"; and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
        counted = f"{len(wanted) - len(states)} of {len(wanted)} ready"
        return Observation(not states, f"{counted}; {'; '.join(reasons[:NAMED])}{more}", hopeless=bool(failed))

    if not wanted:
        return {}
    try:
        found = await wait_until(
            api, selections, look, f"{names(sorted(wanted))} to be ready", limit, keep=keep, report=report
        )
    except KubeError:
        raise
    except StepError as error:
        why = await diagnose(api, unready)
        raise StepError(f"{error.detail} {why}".strip(), temporary=error.temporary) from None
    return {ref: one for ref, name in called.items() if (one := found.get(name))}


def _state(found: Object | None, rules: Sequence[Rule], last: Readiness | None) -> Readiness:
    return last or Waiting("it is not there") if found is None else readiness(found, rules)
