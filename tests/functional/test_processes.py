"""Whole processes, stopped, killed and frozen: operations go on, and nothing is lost, doubled or left behind."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy.engine import URL

from slipway.model.action import VimConnection
from slipway.model.operation import State
from slipway.model.vim import OPENSTACK, SIMULATED
from slipway.package.build import build_package
from slipway.settings import Settings
from slipway.vim.blocking import THREADS_OF_ONE_VIM
from tests.databases import setting
from tests.functional.agreement import assert_agreement
from tests.functional.processes import Process, running
from tests.functional.rig import SAMPLE, rig_in, settings_in

LCM = "/vnflcm/v2"
PATIENCE = 60.0
VIM = VimConnection(SIMULATED, {"endpoint": "sim://simulated"}, {}, {})
SLOW = {"kind": "latency", "call": "make_machine", "seconds": 0.5}


def onboard(client: httpx.Client, place: Path, sample: Path = SAMPLE) -> str:
    package = build_package(sample, place / f"{sample.name}.csar")
    package_id = client.post("/vnfpkgm/v1/vnf_packages", json={}).json()["id"]
    content = f"/vnfpkgm/v1/vnf_packages/{package_id}/package_content"
    assert client.put(content, content=package.path.read_bytes(), headers={"Content-Type": "application/zip"})
    wait_for(lambda: client.get(f"/vnfpkgm/v1/vnf_packages/{package_id}").json()["onboardingState"] == "ONBOARDED")
    return package.descriptor.vnfd_id


def instantiate(client: httpx.Client, vnfd_id: str) -> tuple[str, str]:
    """A new instance's id, and the id of its instantiation, accepted."""
    instance_id = client.post(f"{LCM}/vnf_instances", json={"vnfdId": vnfd_id}).json()["id"]
    answer = client.post(f"{LCM}/vnf_instances/{instance_id}/instantiate", json={"flavourId": "simple"})
    assert answer.status_code == 202, answer.text
    return instance_id, answer.headers["location"].rpartition("/")[2]


def state_of(client: httpx.Client, operation_id: str) -> str:
    state: str = client.get(f"{LCM}/vnf_lcm_op_occs/{operation_id}").json()["operationState"]
    return state


def running_steps(client: httpx.Client, operation_id: str) -> list[str]:
    steps = client.get(f"/slipway/v1/operations/{operation_id}/steps").json()["steps"]
    return [step["id"] for step in steps if step["state"] == "RUNNING"]


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


async def check(settings: Settings, instance_ids: list[str], operation_ids: list[str]) -> None:
    async with rig_in(settings, working=False) as rig:
        inventory = await rig.slipway.simulated.inventory(VIM)
        assert set(inventory) == set(instance_ids)
        for instance_id, operation_id in zip(instance_ids, operation_ids, strict=True):
            assert (await rig.rest(operation_id)).operation_state is State.COMPLETED
            assert_agreement((await rig.instance(instance_id)).vnf.instantiated_vnf_info, inventory.get(instance_id))


class Fleet:
    """One API process and workers on PostgreSQL, with a simulated VIM registered."""

    def __init__(self, api: Process, place: Path, settings: Settings) -> None:
        self.client, self.place, self.settings = api.client(), place, settings
        vim = {
            "name": "simulated",
            "vimType": SIMULATED,
            "isDefault": True,
            "interfaceInfo": VIM.interface_info,
            "extra": {"rules": [SLOW]},
        }
        assert self.client.post("/slipway/v1/vims", json=vim).status_code == 201
        self.vnfd_id = onboard(self.client, place)


def test_sigterm_lets_running_steps_end_and_the_next_start_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running("serve", data, shutdown_seconds=20) as first:
        client = first.client()
        vnfd_id = onboard(client, tmp_path)
        client.put("/slipway/v1/vims/simulated/rules", json=[SLOW])
        _, operation_id = instantiate(client, vnfd_id)
        wait_for(lambda: running_steps(client, operation_id))
        client.close()
        assert first.end(signal.SIGTERM) == 0
    with running("serve", data) as second, second.client() as client:
        wait_for(lambda: state_of(client, operation_id) == "COMPLETED")
        steps = client.get(f"/slipway/v1/operations/{operation_id}/steps").json()["steps"]
        assert {step["attempt"] for step in steps} == {1}


