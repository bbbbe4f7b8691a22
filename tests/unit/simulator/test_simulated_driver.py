"""Endpoints, addresses, and the verbs by which people play with a simulated VIM."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest, NotFound, VimError, VimFault
from slipway.model.machine import Address, Found, Machine, Network, Port, Wanted
from slipway.simulator.vim import Rule, RuleKind, SimulatedDriver
from slipway.simulator.vim.database import MOST_OPEN
from tests.contract.clusters import Cluster, differences
from tests.contract.plans import Context, run_plan

OPEN = Path("/proc/self/fd")


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def at(endpoint: object) -> VimConnection:
    return VimConnection(SimulatedDriver.vim_type, {"endpoint": endpoint}, {}, {})


async def make(driver: SimulatedDriver, connection: VimConnection, wanted: Wanted) -> Found:
    found = await driver.find(connection, wanted.instance_id)
    await run_plan(driver, driver.steps_towards(wanted, found), Context(connection, wanted.instance_id))
    return await driver.find(connection, wanted.instance_id)


def one_machine(*ports: Port, cidr: str | None = "10.0.0.0/29", instance_id: str = "i") -> Wanted:
    network = Network(id=f"{instance_id}-n", name="net", cidr=cidr)
    machines = tuple(Machine(id=f"m-{p.id}", name=f"vdu-{p.id}", vdu="vdu", ports=(p,)) for p in ports)
    return Wanted(instance_id=instance_id, networks=(network,), machines=machines)


async def test_a_name_is_a_file_in_the_directory(tmp_path: Path) -> None:
    driver = SimulatedDriver(tmp_path / "vims")
    await driver.register(at("sim://lab-1"))
    assert (tmp_path / "vims" / "lab-1.db").exists()
    driver.close()


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://x",
        "sim://",
        "sim://Upper",
        "sim://a/b",
        "sim:///tmp/../etc/x.db",
        "sim:///etc/passwd",
        "sim:///tmp/anywhere.db",
        None,
        "sim://" + "a" * 65,
    ],
)
def test_other_endpoints_are_refused(driver: SimulatedDriver, endpoint: object) -> None:
    with pytest.raises(BadRequest, match=r"interfaceInfo\.endpoint"):
        driver.validate(at(endpoint))


def test_another_vim_type_is_refused(driver: SimulatedDriver) -> None:
    with pytest.raises(BadRequest, match="vimType"):
        driver.validate(VimConnection("OTHER", {"endpoint": "sim://x"}, {}, {}))


async def test_a_file_that_is_none_is_a_permanent_error_with_a_cure(driver: SimulatedDriver, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("not a database, however long it may be" * 50)
    with pytest.raises(VimError, match="Cure") as refused:
        await driver.check(at("sim://bad"))
    assert refused.value.fault is VimFault.PERMANENT


async def test_check_says_what_is_there(driver: SimulatedDriver, connection: VimConnection) -> None:
    await make(driver, connection, Cluster().wanted("a", workers=2))
    await make(driver, connection, Cluster().wanted("b", workers=0))
    assert await driver.check(connection) == "simulated VIM at sim://one: 4 machines of 2 instances, 0 rules"


async def test_a_taken_address_is_refused(driver: SimulatedDriver, connection: VimConnection) -> None:
    ports = [
        Port(id=f"p{number}", name="CP", network="i-n", addresses=(Address(ip="10.0.0.3"),)) for number in range(2)
    ]
    with pytest.raises(VimError, match=r"10\.0\.0\.3 for port CP is taken") as refused:
        await make(driver, connection, one_machine(*ports))
    assert refused.value.fault is VimFault.PERMANENT
    assert len((await driver.find(connection, "i")).ports) == 1


@pytest.mark.parametrize("address", ["10.9.0.1", "not-an-address"])
async def test_an_address_outside_the_range_is_refused(
    driver: SimulatedDriver, connection: VimConnection, address: str
) -> None:
    with pytest.raises(VimError, match=address) as refused:
        await make(
            driver, connection, one_machine(Port(id="p", name="CP", network="i-n", addresses=(Address(ip=address),)))
        )
    assert refused.value.fault is VimFault.PERMANENT


async def test_a_full_network_is_a_quota_error(driver: SimulatedDriver, connection: VimConnection) -> None:
    ports = [Port(id=f"p{number}", name="CP", network="i-n") for number in range(6)]
    with pytest.raises(VimError, match="no free address") as refused:
        await make(driver, connection, one_machine(*ports))
    assert refused.value.fault is VimFault.QUOTA
    taken = {port.address for port in (await driver.find(connection, "i")).ports}
    assert taken == {f"10.0.0.{number}" for number in range(2, 7)}


async def test_the_same_ports_get_the_same_addresses(driver: SimulatedDriver) -> None:
    ports = [Port(id=f"p{number}", name="CP", network="i-n") for number in range(3)]
    first = await make(driver, at("sim://first"), one_machine(*ports, cidr=None))
    second = await make(driver, at("sim://second"), one_machine(*reversed(ports), cidr=None))
    assert {p.id: (p.address, p.mac) for p in first.ports} == {p.id: (p.address, p.mac) for p in second.ports}


async def test_an_outside_network_is_shared_without_collisions(
    driver: SimulatedDriver, connection: VimConnection
) -> None:
    for name in ("a", "b"):
        await make(driver, connection, Cluster().wanted(name, workers=9))
    there = await driver.inventory(connection)
    outside = [port.address for found in there.values() for port in found.ports if port.name == "CP2"]
    assert len(set(outside)) == len(outside) == 20


async def test_another_instance_cannot_take_a_machine(driver: SimulatedDriver, connection: VimConnection) -> None:
    port = Port(id="p", name="CP", external_network="public")
    before = await make(driver, connection, one_machine(port))
    with pytest.raises(VimError, match="another instance"):
        await make(driver, connection, one_machine(port, instance_id="thief"))
    assert await driver.find(connection, "i") == before
    assert (await driver.find(connection, "thief")).machines == ()


async def test_a_lost_machine_comes_back_with_its_ports(driver: SimulatedDriver, connection: VimConnection) -> None:
    wanted = Cluster().wanted("i")
    before = await make(driver, connection, wanted)
    await driver.lose_machine(connection, wanted.machines[1].id)
    assert len((await driver.find(connection, "i")).machines) == 2
    after = await make(driver, connection, wanted)
    assert differences(after, wanted) == []
    assert after.ports == before.ports
    with pytest.raises(NotFound):
        await driver.lose_machine(connection, "nobody")
    with pytest.raises(NotFound):
        await driver.break_machine(connection, "nobody")


async def test_it_is_fast_among_many_instances(driver: SimulatedDriver, connection: VimConnection) -> None:
    for number in range(100):
        await make(driver, connection, Cluster().wanted(f"i{number}", workers=4))
    best = 1.0
    for number in range(5):
        begun = time.process_time()  # work, not waiting: other processes may be busy
        await make(driver, connection, Cluster().wanted(f"more{number}", workers=2))
        best = min(best, time.process_time() - begun)
    assert best < 0.010


@pytest.mark.parametrize(("grace", "stopped"), [(0, None), (5, 1)])
async def test_a_machine_is_stopped_in_order_before_it_goes_when_there_is_grace(
    driver: SimulatedDriver, connection: VimConnection, grace: int, stopped: int | None
) -> None:
    await make(driver, connection, Cluster().wanted("a", workers=0))
    nothing = Wanted(instance_id="a", grace_seconds=grace)
    plan = driver.steps_towards(nothing, await driver.find(connection, "a"))
    await run_plan(driver, plan, Context(connection, "a"))
    assert (await driver.calls(connection)).get("stop_machine") == stopped
    assert await driver.inventory(connection) == {}


async def test_a_machine_that_does_not_stop_goes_when_the_grace_is_over(
    driver: SimulatedDriver, connection: VimConnection
) -> None:
    await make(driver, connection, Cluster().wanted("a", workers=0))
    await driver.set_rules(connection, [Rule(kind=RuleKind.LATENCY, call="stop_machine", seconds=3600)])
    nothing = Wanted(instance_id="a", grace_seconds=1)
    plan = driver.steps_towards(nothing, await driver.find(connection, "a"))
    async with asyncio.timeout(30):
        await run_plan(driver, plan, Context(connection, "a"))
    assert await driver.inventory(connection) == {}


async def test_a_question_makes_no_vim_and_few_files_stay_open(driver: SimulatedDriver, tmp_path: Path) -> None:
    """VIMs are named in requests, so that anybody could fill the disk and take all descriptors of the process."""
    for number in range(100):
        named = at(f"sim://never-{number}")
        assert await driver.find(named, "anybody's") == Found()
    assert names_in(tmp_path) == []
    before = len(names_in(OPEN))
    for number in range(100):
        await driver.register(at(f"sim://made-{number}"))
    assert len(names_in(OPEN)) - before <= 3 * MOST_OPEN + 10
