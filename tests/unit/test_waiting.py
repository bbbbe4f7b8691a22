from __future__ import annotations

import pytest

from slipway.model.errors import StepError
from slipway.waiting import Backoff, Observation, wait_for


def test_pauses_grow_up_to_the_longest_and_begin_anew_after_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    backoff = Backoff(1.0, 4.0, factor=2.0)
    for _ in range(4):
        assert backoff.sleep()
    backoff.reset()
    backoff.sleep()
    assert pauses == [1.0, 2.0, 4.0, 4.0, 1.0]


def test_jitter_takes_off_half_of_a_pause_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    backoff = Backoff(1.0, 1.0, jitter=True)
    for _ in range(50):
        backoff.sleep()
    assert all(0.5 <= pause <= 1.0 for pause in pauses)
    assert len(set(pauses)) > 1


async def test_the_last_pause_ends_with_the_timeout_and_there_is_none_after_it() -> None:
    backoff = Backoff(60.0, 60.0, timeout=0.02)
    assert await backoff.pause()
    assert backoff.remaining == 0.0
    assert not await backoff.pause()
    assert not backoff.sleep()


async def test_a_timeout_tells_what_was_waited_for_and_the_last_condition() -> None:
    async def look() -> Observation:
        return Observation(False, "Ready is Unknown.")

    with pytest.raises(StepError) as caught:
        await wait_for(look, "node a to be Ready", 0.02)
    expected = "timed out after 0.02 s waiting for node a to be Ready (last condition: Ready is Unknown)."
    assert caught.value.detail == expected
    assert caught.value.temporary


async def test_a_temporary_error_is_waited_through_and_another_one_is_raised() -> None:
    errors = [StepError("no answer.", temporary=True), StepError("401.")]

    async def look() -> Observation:
        raise errors.pop(0)

    with pytest.raises(StepError, match="401"):
        await wait_for(look, "anything", 10)


async def test_what_can_no_longer_become_true_is_not_waited_for() -> None:
    async def look() -> Observation:
        return Observation(False, "pod a is Failed", hopeless=True)

    with pytest.raises(StepError, match=r"^stopped waiting for pod a to run: pod a is Failed\.$") as caught:
        await wait_for(look, "pod a to run", 10)
    assert not caught.value.temporary
