"""Lives of a VNF with bad luck: a VIM that fails and lies, a server that is killed, people who decide at random.

Whatever happens, every operation comes to rest, the record agrees with the VIM whenever an operation ended well or was
rolled back, and in the end nothing is left.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from slipway.model.errors import Conflict, RequestError, VimFault
from slipway.model.instance import InstantiationState
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import (
    AnyRequest,
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.settings import Settings
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.agreement import assert_agreement
from tests.functional.crash_child import work_with_luck
from tests.functional.lives import forks
from tests.functional.rig import SIMULATED_VIM, Rig, rig_in, settings_in

OPERATIONS = 10
CRASH = pytest.mark.group(name="crash")
LIVES = 5  # restarts before an operation must come to rest


class Life:
    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings = settings
        self.chance = Random(seed)
        self.story: list[str] = []

    async def live(self) -> None:
        async with rig_in(self.settings, working=False) as rig:
            instance_id = await rig.create()
        for _ in range(OPERATIONS):
            await self.one_operation(instance_id)
        await self.end(instance_id)

    async def one_operation(self, instance_id: str) -> None:
        async with rig_in(self.settings, working=False) as rig:
            await rig.slipway.simulated.set_rules(SIMULATED_VIM, self.bad_luck())
            kind, request = self.wish((await rig.instance(instance_id)).vnf.instantiation_state)
            self.story.append(f"{kind} {request}")
            try:
                accepted = await rig.slipway.lcm.start_operation(kind, instance_id, request)
            except RequestError as refused:
                self.story.append(f"refused: {refused.detail}")
                return
        await self.until_ended(accepted.id, instance_id)

    async def until_ended(self, operation_id: str, instance_id: str) -> None:
        for _ in range(20):
            await self.until_rest(operation_id)
            async with rig_in(self.settings, working=False) as rig:
                operation = await rig.rest(operation_id)
                self.story.append(f"{operation.operation_state} {operation.error and operation.error.detail}")
                if operation.operation_state is not State.FAILED_TEMP:
                    await self.compare(rig, operation, instance_id)
                    return
                await self.decide(rig, operation_id)
        raise AssertionError("an operation did not end, however often somebody decided about it")

    async def until_rest(self, operation_id: str) -> None:
        """With kills for a while, then without."""
        for life in range(LIVES + 1):
            left = self.chance.choice([None, *range(1, 9)]) if life < LIVES else None
            process = forks.Process(target=work_with_luck, args=(self.settings, operation_id, left))
            process.start()
            await asyncio.to_thread(process.join, 60)
            code = process.exitcode
            process.close()
            self.story.append(f"worker ended with {code}")
            if code == 0:
                return
        raise AssertionError("a worker that nobody killed did not end")

    async def decide(self, rig: Rig, operation_id: str) -> None:
        if self.chance.random() < 0.5:
            await rig.slipway.simulated.clear(SIMULATED_VIM)
        decision = self.chance.choice(["retry", "roll_back", "fail"])
        self.story.append(decision)
        try:
            await getattr(rig.slipway.lcm, decision)(operation_id)
        except Conflict as refused:
            self.story.append(f"refused: {refused.detail}")
            await rig.slipway.lcm.fail(operation_id)

    async def compare(self, rig: Rig, operation: Operation, instance_id: str) -> None:
        # What a failed step may have made is in nobody's record, until the next operation finds it.
        if operation.operation_state in (State.COMPLETED, State.ROLLED_BACK) and not self.failed_before():
            info = (await rig.instance(instance_id)).vnf.instantiated_vnf_info
            assert_agreement(info, (await rig.inventory()).get(instance_id))

    def failed_before(self) -> bool:
        return any(line.startswith("FAILED ") for line in self.story)

    async def end(self, instance_id: str) -> None:
        """With a VIM in good health, a termination leaves nothing, whatever was before."""
        async with rig_in(self.settings) as rig:
            await rig.slipway.simulated.clear(SIMULATED_VIM)
            if (await rig.instance(instance_id)).vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
                request = InstantiateRequest(flavour_id="simple")
                assert (await rig.run(OperationType.INSTANTIATE, instance_id, request)).operation_state == "COMPLETED"
            request_ = TerminateRequest(termination_type=TerminationType.FORCEFUL)
            ended = await rig.run(OperationType.TERMINATE, instance_id, request_)
            assert ended.operation_state is State.COMPLETED
            assert await rig.inventory() == {}

    def wish(self, state: InstantiationState) -> tuple[OperationType, AnyRequest]:
        if state is InstantiationState.NOT_INSTANTIATED:
            return OperationType.INSTANTIATE, InstantiateRequest(flavour_id=self.chance.choice(["simple", "ha"]))
        steps = self.chance.randint(1, 3)
        wishes: list[tuple[OperationType, AnyRequest]] = [
            (OperationType.SCALE, _scale(ScaleType.SCALE_OUT, steps)),
            (OperationType.SCALE, _scale(ScaleType.SCALE_IN, steps)),
            (OperationType.HEAL, HealRequest()),
            (OperationType.HEAL, HealRequest(additional_params={"all": True})),
            (OperationType.TERMINATE, TerminateRequest(termination_type=TerminationType.FORCEFUL)),
        ]
        return self.chance.choice(wishes)

    def bad_luck(self) -> list[Rule]:
        calls = ["make_machine", "remove_machine", "make_network", "find", "get_machine"]
        possible = [
            Rule(kind=RuleKind.ERROR, call=self.chance.choice(calls), fault=VimFault.TEMPORARY, times=1),
            Rule(kind=RuleKind.ERROR, call=self.chance.choice(calls[:3]), fault=VimFault.PERMANENT, nth=2, times=1),
            Rule(kind=RuleKind.ERROR, call="make_machine", fault=VimFault.QUOTA, nth=3, times=2),
            Rule(kind=RuleKind.TIMEOUT_AFTER_WORK, call=self.chance.choice(calls[:3]), times=2),
            Rule(kind=RuleKind.ERROR_THEN_ACTIVE, call="make_machine", looks=2, times=2),
            Rule(kind=RuleKind.PARTIAL_LIST, call="find", times=1),
        ]
        return self.chance.sample(possible, self.chance.randint(0, 3))


def _scale(kind: ScaleType, steps: int) -> ScaleRequest:
    return ScaleRequest(type=kind, aspect_id="workers", number_of_steps=steps)


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(more, marks=CRASH) for more in range(3, 8))])
async def test_a_life_with_bad_luck(seed: int, tmp_path: Path) -> None:
    life = Life(settings_in(tmp_path, lease_seconds=0.4), seed)
    try:
        await life.live()
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *life.story])) from error
