"""No balancer keeps a CNF: one that refuses, is gone or was never set up lets it be rolled back and terminated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from slipway.load_balancer.arguments import AddRoutes, Forget
from slipway.load_balancer.cnf_steps import Expose, Withdraw
from slipway.model.errors import StepError
from slipway.store import instances
from tests.unit.load_balancer.balancer_world import OTHER, World, front_ends, new_world, set_up


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = new_world(tmp_path)
    yield made
    made.database.close()


@pytest.mark.parametrize("args", [Expose(ssh_ip="10.9.9.9"), Expose(script="Scripts/own.sh"), Expose()])
async def test_a_vnf_that_was_refused_can_be_rolled_back(world: World, args: Expose) -> None:
    await set_up(world)
    if args == Expose():
        await world.steps.forget(Forget(cluster=world.cluster_id), world.operation())
    cnf, ran = world.new_instance(), len(world.host.ran)
    world.expose(cnf, "shop/web", 30080)
    ctx = world.operation(cnf)
    with pytest.raises(StepError):
        await world.cnf.expose(args, ctx)
    await world.cnf.undo(args, ctx)
    assert len(world.host.ran) == ran


@pytest.mark.parametrize("said", ["10.0.0.4 refused the login", "No space left on device"])
async def test_a_vnf_that_the_machine_refused_can_be_rolled_back(world: World, said: str) -> None:
    """As with a wrong ssh_password in the request: every try of the rollback would end like the step."""
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    world.host.fails["apply_haproxy"] = said
    ctx = world.operation(cnf)
    with pytest.raises(StepError, match=said):
        await world.cnf.expose(Expose(first=True), ctx)
    await world.cnf.undo(Expose(first=True), ctx)
    world.host.fails.clear()
    await world.steps.add_routes(AddRoutes(balancer=world.balancer(), nodes=(OTHER,)), world.operation())
    assert front_ends(world) == ["kubernetes-apiserver"]


async def test_what_was_exposed_is_taken_back_or_the_rollback_says_why_not(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    ctx = world.operation(cnf)
    await world.cnf.expose(Expose(first=True), ctx)
    world.host.fails["apply_haproxy"] = "No space left on device"
    with pytest.raises(StepError, match="No space left"):
        await world.cnf.undo(Expose(first=True), ctx)
    world.host.fails.clear()
    await world.cnf.undo(Expose(first=True), ctx)
    assert front_ends(world) == ["kubernetes-apiserver"]


@pytest.mark.parametrize("said", ["10.0.0.4 can't be reached", "10.0.0.4 refused the login", "No space left on device"])
async def test_a_balancer_out_of_reach_or_order_does_not_keep_a_vnf(world: World, said: str) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    await world.cnf.expose(Expose(), world.operation(cnf))
    world.host.fails["apply_haproxy"] = said
    await world.cnf.withdraw(Withdraw(), world.operation(cnf))
    world.host.fails.clear()
    await world.steps.add_routes(AddRoutes(balancer=world.balancer(), nodes=(OTHER,)), world.operation())
    assert front_ends(world) == ["kubernetes-apiserver"]


async def test_a_balancer_whose_set_up_failed_does_not_keep_a_vnf(world: World) -> None:
    async with world.records.changing(world.cluster_id, "the set-up", new=True):
        pass
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    ctx = world.operation(cnf)
    with pytest.raises(StepError, match="was not set up yet"):
        await world.cnf.expose(Expose(), ctx)
    await world.cnf.undo(Expose(), ctx)
    await world.cnf.withdraw(Withdraw(), ctx)
    assert not world.host.ran


async def test_a_cluster_that_has_no_login_any_more_does_not_keep_a_vnf(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    await world.cnf.expose(Expose(), world.operation(cnf))
    cluster = world.database.read_now(instances.get, world.cluster_id)
    world.database.write_now(instances.update, replace(cluster, parameters={}))
    await world.cnf.withdraw(Withdraw(), world.operation(cnf))
