"""Files of the package on their way to a registry's machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from slipway.cluster.steps.dependencies import Dependencies
from slipway.registry.steps.machine import send
from slipway.remote.output import Result
from tests.unit.cluster.cluster_situations import ID, UNUSED

PIECES = (b"one,", b"two,", b"three")


class Machine:
    """What has come to it already, and what is sent to it: offset and content of each piece."""

    def __init__(self, there: int) -> None:
        self.there = there
        self.pieces: list[tuple[int, bytes]] = []

    async def run(self, argv: Sequence[str], *, stdin: bytes | None = None, **_: Any) -> Result:
        script, arguments = argv[3], argv[4:]
        if script == "slipway-received":
            return Result(0, f"{self.there}\n".encode(), b"")
        assert script == "slipway-receive"
        self.pieces.append((int(arguments[1]), stdin or b""))
        return Result(0, b"", b"")


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
    context: Any = SimpleNamespace(instance_id=ID, progress=lambda text: None)
    files: Any = Package()
    await send(Dependencies(UNUSED, UNUSED, files), machine, "Files/images/x.tar", context)
    assert machine.pieces == sent
