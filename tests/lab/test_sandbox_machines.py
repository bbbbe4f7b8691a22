"""What only real machines show: logging in, disks and their data, addresses, crashes in the middle, two at once."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import msgspec
import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Found, FoundMachine, Machine, Network, Port, Volume, Wanted
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from slipway.vim.sandbox.paths import SandboxPaths, default_cache
from tests.contract.clusters import differences, healed, nothing
from tests.contract.plans import Context, hand, run_plan
from tests.lab.cluster_lab import clear

more = pytest.mark.group(name="sandbox")

INSTANCE = "lab-instance"


def one_machine(instance_id: str = INSTANCE, *, boot_data: str | None = None, cidr: str | None = None) -> Wanted:
    network = Network(id=f"{instance_id}-net", name="internalVL", cidr=cidr)
    machine = Machine(
        id=f"{instance_id}-vnfc",
        name="workerNode-1",
        vdu="workerNode",
        boot_data=boot_data,
        ports=(Port(id=f"{instance_id}-p1", name="CP1", network=network.id),),
        volumes=(Volume(id=f"{instance_id}-vol", name="data", size_bytes=64 << 20),),
    )
    return Wanted(instance_id=instance_id, networks=(network,), machines=(machine,))


async def reached(driver: SandboxDriver, connection: VimConnection, wanted: Wanted, operation: str = "op-1") -> Found:
    found = await driver.find(connection, wanted.instance_id)
    await run_plan(driver, driver.steps_towards(wanted, found), Context(connection, wanted.instance_id, operation))
    return await driver.find(connection, wanted.instance_id)


@asynccontextmanager
async def logged_in(
    machine: FoundMachine, key: Path, password: str | None = None
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """By the key that the VIM told, and by no other."""
    address, host_key = machine.ports[0].address, machine.host_key
    assert address is not None
    assert host_key is not None
    trusted = asyncssh.import_known_hosts(f"{address} {host_key}\n")
    how = {"password": password, "client_keys": None} if password else {"client_keys": [str(key)]}
    async with asyncssh.connect(address, username="slipway", known_hosts=trusted, config=None, **how) as ssh:
        yield ssh


async def output(ssh: asyncssh.SSHClientConnection, command: str) -> str:
    return str((await ssh.run(command, check=True, timeout=30)).stdout).strip()


@pytest.fixture
def key(engines: Engines) -> Path:
    return engines.paths.key


@pytest.mark.journey
async def test_a_machine_is_what_was_asked_for(driver: SandboxDriver, connection: VimConnection, key: Path) -> None:
    found = await reached(driver, connection, one_machine())
    machine = found.machines[0]
    async with logged_in(machine, key) as ssh:
        assert await output(ssh, "hostname") == "workerNode-1"
        assert await output(ssh, "sudo id -u") == "0"
        addresses = await output(ssh, "ip -brief address; ip -brief link")
        assert machine.ports[0].address is not None
        assert machine.ports[0].address in addresses
        assert machine.ports[0].mac is not None
        assert machine.ports[0].mac in addresses
        assert await output(ssh, "systemctl is-system-running --wait || true") == "running"
        assert await output(ssh, "sudo blockdev --getsize64 /dev/vdb") == str(64 << 20)


@more
async def test_a_password_opens_and_a_wrong_one_does_not(
    driver: SandboxDriver, connection: VimConnection, key: Path
) -> None:
    machine = (await reached(driver, connection, one_machine())).machines[0]
    async with logged_in(machine, key, "over the hills") as ssh:
        assert await output(ssh, "whoami") == "slipway"
    with pytest.raises(asyncssh.PermissionDenied):
        async with logged_in(machine, key, "far away"):
            pass


@more
async def test_user_data_runs_once(
    driver: SandboxDriver, connection: VimConnection, key: Path, operations: EngineOperations
) -> None:
    wanted = one_machine(boot_data="#!/bin/sh\necho ran >>/var/tmp/ran\n")
    machine = (await reached(driver, connection, wanted)).machines[0]
    async with logged_in(machine, key) as ssh:
        await output(ssh, "systemctl is-system-running --wait || true")
    await driver.work(connection, lambda operations: operations.engine.kill(machine.resource_id))
    again = (await reached(driver, connection, wanted, "op-2")).machines[0]
    assert again.host_key == machine.host_key
    async with logged_in(again, key) as ssh:
        await output(ssh, "systemctl is-system-running --wait || true")
        assert await output(ssh, "cat /var/tmp/ran") == "ran"


@pytest.mark.journey
async def test_data_outlives_a_crash_and_a_heal(driver: SandboxDriver, connection: VimConnection, key: Path) -> None:
    wanted = one_machine()
    first = (await reached(driver, connection, wanted)).machines[0]
    async with logged_in(first, key) as ssh:
        await output(
            ssh, "sudo mkfs.ext4 -q /dev/vdb && sudo mount /dev/vdb /mnt && echo kept | sudo tee /mnt/file; sync"
        )
    await driver.work(connection, lambda operations: operations.engine.kill(first.resource_id))
    await reached(driver, connection, wanted, "op-2")
    second = (await reached(driver, connection, healed(wanted, "workerNode-1"), "op-3")).machines[0]
    assert second.host_key != first.host_key
    assert second.ports == first.ports
    async with logged_in(second, key) as ssh:
        assert await output(ssh, "sudo mount /dev/vdb /mnt && cat /mnt/file") == "kept"


@more
async def test_a_volume_comes_to_a_running_machine_and_leaves_it(
    driver: SandboxDriver, connection: VimConnection, key: Path
) -> None:
    small = one_machine()
    machine = small.machines[0]
    more = (*machine.volumes, Volume(id="lab-more", name="more", size_bytes=32 << 20))
    large = msgspec.structs.replace(small, machines=(msgspec.structs.replace(machine, volumes=more),))
    await reached(driver, connection, small)
    found = await reached(driver, connection, large, "op-2")
    assert differences(found, large) == []
    async with logged_in(found.machines[0], key) as ssh:
        assert await output(ssh, "sudo blockdev --getsize64 /dev/vdc") == str(32 << 20)
    found = await reached(driver, connection, small, "op-3")
    assert differences(found, small) == []
    async with logged_in(found.machines[0], key) as ssh:
        assert await output(ssh, "ls /dev/vd?") == "/dev/vdb"


@more
async def test_the_same_range_twice_gives_two_networks_that_do_not_meet(
    driver: SandboxDriver, connection: VimConnection
) -> None:
    cidr = "10.11.12.0/24"
    mine, theirs = one_machine(cidr=cidr), one_machine("lab-other", cidr=cidr)
    here = (await reached(driver, connection, mine)).machines[0]
    there = (await reached(driver, connection, theirs)).machines[0]
    inside = ["ip", "-brief", "address", "show", "eth0"]
    _, said = await driver.work(connection, lambda operations: operations.engine.execute(there.resource_id, inside))
    assert f"{there.ports[0].address}/24" in said
    assert here.ready
    assert there.ready
    assert await reached(driver, connection, nothing("lab-other")) == Found()


@more
async def test_a_full_network_is_a_matter_of_quota(driver: SandboxDriver, connection: VimConnection) -> None:
    wanted = one_machine(cidr="10.11.13.0/29")  # five addresses for machines
    ports = [Port(id=f"lab-port-{number}", name="CP1", network=wanted.networks[0].id) for number in range(6)]
    machines = tuple(
        Machine(id=f"lab-vnfc-{number}", name=f"workerNode-{number}", vdu="workerNode", ports=(port,))
        for number, port in enumerate(ports)
    )
    with pytest.raises(VimError, match="no free address") as refused:
        await reached(driver, connection, msgspec.structs.replace(wanted, machines=machines))
    assert refused.value.fault is VimFault.QUOTA


@more
async def test_a_missing_image_names_its_cure(driver: SandboxDriver, connection: VimConnection) -> None:
    wanted = one_machine()
    strange = msgspec.structs.replace(wanted.machines[0], image="windows")
    with pytest.raises(VimError, match=r"no image windows.*slipway sandbox image build") as refused:
        await reached(driver, connection, msgspec.structs.replace(wanted, machines=(strange,)))
    assert refused.value.fault is VimFault.PERMANENT


@more
async def test_an_image_that_was_made_for_another_engine_is_imported_when_it_is_wanted(
    engines: Engines, connection: VimConnection, worker_id: str
) -> None:
    fresh = Engines(
        SandboxPaths(engines.paths.directory.with_name(f"sandbox-fresh-{worker_id}"), default_cache()), {}, ()
    )
    driver = SandboxDriver(fresh.paths.directory, fresh)
    operations = fresh.operations(LOCAL)
    try:
        assert not operations.engine.has_image("localhost/slipway/machine")
        assert (await reached(driver, connection, one_machine())).machines[0].ready
    finally:
        clear(operations)
        driver.close()
        fresh.service.stop()
        shutil.rmtree(fresh.paths.directory, ignore_errors=True)


@more
async def test_no_engine_names_its_cure(driver: SandboxDriver) -> None:
    nowhere = VimConnection(driver.vim_type, {"endpoint": "unix:///nowhere.sock"}, {}, {})
    with pytest.raises(VimError, match="slipway sandbox check") as refused:
        await driver.check(nowhere)
    assert refused.value.fault is VimFault.PERMANENT


@more
@pytest.mark.parametrize("moment", ["create_container", "put", "start"])
async def test_a_worker_killed_while_it_makes_a_machine_is_followed_by_another(
    driver: SandboxDriver, connection: VimConnection, engines: Engines, moment: str
) -> None:
    wanted = one_machine()
    step = driver.steps_towards(wanted, Found()).steps
    await hand(driver, step[0])[0].run(hand(driver, step[0])[1], Context(connection, INSTANCE))
    child = _child(engines, wanted, moment)
    assert await asyncio.to_thread(child.wait, 60) == -signal.SIGKILL
    found = await reached(driver, connection, wanted)
    assert differences(found, wanted) == []
    assert await reached(driver, connection, nothing(INSTANCE)) == Found()


@pytest.mark.journey
async def test_two_processes_with_one_step_make_one_machine(
    driver: SandboxDriver, connection: VimConnection, engines: Engines, operations: EngineOperations
) -> None:
    wanted = one_machine()
    step = driver.steps_towards(wanted, Found()).steps
    await hand(driver, step[0])[0].run(hand(driver, step[0])[1], Context(connection, INSTANCE))
    children = [_child(engines, wanted) for _ in range(3)]
    codes = await asyncio.gather(*(asyncio.to_thread(child.wait, 60) for child in children))
    assert codes == [0, 0, 0]
    assert len(operations.engine.containers({"slipway.id": wanted.machines[0].id})) == 1
    assert differences(await driver.find(connection, INSTANCE), wanted) == []


@pytest.mark.journey
async def test_nothing_stays_on_the_host(
    driver: SandboxDriver, connection: VimConnection, operations: EngineOperations, engines: Engines
) -> None:
    storage = str(engines.paths.directory)  # other workers have disks of their own
    wanted = one_machine(cidr="10.11.14.0/24")
    await reached(driver, connection, wanted)
    assert "10.11.14.0/24" in _said("ip", "route")
    assert storage in _said("losetup", "--list", "--output", "BACK-FILE")
    await reached(driver, connection, nothing(INSTANCE))
    assert "10.11.14.0/24" not in _said("ip", "route")
    assert storage not in _said("losetup", "--list", "--output", "BACK-FILE")
    assert everything(operations) == {}


def _child(engines: Engines, wanted: Wanted, killed_at: str = "") -> subprocess.Popen[bytes]:
    """Another process that makes the machine, and dies before the named call if there is one."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.lab.make_child", str(engines.paths.directory), killed_at],
        stdin=_fed(msgspec.json.encode(wanted)),
        cwd=Path(__file__).parents[2],
    )


def _fed(content: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return reading


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
