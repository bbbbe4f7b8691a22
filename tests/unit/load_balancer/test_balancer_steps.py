"""What the steps do to a balancer: of the cluster and of CNFs on it, one after another, at once, and after a crash."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.load_balancer.arguments import AddRoutes, Forget, RemoveRoutes, SetUp
from slipway.load_balancer.cnf_steps import CheckBalancer, Expose, Withdraw
from slipway.load_balancer.routes import FrontEnd
from slipway.model.errors import StepError
from slipway.store import instances, load_balancers, workers
from tests.unit.load_balancer.balancer_world import (
    BALANCER,
    MASTER,
    OTHER,
    WORKER,
    World,
    front_ends,
    machine,
    new_world,
    node,
    set_up,
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = new_world(tmp_path)
    yield made
    made.database.close()


def servers(world: World, backend: str) -> list[str]:
    block = world.host.config.split(f"\nbackend {backend}\n")[1].split("\nfrontend ")[0]
    return re.findall(r"^    server (.*)$", block, re.MULTILINE)


async def test_a_new_balancer_leads_to_the_masters_api(world: World) -> None:
    await set_up(world)
    assert [one[0] for one in world.host.ran] == ["install_haproxy", "apply_haproxy"]
    assert servers(world, "kubernetes-apiserver") == ["master-0 10.0.0.1:6443"]
    assert "    bind *:8383\n" in world.host.config


async def test_nodes_come_and_go_in_every_front_end(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    await world.cnf.expose(Expose(first=True), world.operation(cnf))
    assert servers(world, "shop_web_30080") == ["master-0 10.0.0.1:30080", "worker-0 10.0.0.2:30080"]
    await world.steps.add_routes(AddRoutes(balancer=world.balancer(), nodes=(OTHER,)), world.operation())
    await world.steps.remove_routes(RemoveRoutes(balancer=world.balancer(), nodes=(WORKER,)), world.operation())
    assert servers(world, "shop_web_30080") == ["master-0 10.0.0.1:30080", "worker-1 10.0.0.3:30080"]


async def test_undone_routes_are_as_they_were(world: World) -> None:
    await set_up(world)
    ctx, before = world.operation(), (await world.record()).routes
    added = AddRoutes(balancer=world.balancer(), nodes=(OTHER,))
    await world.steps.add_routes(added, ctx)
    assert (await world.record()).routes != before
    await world.steps.undo_add_routes(added, ctx)
    gone = RemoveRoutes(balancer=world.balancer(), nodes=(WORKER, MASTER))
    await world.steps.remove_routes(gone, ctx)
    assert servers(world, "kubernetes-apiserver") == []
    await world.steps.undo_remove(gone, ctx)
    assert (await world.record()).routes == before
    assert servers(world, "kubernetes-apiserver") == ["master-0 10.0.0.1:6443"]


async def test_a_scale_that_the_machine_refused_can_be_rolled_back(world: World) -> None:
    """As with a wrong ssh_password in its request: every try of the rollback would end like the step."""
    await set_up(world)
    before = (await world.record()).routes
    joining = AddRoutes(balancer=world.balancer(), nodes=(OTHER,))
    leaving = RemoveRoutes(balancer=world.balancer(), nodes=(WORKER,))
    ctx = world.operation()
    world.host.fails["apply_haproxy"] = "10.0.0.4 refused the login"
    with pytest.raises(StepError, match="refused the login"):
        await world.steps.add_routes(joining, ctx)
    with pytest.raises(StepError, match="refused the login"):
        await world.steps.remove_routes(leaving, ctx)
    await world.steps.undo_remove(leaving, ctx)
    await world.steps.undo_add_routes(joining, ctx)
    assert (await world.record()).routes == before
    world.host.fails.clear()
    await world.steps.add_routes(joining, ctx)
    world.host.fails["apply_haproxy"] = "No space left on device"
    with pytest.raises(StepError, match="No space left"):  # it leads there
        await world.steps.undo_add_routes(joining, ctx)


async def test_a_healed_balancer_and_a_whole_heal_keep_the_front_ends(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    await world.cnf.expose(Expose(), world.operation(cnf))
    before = world.host.config
    world.host.files.files.clear()  # a new machine
    renewed = node("externalLB-0", machine="new-id", point="externalLB_CP1")
    world.machines["new-id"] = machine(renewed, "10.0.0.9")
    again = SetUp(balancer=world.balancer(one=renewed), nodes=(MASTER, WORKER), again=True)
    await world.steps.set_up(again, world.operation())
    assert world.host.config == before
    world.expose(cnf, "shop/web", 30080, 30081)
    await world.cnf.expose(Expose(), world.operation(cnf))  # finds the new machine
    assert "shop_web_30081" in front_ends(world)
    whole = SetUp(balancer=world.balancer(one=renewed), nodes=(MASTER, OTHER), again=True)
    await world.steps.set_up(whole, world.operation())
    assert front_ends(world) == ["kubernetes-apiserver", "shop_web_30080", "shop_web_30081"]
    assert servers(world, "shop_web_30080")[1] == "worker-1 10.0.0.3:30080"


async def test_front_ends_follow_the_services_and_go_with_the_vnf(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    outcome = await world.cnf.expose(Expose(first=True), world.operation(cnf))
    told = outcome.instance["instantiatedVnfInfo"]["metadata"]["loadBalancer"]
    assert told == {"address": "10.0.0.4", "frontEnds": [{"port": 30080, "namespace": "shop", "service": "web"}]}
    world.expose(cnf, "shop/web", 30081)
    changing = world.operation(cnf)
    await world.cnf.expose(Expose(), changing)
    assert front_ends(world) == ["kubernetes-apiserver", "shop_web_30081"]
    await world.cnf.undo(Expose(), changing)
    assert front_ends(world) == ["kubernetes-apiserver", "shop_web_30080"]
    await world.cnf.withdraw(Withdraw(), world.operation(cnf))
    assert front_ends(world) == ["kubernetes-apiserver"]


async def test_an_undone_instantiation_leaves_no_front_end(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    ctx = world.operation(cnf)
    await world.cnf.expose(Expose(first=True), ctx)
    await world.cnf.undo(Expose(first=True), ctx)
    assert front_ends(world) == ["kubernetes-apiserver"]
    assert (await world.record()).routes.exposed == {}


async def test_changes_at_the_same_time_all_stay(world: World) -> None:
    """Two CNFs and the cluster at once: whatever the order, the machine ends with all of it."""
    await set_up(world)
    first, second = world.new_instance(), world.new_instance()
    world.expose(first, "shop/web", 30080)
    world.expose(second, "shop/api", 30090)
    at_work = 0

    async def slow(name: str) -> None:
        nonlocal at_work
        if name == "apply_haproxy":
            at_work += 1
            assert at_work == 1  # never two at once
            await asyncio.sleep(0.05)
            at_work -= 1

    world.host.before = slow
    await asyncio.gather(
        world.cnf.expose(Expose(), world.operation(first)),
        world.cnf.expose(Expose(), world.operation(second)),
        world.steps.add_routes(AddRoutes(balancer=world.balancer(), nodes=(OTHER,)), world.operation()),
    )
    assert front_ends(world) == ["kubernetes-apiserver", "shop_web_30080", "shop_api_30090"]
    assert len(servers(world, "shop_api_30090")) == 3
    revisions = [int(ran[1]) for ran in world.host.ran if ran[0] == "apply_haproxy"]
    assert revisions == sorted(set(revisions))


async def test_who_waited_for_a_heal_of_the_balancer_changes_the_new_machine(world: World) -> None:
    await set_up(world)
    stays, leaves = world.new_instance(), world.new_instance()
    world.expose(leaves, "shop/old", 30070)
    await world.cnf.expose(Expose(), world.operation(leaves))
    world.expose(stays, "shop/web", 30080)
    renewed = node("externalLB-0", machine="new-id", point="externalLB_CP1")
    world.machines["new-id"] = machine(renewed, "10.0.0.9")
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(name: str) -> None:
        begun.set()
        await may_end.wait()

    world.host.before = slow
    again = SetUp(balancer=world.balancer(one=renewed), nodes=(MASTER, WORKER), again=True)
    heal = asyncio.create_task(world.steps.set_up(again, world.operation()))
    await begun.wait()
    came = asyncio.create_task(world.cnf.expose(Expose(first=True), world.operation(stays)))
    went = asyncio.create_task(world.cnf.withdraw(Withdraw(), world.operation(leaves)))
    await asyncio.sleep(0.3)  # both have looked for the balancer, and wait for their turn
    world.host.machines.clear()
    may_end.set()
    outcome, *_ = await asyncio.gather(came, went, heal)
    assert set(world.host.machines) == {"new-id"}
    assert outcome.instance["instantiatedVnfInfo"]["metadata"]["loadBalancer"]["address"] == "10.0.0.9"
    assert front_ends(world) == ["kubernetes-apiserver", "shop_web_30080"]


async def test_a_dead_workers_change_does_not_keep_others_waiting(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    world.database.write_now(workers.renew_lease, "killed", 600.0)
    dead = world.operation(worker="killed")
    assert world.database.write_now(load_balancers.take, world.cluster_id, dead.operation_id)
    waiting = asyncio.create_task(world.cnf.expose(Expose(), world.operation(cnf)))
    await asyncio.sleep(0.3)
    assert not waiting.done()  # it may still live
    world.database.write_now(workers.release_lease, "killed")
    await asyncio.wait_for(waiting, 5)
    assert "shop_web_30080" in front_ends(world)


async def test_who_was_thought_dead_can_not_undo_what_others_did(world: World) -> None:
    """A worker that stood still between two of its lines comes back when its operation is somebody else's."""
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    world.database.write_now(workers.renew_lease, "frozen", 600.0)
    frozen, stands, thawed = world.operation(worker="frozen"), asyncio.Event(), asyncio.Event()

    async def freeze(name: str) -> None:
        if name == "apply_haproxy" and not thawed.is_set():
            stands.set()
            world.database.write_now(workers.release_lease, "frozen")
            await thawed.wait()

    world.host.before = freeze
    args = AddRoutes(balancer=world.balancer(), nodes=(OTHER,))
    late = asyncio.create_task(world.steps.add_routes(args, frozen))
    await stands.wait()
    elsewhere = type(world.records)(world.database)  # another process
    async with elsewhere.changing(world.cluster_id, world.operation(cnf).operation_id) as held:
        assert OTHER.name not in [one.name for one in held.record.routes.servers]
        world.host.files.write("/var/lib/slipway/load-balancer.revision", str(held.revision))
        held.save(held.record)
    before = world.host.config
    thawed.set()
    with pytest.raises(StepError, match="changed by a later operation") as caught:
        await late
    assert caught.value.temporary
    assert world.host.config == before
    await world.steps.add_routes(args, frozen)  # as the next try does
    assert len(servers(world, "kubernetes-apiserver")) == 1


