"""The state machine, as SOL003 draws it."""

from __future__ import annotations

import itertools

import pytest

from slipway.model.errors import Conflict
from slipway.model.operation import ENDED, HOLDING, RUNNING, TRANSITIONS, Event, State, after


def test_the_states_and_their_ways_are_the_standards() -> None:
    drawn = {(start.value, end.value) for (start, _), end in TRANSITIONS.items()}
    assert drawn == {
        ("STARTING", "PROCESSING"),
        ("STARTING", "ROLLED_BACK"),
        ("PROCESSING", "COMPLETED"),
        ("PROCESSING", "FAILED_TEMP"),
        ("FAILED_TEMP", "PROCESSING"),
        ("FAILED_TEMP", "ROLLING_BACK"),
        ("FAILED_TEMP", "FAILED"),
        ("ROLLING_BACK", "ROLLED_BACK"),
        ("ROLLING_BACK", "FAILED_TEMP"),
    }


def test_nothing_leaves_an_end_state_and_everything_else_can_reach_one() -> None:
    assert not {start for start, _ in TRANSITIONS} & ENDED
    reachable = set(ENDED)
    for _ in State:
        reachable |= {start for (start, _), end in TRANSITIONS.items() if end in reachable}
    assert reachable == set(State)


def test_every_state_is_running_waiting_for_a_person_or_ended() -> None:
    assert RUNNING | {State.FAILED_TEMP} == HOLDING
    assert set(State) == HOLDING | ENDED


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_what_is_not_drawn_is_a_conflict_that_names_state_and_possibilities(state: State, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert after(state, event) is TRANSITIONS[state, event]
        return
    with pytest.raises(Conflict) as refused:
        after(state, event)
    assert state.value in refused.value.detail
    assert all(start.value in refused.value.detail for start, one in TRANSITIONS if one is event)