def test_sigterm_does_not_wait_longer_than_the_setting_for_a_stuck_step(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running("serve", data, shutdown_seconds=1) as process:
        client = process.client()
        vnfd_id = onboard(client, tmp_path)
        client.put("/slipway/v1/vims/simulated/rules", json=[{**SLOW, "seconds": 3600}])
        _, operation_id = instantiate(client, vnfd_id)
        wait_for(lambda: running_steps(client, operation_id))
        client.close()
        assert process.end(signal.SIGTERM, within=15) == 0


def test_sigterm_does_not_wait_longer_than_the_setting_for_an_openstack_that_does_not_answer(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        running("serve", tmp_path / "data", shutdown_seconds=1) as process,
        process.client() as client,
        ThreadPoolExecutor(THREADS_OF_ONE_VIM + 4) as callers,
    ):
        vim = {
            "name": "mute",
            "vimType": OPENSTACK,
            "interfaceInfo": {"endpoint": f"http://127.0.0.1:{mute.getsockname()[1]}"},
            "accessInfo": {"username": "u", "password": "p", "project": "p"},
        }
        assert client.post("/slipway/v1/vims", json=vim).status_code == 201
        checks = [
            callers.submit(client.post, "/slipway/v1/vims/mute/check", timeout=60)
            for _ in range(THREADS_OF_ONE_VIM + 4)
        ]
        connections = [mute.accept()[0] for _ in range(THREADS_OF_ONE_VIM)]
        assert process.end(signal.SIGTERM, within=15) == 0
        for check in checks:
            check.exception()
        for connection in connections:
            connection.close()


def test_a_second_process_on_the_same_sqlite_is_refused_with_the_cure(tmp_path: Path) -> None:
    with running("serve", tmp_path / "data"), pytest.raises(AssertionError, match="Another Slipway uses"):
        Process("serve", tmp_path / "data")


async def test_a_killed_workers_operations_are_finished_by_another(tmp_path: Path, postgresql_url: URL) -> None:
    url = setting(postgresql_url)
    more = {"database_url": url, "lease_seconds": 1.5, "poll_seconds": 0.1}
    data = tmp_path / "data"
    with running("api", data, **more) as api, running("worker", data, **more) as one:
        fleet = Fleet(api, tmp_path, settings_in(data, url))
        accepted = [instantiate(fleet.client, fleet.vnfd_id) for _ in range(8)]
        wait_for(lambda: running_steps(fleet.client, accepted[0][1]))
        with running("worker", data, **more):
            one.end(signal.SIGKILL)
            wait_for(lambda: {state_of(fleet.client, operation_id) for _, operation_id in accepted} == {"COMPLETED"})
        fleet.client.close()
        await check(fleet.settings, [i for i, _ in accepted], [o for _, o in accepted])


async def test_a_worker_frozen_past_its_lease_does_no_harm_when_it_wakes(tmp_path: Path, postgresql_url: URL) -> None:
    url = setting(postgresql_url)
    more = {"database_url": url, "lease_seconds": 1.5, "poll_seconds": 0.1}
    data = tmp_path / "data"
    with running("api", data, **more) as api, running("worker", data, **more) as frozen:
        fleet = Fleet(api, tmp_path, settings_in(data, url))
        instance_id, operation_id = instantiate(fleet.client, fleet.vnfd_id)
        wait_for(lambda: running_steps(fleet.client, operation_id))
        frozen.send(signal.SIGSTOP)
        with running("worker", data, **more):
            wait_for(lambda: state_of(fleet.client, operation_id) == "COMPLETED")
            before = fleet.client.get(f"/slipway/v1/operations/{operation_id}/steps").json()
            frozen.send(signal.SIGCONT)
            # It works again: with the other one gone, it takes the next operation.
        other, next_id = instantiate(fleet.client, fleet.vnfd_id)
        wait_for(lambda: state_of(fleet.client, next_id) == "COMPLETED")
        assert fleet.client.get(f"/slipway/v1/operations/{operation_id}/steps").json() == before
        fleet.client.close()
        await check(fleet.settings, [instance_id, other], [operation_id, next_id])


async def test_the_database_away_for_a_while_is_waited_for(tmp_path: Path, postgresql_url: URL) -> None:
    """Connections are cut in the middle of an operation, again and again for a second; it completes all the same."""
    url = setting(postgresql_url)
    data = tmp_path / "data"
    with running("serve", data, database_url=url, poll_seconds=0.1) as process:
        fleet = Fleet(process, tmp_path, settings_in(data, url))
        instance_id, operation_id = instantiate(fleet.client, fleet.vnfd_id)
        wait_for(lambda: running_steps(fleet.client, operation_id))
        for _ in range(10):
            cut_connections(postgresql_url)
            await asyncio.sleep(0.1)
        wait_for(lambda: state_of_when_there(fleet.client, operation_id) == "COMPLETED")
        fleet.client.close()
        await check(fleet.settings, [instance_id], [operation_id])


def state_of_when_there(client: httpx.Client, operation_id: str) -> str | None:
    answer = client.get(f"{LCM}/vnf_lcm_op_occs/{operation_id}")
    return answer.json()["operationState"] if answer.status_code == 200 else None


def cut_connections(url: URL) -> None:
    plain = url.set(database="postgres").render_as_string(hide_password=False)
    statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(statement, [url.database])