async def test_a_change_that_was_killed_after_its_work_is_done_again(world: World) -> None:
    await set_up(world)
    ctx, args = world.operation(), AddRoutes(balancer=world.balancer(), nodes=(OTHER,))
    await world.steps.add_routes(args, ctx)
    once = world.host.config
    await world.steps.add_routes(args, ctx)
    assert world.host.config == once


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("cat: write error: No space left on device", "free some space"),
        ("port 30080 is in use by nginx", "stop that program"),
        ("haproxy does not accept it", ""),
    ],
)
async def test_what_a_machine_refuses_is_not_recorded(world: World, said: str, cure: str) -> None:
    await set_up(world)
    cnf, other = world.new_instance(), world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    world.expose(other, "shop/api", 30090)
    world.host.fails["apply_haproxy"] = said
    with pytest.raises(StepError, match=f"Load balancer externalLB-0: .*{re.escape(said)}.*{cure}"):
        await world.cnf.expose(Expose(), world.operation(cnf))
    world.host.fails.clear()
    await world.cnf.expose(Expose(), world.operation(other))  # is not made to fail by it
    assert front_ends(world) == ["kubernetes-apiserver", "shop_api_30090"]


async def test_a_port_that_is_taken_is_refused_by_name(world: World) -> None:
    await set_up(world)
    first, second = world.new_instance(), world.new_instance()
    world.expose(first, "shop/web", 30080)
    await world.cnf.expose(Expose(), world.operation(first))
    wanted = FrontEnd(port=30080, namespace="bank", service="login")
    with pytest.raises(StepError, match=f"Port 30080 .*bank/login, is taken by shop/web port 30080 .*{first}"):
        await world.cnf.check(CheckBalancer(front_ends=(wanted,)), world.operation(second))
    api = FrontEnd(port=8383, namespace="bank", service="login")
    with pytest.raises(StepError, match=r"Port 8383 .* is taken by the cluster's API"):
        await world.cnf.check(CheckBalancer(front_ends=(api,)), world.operation(second))
    await world.cnf.check(CheckBalancer(front_ends=(wanted,)), world.operation(first))  # its own


