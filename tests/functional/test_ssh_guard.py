"""A VIM that others run names the addresses of machines: SSH goes to those that the guard allows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from slipway.app import Slipway, assemble
from slipway.cluster.spec import Node, SshLogin
from slipway.model.action import StepContext, VimConnection
from slipway.model.errors import StepError
from slipway.model.machine import Address, FoundMachine, FoundPort
from slipway.model.vim import OPENSTACK, SANDBOX
from tests.functional.rig import settings_in

WORKER = Node(
    machine="m", slot="workerNode-0", name="n", master=False, ssh="CP1", nic="CP1", login=SshLogin(username="root")
)
SHARED = {"base_url": "https://slipway.example"}


class Step:
    """Of an operation on a VIM that says where the machine is."""

    def __init__(self, address: str, vim_type: str = OPENSTACK) -> None:
        self._vim_type = vim_type
        port = FoundPort(id="p", name="CP1", resource_id="p", addresses=(Address(ip=address),))
        self._machine = FoundMachine(id="m", name="m", vdu="workerNode", resource_id="r", ready=True, ports=(port,))

    async def connection(self) -> VimConnection:
        return VimConnection(self._vim_type, {}, {}, {})

    async def machine(self, machine_id: str) -> FoundMachine:
        return self._machine

    async def decrypt_secrets(self, document: Any) -> Any:
        return document


@asynccontextmanager
async def slipway_with(place: Path, **values: Any) -> AsyncIterator[Slipway]:
    slipway = assemble(settings_in(place, **values))
    try:
        yield slipway
    finally:
        await slipway.connector.close()
        slipway.close()


def step(address: str, vim_type: str = OPENSTACK) -> StepContext:
    return cast(StepContext, Step(address, vim_type))


@pytest.mark.parametrize(
    ("values", "address", "said"),
    [
        (SHARED, "127.0.0.5", "a loopback address .* 127.0.0.0/8 added to the setting allowed_networks"),
        (SHARED, "::1", "a loopback address"),
        (SHARED, "::ffff:127.0.0.1", "a loopback address"),
        (SHARED, "169.254.169.254", "a link-local address"),
        ({}, "169.254.169.254", "a link-local address"),
        ({}, "fd00:ec2::254", "a metadata address"),
        ({}, "fe80::1%lo", "names an interface of this machine"),
        ({"allowed_networks": ("10.0.0.0/8",)}, "192.0.2.7", "not in the allowed networks.* allowed_networks"),
    ],
)
async def test_ssh_does_not_go_where_requests_do_not_go(
    tmp_path: Path, values: dict[str, Any], address: str, said: str
) -> None:
    async with slipway_with(tmp_path, **values) as slipway:
        with pytest.raises(StepError, match=f"SSH does not go to workerNode-0: {address} .*{said}") as raised:
            await slipway.connector.host(WORKER, step(address))
        assert not raised.value.temporary


@pytest.mark.parametrize(
    ("values", "context"),
    [
        (SHARED, step("10.11.0.7")),
        ({}, step("127.0.0.1")),
        (SHARED | {"allowed_networks": ("127.0.0.0/8",)}, step("127.0.0.1")),
        (SHARED | {"allowed_networks": ("192.0.2.0/24",)}, step("10.11.0.7", SANDBOX)),
    ],
)
async def test_ssh_goes_to_machines_in_allowed_networks_and_of_the_sandbox(
    tmp_path: Path, values: dict[str, Any], context: StepContext
) -> None:
    async with slipway_with(tmp_path, **values) as slipway:
        assert await slipway.connector.host(WORKER, context)
