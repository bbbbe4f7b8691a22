"""Each kind of fault does what it says, steps bear it, and rules and counters live in the VIM's file."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest, VimError, VimFault
from slipway.model.machine import Found, Outcome
from slipway.simulator.vim import Rule, RuleKind, SimulatedDriver
from tests.contract.clusters import Cluster, differences, healed, nothing
from tests.contract.plans import Context, hand, run_plan

WANTED = Cluster().wanted("i")


async def make_all(driver: SimulatedDriver, connection: VimConnection) -> Context:
    ctx = Context(connection, "i")
    await run_plan(driver, driver.steps_towards(WANTED, Found()), ctx)
    return ctx


async def make_one(driver: SimulatedDriver, connection: VimConnection, slot: str = "workerNode-1") -> Outcome:
    """Only the step of one machine; its network must be there."""
    step = next(step for step in driver.steps_towards(WANTED, Found()).steps if step.nodes == (slot,))
    action, args = hand(driver, step)
    return await action.run(args, Context(connection, "i"))


async def make_network(driver: SimulatedDriver, connection: VimConnection) -> None:
    await run_plan(driver, driver.steps_towards(WANTED, Found()), Context(connection, "i"), stop_after=1)


async def test_latency_slows_the_calls_it_names_only(driver: SimulatedDriver, connection: VimConnection) -> None:
    await driver.set_rules(connection, [Rule(kind=RuleKind.LATENCY, call="find", seconds=0.3, jitter=0.01)])
    begun = time.perf_counter()
    await driver.check(connection)
    assert time.perf_counter() - begun < 0.25
    begun = time.perf_counter()
    await driver.find(connection, "i")
    assert time.perf_counter() - begun >= 0.3


async def test_nobody_waits_for_the_latency_of_another(driver: SimulatedDriver, connection: VimConnection) -> None:
    await make_network(driver, connection)
    await driver.set_rules(connection, [Rule(kind=RuleKind.LATENCY, machine="workerNode-1", seconds=0.2)])
    slow = asyncio.create_task(make_one(driver, connection, "workerNode-1"))
    await asyncio.sleep(0)
    await make_one(driver, connection, "workerNode-2")
    assert not slow.done()
    await slow


@pytest.mark.parametrize("fault", list(VimFault))
async def test_an_error_does_nothing_and_says_its_class(
    driver: SimulatedDriver, connection: VimConnection, fault: VimFault
) -> None:
    rule = Rule(kind=RuleKind.ERROR, call="make_machine", machine="worker*", fault=fault, message="no room on the moon")
    await driver.set_rules(connection, [rule])
    await make_network(driver, connection)
    await make_one(driver, connection, "masterNode-1")
    with pytest.raises(VimError, match="make_machine workerNode-1 with: no room on the moon") as refused:
        await make_one(driver, connection)
    assert refused.value.fault is fault
    assert [machine.name for machine in (await driver.find(connection, "i")).machines] == ["masterNode-1"]


async def test_a_rule_hits_the_nth_call_and_so_many_after_it(
    driver: SimulatedDriver, connection: VimConnection
) -> None:
    await driver.set_rules(connection, [Rule(kind=RuleKind.ERROR, call="find", nth=2, times=2)])
    answers = []
    for _ in range(5):
        try:
            await driver.find(connection, "i")
            answers.append("found")
        except VimError:
            answers.append("error")
    assert answers == ["found", "error", "error", "found", "found"]


async def test_work_behind_a_timeout_is_found_again(driver: SimulatedDriver, connection: VimConnection) -> None:
    await make_network(driver, connection)
    await driver.set_rules(connection, [Rule(kind=RuleKind.TIMEOUT_AFTER_WORK, call="make_machine", times=1)])
    with pytest.raises(VimError, match="no answer in time") as lied:
        await make_one(driver, connection)
    assert lied.value.temporary
    made = (await driver.find(connection, "i")).machines
    assert len(made) == 1
    assert (await make_one(driver, connection)).machines == made
    assert (await driver.calls(connection))["make_machine"] == 1


@pytest.mark.parametrize("looks", [1, 3, 50])
async def test_a_machine_in_error_at_first_is_waited_for(
    driver: SimulatedDriver, connection: VimConnection, looks: int
) -> None:
    await driver.set_rules(connection, [Rule(kind=RuleKind.ERROR_THEN_ACTIVE, machine="worker*", looks=looks)])
    await make_all(driver, connection)
    assert differences(await driver.find(connection, "i"), WANTED) == []
    assert (await driver.calls(connection)).get("rebuild_machine", 0) == (2 if looks == 50 else 0)


async def test_a_find_counts_as_a_look(driver: SimulatedDriver, connection: VimConnection) -> None:
    lies = [
        Rule(kind=RuleKind.ERROR_THEN_ACTIVE, looks=3),
        Rule(kind=RuleKind.TIMEOUT_AFTER_WORK, call="make_machine"),
    ]
    await driver.set_rules(connection, lies)
    await make_network(driver, connection)
    with pytest.raises(VimError):
        await make_one(driver, connection)
    ready = [(await driver.find(connection, "i")).machines[0].ready for _ in range(4)]
    assert ready == [False, False, True, True]


async def test_a_partial_list_makes_no_second_machine(driver: SimulatedDriver, connection: VimConnection) -> None:
    await make_all(driver, connection)
    before = await driver.inventory(connection)
    await driver.set_rules(connection, [Rule(kind=RuleKind.PARTIAL_LIST, times=1)])
    partial = await driver.find(connection, "i")
    assert [machine.name for machine in partial.machines] == ["workerNode-1"]
    plan = driver.steps_towards(WANTED, partial)
    assert len(plan.steps) == 2
    await run_plan(driver, plan, Context(connection, "i"))
    assert await driver.inventory(connection) == before
    assert (await driver.calls(connection))["make_machine"] == 3


async def test_a_partial_list_by_machine_leaves_out_those(driver: SimulatedDriver, connection: VimConnection) -> None:
    await make_all(driver, connection)
    await driver.set_rules(connection, [Rule(kind=RuleKind.PARTIAL_LIST, machine="workerNode-2", times=1)])
    names = [machine.name for machine in (await driver.find(connection, "i")).machines]
    assert names == ["masterNode-1", "workerNode-1"]
    assert len((await driver.find(connection, "i")).machines) == 3


async def test_removal_planned_from_a_partial_list_leaves_nothing(
    driver: SimulatedDriver, connection: VimConnection
) -> None:
    await make_all(driver, connection)
    await driver.set_rules(connection, [Rule(kind=RuleKind.PARTIAL_LIST, times=1)])
    plan = driver.steps_towards(nothing("i"), await driver.find(connection, "i"))
    await run_plan(driver, plan, Context(connection, "i"), twice=True)
    assert await driver.inventory(connection) == {}


@pytest.mark.parametrize("lacking", ["ports", "volumes"])
async def test_a_heal_planned_from_a_partial_list_steals_nothing(
    driver: SimulatedDriver, connection: VimConnection, lacking: str
) -> None:
    """The old machine still holds the port or volume: the VIM refuses, and nothing is made."""
    await make_all(driver, connection)
    before = await driver.inventory(connection)
    await driver.set_rules(connection, [Rule(kind=RuleKind.PARTIAL_LIST, machine="workerNode-1", times=1)])
    partial = await driver.find(connection, "i")
    new = tuple(
        msgspec.structs.replace(machine, **{lacking: ()}) for machine in healed(WANTED, "workerNode-1").machines
    )
    make = next(
        s
        for s in driver.steps_towards(msgspec.structs.replace(WANTED, machines=new), partial).steps
        if s.id == "make machine workerNode-1"
    )
    action, args = hand(driver, make)
    with pytest.raises(VimError, match="another machine") as refused:
        await action.run(args, Context(connection, "i"))
    assert refused.value.fault is VimFault.PERMANENT
    assert await driver.inventory(connection) == before


async def test_a_second_driver_changes_the_rules_of_the_first(tmp_path: Path, connection: VimConnection) -> None:
    one, two = SimulatedDriver(tmp_path), SimulatedDriver(tmp_path)
    await one.find(connection, "i")
    rule = Rule(kind=RuleKind.ERROR, call="find", fault=VimFault.AUTH)
    await two.set_rules(connection, [rule])
    assert await one.rules(connection) == (rule,)
    with pytest.raises(VimError):
        await one.find(connection, "i")
    await two.clear(connection)
    await one.find(connection, "i")
    one.close()
    two.close()


async def test_counters_go_on_after_reopening(tmp_path: Path, connection: VimConnection) -> None:
    one = SimulatedDriver(tmp_path)
    await one.set_rules(connection, [Rule(kind=RuleKind.ERROR, call="find", nth=3)])
    await one.find(connection, "i")
    await one.find(connection, "i")
    one.close()
    two = SimulatedDriver(tmp_path)
    with pytest.raises(VimError):
        await two.find(connection, "i")
    assert await two.calls(connection) == {"find": 3}
    two.close()


async def test_a_refused_call_is_counted(driver: SimulatedDriver, connection: VimConnection) -> None:
    with pytest.raises(VimError, match="network i-net, which is not there"):
        await make_one(driver, connection)
    assert await driver.calls(connection) == {"get_machine": 1, "make_machine": 1}
    assert await driver.inventory(connection) == {}


async def test_registration_brings_rules(driver: SimulatedDriver) -> None:
    rules = [{"kind": "latency", "call": "make_machine", "seconds": 0.1}, {"kind": "error", "fault": "quota"}]
    connection = VimConnection(driver.vim_type, {"endpoint": "sim://slow"}, {}, {"rules": rules})
    await driver.register(connection)
    assert [rule.kind for rule in await driver.rules(connection)] == [RuleKind.LATENCY, RuleKind.ERROR]


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"kind": "earthquake"}, r"extra.rules\[0\].kind"),
        ({"kind": "error", "fault": "sad"}, r"extra.rules\[0\].fault"),
        ({"kind": "error", "call": "dance"}, r"extra.rules\[0\].call"),
        ({"kind": "error", "nth": 0}, r"extra.rules\[0\].nth"),
        ({"kind": "error", "times": 0}, r"extra.rules\[0\].times"),
        ({"kind": "error", "colour": "red"}, r"extra.rules\[0\].*colour"),
        ({"kind": "latency"}, r"extra.rules\[0\].seconds"),
        ({"kind": "latency", "seconds": -1}, r"extra.rules\[0\].seconds"),
        ({"kind": "partial_list", "call": "make_machine"}, r"extra.rules\[0\].call"),
        ({"kind": "error_then_active", "call": "find"}, r"extra.rules\[0\].call"),
        ({"kind": "error", "call": "find", "asked": "join"}, r"extra.rules\[0\].asked"),
        ({"kind": "error", "call": "host", "status": 500}, r"extra.rules\[0\].status"),
        ({"kind": "error", "call": "api", "status": 200}, r"extra.rules\[0\].status"),
        ({}, r"extra.rules\[0\].*kind"),
        ("error", r"extra.rules\[0\]"),
    ],
)
async def test_a_wrong_rule_is_refused_by_field(driver: SimulatedDriver, rule: Any, field: str) -> None:
    connection = VimConnection(driver.vim_type, {"endpoint": "sim://x"}, {}, {"rules": [rule]})
    with pytest.raises(BadRequest, match=field):
        driver.validate(connection)
    with pytest.raises(BadRequest, match=field):
        await driver.register(connection)


async def test_rules_that_are_no_list_are_refused(driver: SimulatedDriver) -> None:
    with pytest.raises(BadRequest, match=r"extra.rules: "):
        driver.validate(VimConnection(driver.vim_type, {"endpoint": "sim://x"}, {}, {"rules": {"kind": "error"}}))
