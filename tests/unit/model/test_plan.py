"""Plans: how parts are put together, and what is no plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.model.plan import Plan, Step


def step(name: str, *after: str) -> Step:
    return Step(id=name, action="work", after=after)


def order(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {step.id: step.after for step in plan.steps}


def test_a_chain_lets_the_first_of_each_part_wait_for_the_last_of_the_part_before() -> None:
    plan = Plan.chain(Plan.of(step("a"), step("b")), Plan(), Plan.of(step("c"), step("d", "c")), Plan.of(step("e")))
    assert order(plan) == {"a": (), "b": (), "c": ("a", "b"), "d": ("c",), "e": ("d",)}


def test_each_runs_the_same_chain_for_every_item_at_once() -> None:
    plan = Plan.each(["x", "y"], lambda node: [step(f"cordon {node}"), step(f"drain {node}")])
    assert order(plan) == {"cordon x": (), "drain x": ("cordon x",), "cordon y": (), "drain y": ("cordon y",)}


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (Plan.of(step("a"), step("a")), "named twice: a"),
        (Plan.of(step("a", "b")), "unknown steps: b"),
        (Plan.of(step("a", "b"), step("b", "a")), "wait for each other: a, b"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_steps(plan: Plan, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        plan.checked()


@st.composite
def parts(draw: st.DrawFn) -> list[Plan]:
    """Parts of a chain, each with an order of its own inside."""
    result: list[Plan] = []
    for part in range(draw(st.integers(0, 4))):
        names = [f"{part}.{number}" for number in range(draw(st.integers(0, 5)))]
        result.append(
            Plan.of(
                *(step(name, *draw(st.sets(st.sampled_from(names[:at])) if at else st.just(set())))
                  for at, name in enumerate(names))
            )
        )  # fmt: skip
    return result


@given(parts())
def test_in_a_chain_every_step_of_a_part_comes_after_every_step_of_the_parts_before(plans: list[Plan]) -> None:
    chained = Plan.chain(*plans).checked()
    before: dict[str, set[str]] = {}
    for each in chained.steps:
        before[each.id] = set(each.after).union(*(before[name] for name in each.after))
    earlier: set[str] = set()
    for plan in plans:
        for each in plan.steps:
            assert earlier <= before[each.id]
        earlier |= {each.id for each in plan.steps}
