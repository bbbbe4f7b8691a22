"""A stack whose template has one port more than the VNFD: `vip_CP`, which no machine holds, for an address to share.

Floating IPs lead to it and to all machines: `vip_FloatingIP`, `masterNode_FloatingIP`, `workerNode_FloatingIP`.
"""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid4, uuid5

from msgspec.structs import replace

from slipway.model.action import StepContext
from slipway.model.machine import FoundMachine, Outcome, Port
from slipway.simulator.vim.attachments import release
from slipway.simulator.vim.networks import plug
from tests.drivers.stack import StackDriver, Template

NAME, FLOATING, FLOATING_ADDRESS = "vip_CP", "vip_FloatingIP", "203.0.113.200"


class SharedPortStack(StackDriver):
    async def _updated(self, template: Template, grace: int, ctx: StepContext) -> Outcome:
        outcome = await super()._updated(template, grace, ctx)
        if not template.machines:
            return outcome
        connection, id_ = await ctx.connection(), _id(ctx)
        port = Port(id=id_, name=NAME, network=outcome.networks[0].id)
        there = await self.find(connection, ctx.instance_id)
        if all(one.id != id_ for one in there.ports):
            with self._calls.behind(connection) as db:
                # The simulated VIM makes ports with machines only: so it is, and is taken off at once.
                plug(db, port, template.machines[0], ctx.instance_id, ctx.operation_id, str(uuid4()))
                release(db, "port", [id_], template.machines[0].id, ctx.instance_id)
            there = await self.find(connection, ctx.instance_id)
        shared = tuple(replace(one, floating={FLOATING: FLOATING_ADDRESS}) for one in there.ports if one.id == id_)
        return replace(outcome, ports=shared, machines=tuple(_floating(one) for one in outcome.machines))

    async def _remove_leftovers(self, held: set[str], ctx: StepContext) -> list[str]:
        return await super()._remove_leftovers(held | {_id(ctx)} if held else held, ctx)


def _floating(machine: FoundMachine) -> FoundMachine:
    first, *others = machine.ports
    last = (first.address or "").rpartition(".")[2]
    ip = {f"{machine.vdu}_FloatingIP": f"203.0.113.{last}"}
    return replace(machine, ports=(replace(first, floating=ip), *others))


def _id(ctx: StepContext) -> str:
    return str(uuid5(NAMESPACE_URL, f"{ctx.instance_id}/{NAME}"))
