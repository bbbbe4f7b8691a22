"""What subscribers cost: operations with none, and with one that takes every call and never answers."""

from __future__ import annotations

import socket
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import lifecycle
from bench.server import Server

TURNS = 3


@contextmanager
def silent_subscriber() -> Iterator[str]:
    """It listens, and that is all: connections are made by the kernel, and nobody reads from them."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/told"


def seconds_with_over_without(server: Server, place: Path) -> float:
    """The seconds of 50 instantiations at once with such a subscriber, over those without; by turns."""
    vnfd_id = lifecycle.onboard(server, place)
    times: dict[bool, list[float]] = {False: [], True: []}
    lifecycle.at_once(server, vnfd_id)  # so that both find everything warm
    with silent_subscriber() as uri, server.client as client:
        for _ in range(TURNS):
            times[False].append(1 / lifecycle.at_once(server, vnfd_id)[1])
            answer = client.post("/vnflcm/v2/subscriptions", json={"callbackUri": uri})
            answer.raise_for_status()
            times[True].append(1 / lifecycle.at_once(server, vnfd_id)[1])
            client.delete(f"/vnflcm/v2/subscriptions/{answer.json()['id']}").raise_for_status()
    return statistics.median(times[True]) / statistics.median(times[False])