async def test_a_balancer_of_another_project_is_not_reached(world: World) -> None:
    await set_up(world)
    stranger = world.new_instance("other")
    ran = len(world.host.ran)
    with pytest.raises(StepError, match="no cluster of this project with a load balancer"):
        await world.cnf.check(CheckBalancer(), world.operation(stranger, project="other"))
    with pytest.raises(StepError, match="no cluster of this project with a load balancer"):
        await world.cnf.expose(Expose(), world.operation(stranger, project="other"))
    await world.cnf.withdraw(Withdraw(), world.operation(stranger, project="other"))  # there is nothing of it
    assert (len(world.host.ran), world.host.logins[1:]) == (ran, [])


async def test_no_address_leads_to_another_machine(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    with pytest.raises(StepError, match=r"ssh_ip: 10\.9\.9\.9 is not an address of .*which has: 10\.0\.0\.4"):
        await world.cnf.expose(Expose(ssh_ip="10.9.9.9"), world.operation(cnf))
    await world.cnf.expose(Expose(ssh_ip="10.0.0.4", login=BALANCER.login), world.operation(cnf))


async def test_what_a_deleted_instance_left_goes_with_the_next_change(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    await world.cnf.expose(Expose(), world.operation(cnf))
    world.database.write_now(instances.delete, cnf)
    await world.steps.add_routes(AddRoutes(balancer=world.balancer(), nodes=(OTHER,)), world.operation())
    assert front_ends(world) == ["kubernetes-apiserver"]


async def test_what_a_deleted_instance_left_is_free_for_others(world: World) -> None:
    await set_up(world)
    gone, cnf = world.new_instance(), world.new_instance()
    world.expose(gone, "shop/web", 30080)
    await world.cnf.expose(Expose(), world.operation(gone))
    world.database.write_now(instances.delete, gone)
    wanted = FrontEnd(port=30080, namespace="bank", service="login")
    await world.cnf.check(CheckBalancer(front_ends=(wanted,)), world.operation(cnf))


async def test_a_service_that_is_not_tcp_and_a_vnf_without_any_are_refused(world: World) -> None:
    await set_up(world)
    cnf = world.new_instance()
    with pytest.raises(StepError, match="None of the VNF's Services is of type NodePort"):
        await world.cnf.expose(Expose(first=True), world.operation(cnf))
    world.expose(cnf, "shop/dns", 30053, protocol="UDP")
    with pytest.raises(StepError, match=r"Service shop/dns has the NodePort 30053/UDP, .* TCP only"):
        await world.cnf.expose(Expose(), world.operation(cnf))


async def test_a_cluster_that_answers_nonsense_does_not_change_the_balancer(world: World) -> None:
    await set_up(world)
    before, cnf = world.host.config, world.new_instance()
    world.expose(cnf, "shop/web", True, 70000, -1)
    with pytest.raises(StepError, match="None of the VNF's Services"):
        await world.cnf.expose(Expose(first=True), world.operation(cnf))
    world.expose(cnf, "Shop/web", 30080)  # no namespace of Kubernetes
    with pytest.raises(StepError, match="it can't be told its routes, for a namespace or Service has a name"):
        await world.cnf.expose(Expose(), world.operation(cnf))
    assert world.host.config == before
    world.expose(cnf, "shop/web", 30080)
    world.owned[cnf].remove("Shop/web")
    await world.cnf.expose(Expose(), world.operation(cnf))


async def test_a_package_script_is_told_all_and_what_is_new(world: World) -> None:
    await set_up(world, script="Scripts/balance.sh")
    assert [one[0] for one in world.host.ran][:4] == ["fence", "private_directory", "install_files", "own_script"]
    assert b"set -- 'install' '--api-port' '8383' '--masters' 'master-0=10.0.0.1'" in given(world)
    assert b"# Scripts/balance.sh of " + world.cluster_id.encode() in given(world)
    cnf = world.new_instance()
    world.expose(cnf, "shop/web", 30080)
    await world.cnf.expose(Expose(), world.operation(cnf))
    assert b"set -- 'add' " in given(world)
    assert b"'--front-ends' 'shop/web=30080' '--changed-nodes' '' '--changed-front-ends' 'shop/web=30080'" in given(
        world
    )
    await world.cnf.withdraw(Withdraw(script="Scripts/own.sh"), world.operation(cnf))
    assert b"set -- 'remove' " in given(world)
    assert b"# Scripts/own.sh of " + cnf.encode() in given(world)


async def test_a_script_of_a_cnf_is_refused_where_the_template_is_used(world: World) -> None:
    await set_up(world)
    with pytest.raises(StepError, match=r"script_path: .* set up from Slipway's template.*leave script_path out"):
        await world.cnf.check(CheckBalancer(script="Scripts/own.sh"), world.operation(world.new_instance()))


async def test_without_a_balancer_there_is_nothing_to_change(world: World) -> None:
    with pytest.raises(StepError, match="has no load balancer"):
        await world.steps.add_routes(AddRoutes(balancer=world.balancer(), nodes=(OTHER,)), world.operation())
    await set_up(world)
    await world.steps.undo_set_up(SetUp(balancer=world.balancer(), again=True), world.operation())
    assert (await world.record()).routes.servers
    await world.steps.forget(Forget(cluster=world.cluster_id), world.operation())
    assert await world.records.get(world.cluster_id) is None


def given(world: World) -> bytes:
    return world.host.files.files["/archive"].content
