"""A grant counts over a crash and a retry, and is not asked for twice."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from slipway.model.errors import VimFault
from slipway.model.operation import Operation, OperationType, State
from slipway.settings import Settings
from slipway.store import operations
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.crash_child import work
from tests.functional.grants.grant_world import INSTANTIATE, machines
from tests.functional.grants.test_grant_refusals import silent
from tests.functional.lives import forks
from tests.functional.rig import SIMULATED_VIM, Rig, rig_in
from tests.functional.small_nfvo import SmallNfvo, placed, yes_there
from tests.unit.outgoing.loopback_server import Answer, document

pytestmark = pytest.mark.sqlite_suffices


async def until_granted(rig: Rig, operation_id: str) -> Operation:
    """Another process writes it: there is nothing to wait for but the database."""
    async with asyncio.timeout(30):
        while True:
            now = await rig.slipway.database.read(operations.get, operation_id)
            if now.grant_id is not None:
                return now
            await asyncio.sleep(0.02)


async def test_killed_between_grant_and_plan_the_grant_counts_and_nobody_is_asked_again(
    settings: Settings, nfvo: SmallNfvo
) -> None:
    async with rig_in(settings, working=False) as rig:
        instance_id = await rig.create()
        begun = await rig.slipway.lcm.start_operation(OperationType.INSTANTIATE, instance_id, INSTANTIATE)
        # The VIM is looked at before anybody is asked, and again for the plan: there it hangs.
        await rig.slipway.simulated.set_rules(
            SIMULATED_VIM, [Rule(call="find", kind=RuleKind.LATENCY, seconds=60, nth=2)]
        )
        worker = forks.Process(target=work, args=(settings, begun.id))
        worker.start()
        now = await until_granted(rig, begun.id)
        assert now.operation_state is State.STARTING
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        await asyncio.to_thread(worker.join)
        await rig.slipway.simulated.clear(SIMULATED_VIM)
    nfvo.decide = lambda request: document(placed(request, "another-zone"), 201)
    async with rig_in(settings) as rig:
        done = await rig.rest(begun.id)
        assert done.operation_state is State.COMPLETED, done.error
        assert done.grant_id == now.grant_id
        assert {one.zone for one in (await machines(rig, instance_id)).values()} == {"az-1"}
    assert len(nfvo.requests) == 1


async def test_killed_while_it_asks_it_asks_for_the_same_again(settings: Settings, nfvo: SmallNfvo) -> None:
    heard = asyncio.Event()

    async def hear(request: dict[str, Any]) -> Answer:
        heard.set()
        return await silent(request)

    nfvo.decide = hear
    async with rig_in(settings, working=False) as rig:
        instance_id = await rig.create()
        begun = await rig.slipway.lcm.start_operation(OperationType.INSTANTIATE, instance_id, INSTANTIATE)
    worker = forks.Process(target=work, args=(settings, begun.id))
    worker.start()
    await asyncio.wait_for(heard.wait(), 30)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    await asyncio.to_thread(worker.join)
    nfvo.decide = yes_there
    async with rig_in(settings) as rig:
        assert (await rig.rest(begun.id)).operation_state is State.COMPLETED
        await machines(rig, instance_id)
    assert nfvo.requests[0] == nfvo.requests[1]


async def test_a_retry_goes_on_with_the_same_grant(rig: Rig, nfvo: SmallNfvo) -> None:
    fault = Rule(call="make_machine", machine="workerNode-1", kind=RuleKind.ERROR, fault=VimFault.QUOTA)
    await rig.slipway.simulated.set_rules(SIMULATED_VIM, [fault])
    instance_id = await rig.create()
    failed = await rig.run(OperationType.INSTANTIATE, instance_id, INSTANTIATE)
    assert failed.operation_state is State.FAILED_TEMP
    await rig.slipway.simulated.clear(SIMULATED_VIM)
    await rig.slipway.lcm.retry(failed.id)
    done = await rig.rest(failed.id)
    assert done.operation_state is State.COMPLETED, done.error
    assert done.grant_id == failed.grant_id
    assert {one.zone for one in (await machines(rig, instance_id)).values()} == {"az-1"}
    assert len(nfvo.requests) == 1
