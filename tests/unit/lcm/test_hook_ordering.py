"""Hooks around the VIM's work: each node at its own pace, and what concerns no node before and after all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slipway.lcm import hook_ordering
from slipway.model.hooks import Batch, HookPlan
from slipway.model.plan import Plan, Step


def steps(*named: str, after: tuple[str, ...] = ()) -> Plan:
    """`"drain a"` is a step for the node a, `"change a b"` one for both, `"unregister"` one for no node."""
    made = (name.split() for name in named)
    return Plan.of(*(Step(" ".join(w), "x", nodes=tuple(w[1:]), after=after) for w in made))


def with_hooks(start: Plan, work: Plan, end: Plan, *rollouts: tuple[Batch, ...]) -> Plan:
    return hook_ordering.with_hooks(HookPlan(start, end, rollouts), work)


def order(plan: Plan) -> dict[str, set[str]]:
    return {step.id: set(step.after) for step in plan.checked().steps}


def test_each_node_goes_at_its_own_pace() -> None:
    plan = with_hooks(steps("drain a", "drain b"), steps("remove a", "remove b"), steps("forget a", "forget b"))
    assert order(plan) == {
        "drain a": set(), "drain b": set(),
        "remove a": {"drain a"}, "remove b": {"drain b"},
        "forget a": {"remove a"}, "forget b": {"remove b"},
    }  # fmt: skip


def test_what_concerns_no_node_comes_before_and_after_everything() -> None:
    plan = order(with_hooks(steps("unregister"), steps("remove a", "remove b"), steps("report")))
    assert plan == {
        "unregister": set(), "remove a": {"unregister"}, "remove b": {"unregister"}, "report": {"remove a", "remove b"},
    }  # fmt: skip


def test_what_the_vim_does_last_waits_for_the_hooks_at_the_end() -> None:
    """A rollback is possible as long as it has not begun."""
    release = Step("release", "x", after=("change a",), irreversible=True, last=True)
    work = Plan((*steps("change a").steps, release))
    plan = order(with_hooks(Plan(), work, steps("join a", "report")))
    assert plan == {
        "change a": set(), "join a": {"change a"}, "report": {"change a"}, "release": {"change a", "join a", "report"},
    }  # fmt: skip
    assert order(with_hooks(Plan(), work, Plan())) == {"change a": set(), "release": {"change a"}}


def test_the_vims_own_order_is_kept_and_only_its_first_steps_wait() -> None:
    work = Plan.chain(steps("remove a"), steps("make a"))
    plan = order(with_hooks(steps("leave a"), work, Plan.chain(steps("prepare a"), steps("join a"))))
    assert plan == {"leave a": set(), "remove a": {"leave a"}, "make a": {"remove a"}, "prepare a": {"make a"},
                    "join a": {"prepare a"}}  # fmt: skip


def test_a_step_for_a_node_that_the_vim_leaves_alone_still_comes_after_its_work() -> None:
    assert order(with_hooks(Plan(), steps("make a"), steps("reload b")))["reload b"] == {"make a"}
    assert order(with_hooks(steps("leave a"), Plan(), steps("reload b")))["reload b"] == {"leave a"}


def test_a_step_waits_for_its_machine_even_when_it_waits_for_other_nodes() -> None:
    end = Plan.of(Step("init a", "x", nodes=("a",)), Step("join b", "x", nodes=("b",), after=("init a",)))
    assert order(with_hooks(Plan(), steps("make a", "make b"), end))["join b"] == {"init a", "make b"}


def test_one_step_for_all_machines_waits_for_the_hooks_of_every_machine_it_touches() -> None:
    waits = order(with_hooks(steps("drain a", "drain b"), steps("change a b c"), steps("forget a", "join c")))
    assert waits["change a b c"] == {"drain a", "drain b"}
    assert (waits["forget a"], waits["join c"]) == ({"change a b c"}, {"change a b c"})


ONE_BY_ONE = (Batch(("a",), ("join a",)), Batch(("b",), ("join b",)))


def test_nodes_of_a_batch_are_touched_when_those_of_the_batch_before_are_back() -> None:
    work = Plan.parallel(*(Plan.chain(steps(f"remove {n}"), steps(f"make {n}")) for n in "ab"))
    waits = order(with_hooks(steps("leave a", "leave b"), work, steps("join a", "join b"), ONE_BY_ONE))
    assert waits["leave b"] == {"join a"}
    assert waits["remove b"] == {"leave b"}
    assert waits["join a"] == {"make a"}


def test_batches_hold_where_there_is_no_hook_at_the_start() -> None:
    waits = order(with_hooks(Plan(), steps("remake a", "remake b"), steps("join a", "join b"), ONE_BY_ONE))
    assert waits["remake b"] == {"join a"}


def test_batches_of_a_vim_that_makes_one_change_at_a_time() -> None:
    workers = (Batch(("x",), ("join x",)),)
    hooks = HookPlan(steps("leave a", "leave b", "drain x"), steps("join a", "join b", "join x"), (ONE_BY_ONE, workers))
    assert hooks.batches() == (("a", "x"), ("b",))
    work = Plan.chain(steps("change a x"), steps("again b"))
    waits = order(hook_ordering.with_hooks(hooks, work))
    assert waits["change a x"] == {"leave a", "drain x"}
    assert waits["again b"] == {"change a x", "leave b"}
    assert waits["leave b"] == {"join a"}


NODES = st.lists(st.sampled_from("abcd"), unique=True, max_size=4)


@given(NODES, NODES, NODES)
def test_no_node_is_touched_before_its_hook_nor_visited_before_the_vim_is_done(
    before: list[str], touched: list[str], after: list[str]
) -> None:
    start, work, end = (steps(*(f"{verb} {n}" for n in nodes)) for verb, nodes in
                        (("s", before), ("w", touched), ("e", after)))  # fmt: skip
    plan = with_hooks(start, work, end).checked()
    reached = _closure({step.id: set(step.after) for step in plan.steps})
    for node in touched:
        assert node not in before or f"s {node}" in reached[f"w {node}"]
        assert node not in after or f"w {node}" in reached[f"e {node}"]


def _closure(after: dict[str, set[str]]) -> dict[str, set[str]]:
    def all_before(name: str) -> set[str]:
        return after[name].union(*(all_before(one) for one in after[name]), set())

    return {name: all_before(name) for name in after}


def test_turns_come_one_after_another_and_what_is_in_no_turn_waits_for_none() -> None:
    work = Plan.parallel(*(Plan.chain(steps(f"remove {node}"), steps(f"make {node}")) for node in "abc"))
    assert order(hook_ordering.in_turns(work, [["b"], ["a"]])) == {
        "remove a": {"make b"}, "make a": {"remove a"},
        "remove b": set(), "make b": {"remove b"},
        "remove c": set(), "make c": {"remove c"},
    }  # fmt: skip


def test_a_step_for_nodes_of_several_turns_is_in_the_last_of_them() -> None:
    work = Plan.chain(steps("change a"), steps("change b"), steps("update a b"))
    assert order(hook_ordering.in_turns(work, [["a"], ["b"]])) == order(work)
    assert order(hook_ordering.in_turns(steps("change a b", "change c"), [["a"], ["b"], ["c"]])) == {
        "change a b": set(), "change c": {"change a b"},
    }  # fmt: skip


def test_one_step_for_several_turns_does_not_wait_for_what_waits_for_it() -> None:
    work = Plan.chain(steps("change a b"), steps("coordinate a", "coordinate b"))
    assert order(hook_ordering.in_turns(work, [["a"], ["b"]])) == order(work)
