"""Files of the package on a registry's machine, when Slipway was killed before it could say that it had done it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from slipway.cluster.spec import Node, SshLogin
from slipway.cluster.steps.dependencies import Dependencies
from slipway.model.machine import FoundMachine
from slipway.registry.arguments import InstallRegistry
from slipway.registry.steps.install import install_registry
from slipway.registry.steps.machine import send
from slipway.remote.output import Result
from tests.unit.cluster.cluster_situations import ID, UNUSED

PIECES = (b"one,", b"two,", b"three")
NODE = Node(machine="m", slot="registry-0", name="registry", master=False, ssh="CP", nic="CP",
            login=SshLogin(username="root"))  # fmt: skip
LOGIN = {"ssh_cp_name": "CP", "ssh_username": "root", "ssh_password": "over the hills"}


class Machine:
    """What has come to it already, and what is sent to it: offset and content of each piece."""

    def __init__(self, there: int) -> None:
        self.there = there
        self.pieces: list[tuple[int, bytes]] = []
        self.jobs: dict[str, Sequence[str]] = {}

    async def run(self, argv: Sequence[str], *, stdin: bytes | None = None, **_: Any) -> Result:
        script, arguments = argv[3].removeprefix("slipway-"), argv[4:]
        if script == "received":
            return Result(0, f"{self.there}\n".encode(), b"")
        if script == "has_registry":
            return Result(0, b"yes\n" if self.jobs else b"", b"")
        if script == "receive":
            self.pieces.append((int(arguments[1]), stdin or b""))
            self.there = int(arguments[1]) + len(stdin or b"")
        if script == "forget_archive":
            self.there = 0
        return Result(0, b"", b"")

    async def run_job(self, name: str, argv: Sequence[str], **_: Any) -> Result:
        """One that has ended is found again by its name, which belongs to its command."""
        assert self.jobs.setdefault(name, argv) == argv, f"{name} belongs to another command"
        return Result(0, b"/usr/bin/podman 0123\n", b"")

    async def host(self, node: Node, ctx: Any) -> Machine:
        return self

    async def machine(self, machine_id: str) -> FoundMachine:
        return FoundMachine(id=machine_id, name="registry-0", vdu="registry", resource_id="r", ready=True, host_key="k")

    async def decrypt_secrets(self, document: Any) -> Any:
        return document

    def progress(self, text: str) -> None:
        pass

    instance_id = ID


class Package:
    async def pieces(self, instance_id: str, path: str, vnfd_id: str | None = None) -> AsyncIterator[bytes]:
        for piece in PIECES:
            yield piece


@pytest.mark.parametrize(
    ("there", "sent"),
    [
        (0, [(0, b"one,"), (4, b"two,"), (8, b"three")]),
        (6, [(4, b"two,"), (8, b"three")]),  # whoever sent it was killed within a piece
        (13, []),  # a job may be reading it: a file that is cut off under it would be told as a broken archive
    ],
)
async def test_what_has_arrived_is_not_sent_again(there: int, sent: list[tuple[int, bytes]]) -> None:
    machine: Any = Machine(there)
    files: Any = Package()
    await send(Dependencies(UNUSED, UNUSED, files), machine, "Files/images/x.tar", machine)
    assert machine.pieces == sent


@pytest.mark.parametrize("asked", [{"source": "package", "package_path": "Files/x.deb"}, {"image_path": "Files/x.tar"}])
async def test_what_was_installed_before_is_found_and_no_file_stays(asked: dict[str, str]) -> None:
    machine: Any = Machine(0)
    files: Any = Package()
    for _ in range(2):
        args = InstallRegistry(node=NODE, given={**LOGIN, **asked})
        await install_registry(Dependencies(machine, UNUSED, files), args, machine)
    assert "package_path" in asked or machine.there == 0
