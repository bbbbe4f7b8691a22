"""What a long history costs: the same requests to an empty server and to one with 10,000 instances and 50,000
operations, by turns, so that both meet the machine in the same moods. And the same requests as multiples of a bare one,
because machines differ.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from bench import lifecycle
from bench.bare import bare
from bench.history import write_history
from bench.load import rate, request
from bench.server import Server, serving

TURNS = 5
MOST = 1.1  # times the cost of the empty one

# How many bare requests (bare.py) each may cost. They were set as 4,000/s, 300/s, 600/s and 30 ms, on a machine that
# answered 21,000 bare requests a second with one core.
IN_BARE_REQUESTS = {"GET one": 5.25, "list of 1000": 70.0, "create": 35.0, "instantiate": 630.0}
INSTANCES, OPERATIONS = lifecycle.INSTANCES, lifecycle.OPERATIONS

Cost = tuple[float, float]  # milliseconds by the clock and of the server's CPU, for each request


def table(place: Path) -> None:
    with serving(place / "grown"):
        pass
    write_history(place / "grown")
    with serving(place / "new") as new, serving(place / "grown") as grown, bare(place) as framework:
        servers = {"empty": new, "grown": grown}
        vnfd_ids = {name: lifecycle.onboard(server, place) for name, server in servers.items()}
        ones = {name: _thousand(server, vnfd_ids[name]) for name, server in servers.items()}
        print(f"  {'ms of clock and of CPU for each request':<42} {'empty':>15} {'10,000/50,000':>15}  times the CPU")
        requests = _requests(ones, vnfd_ids)
        for what, cost in requests.items():
            _row(what, *_by_turns(partial(_of, servers, cost), "empty", "grown"))
        _row("idle, in 1000 s", *_by_turns(lambda name: _idle(servers[name]), "empty", "grown"))
        for what, goal in IN_BARE_REQUESTS.items():
            both = {what: partial(requests[what], "empty", new), "bare": partial(_get("/", 2000), "bare", framework)}
            _multiple(what, goal, *_by_turns(partial(_called, both), *both))


def _of(servers: dict[str, Server], cost: Callable[[str, Server], Cost], name: str) -> Cost:
    return cost(name, servers[name])


def _called(measurements: Mapping[str, Callable[[], Cost]], name: str) -> Cost:
    return measurements[name]()


def _requests(ones: dict[str, str], vnfd_ids: dict[str, str]) -> dict[str, Callable[[str, Server], Cost]]:
    def create(name: str, server: Server) -> Cost:
        body = b'{"vnfdId": "%s"}' % vnfd_ids[name].encode()
        return _cost(server, [request("POST", INSTANCES, server.token, body)] * 200, status=201)

    def get_one(name: str, server: Server) -> Cost:
        return _get(f"{INSTANCES}/{ones[name]}", 2000)(name, server)

    def instantiate(name: str, server: Server) -> Cost:
        with server.client as client:
            ids = [lifecycle.create(client, vnfd_ids[name]) for _ in range(10)]
            cpu = server.cpu_seconds()
            seconds = [lifecycle.instantiate(client, instance_id) for instance_id in ids]
            return 1000 * statistics.median(seconds), 1000 * (server.cpu_seconds() - cpu) / len(ids)

    return {
        "create": create,
        "GET one": get_one,
        "list of 1000": _get(INSTANCES, 50, clients=4),
        "operations that have failed": _get(f"{OPERATIONS}?filter=(eq,operationState,FAILED_TEMP)", 200),
        "instantiate": instantiate,
    }


def _get(path: str, count: int, clients: int = 32) -> Callable[[str, Server], Cost]:
    return lambda _, server: _cost(server, [request("GET", path, server.token)] * count, clients=clients)


def _cost(server: Server, requests: list[bytes], *, status: int = 200, clients: int = 32) -> Cost:
    cpu = server.cpu_seconds()
    each_second = asyncio.run(rate("127.0.0.1", server.port, requests, clients=clients, status=status))
    return 1000 / each_second, 1000 * (server.cpu_seconds() - cpu) / len(requests)


def _idle(server: Server) -> Cost:
    cpu = server.cpu_seconds()
    time.sleep(3.0)
    used = 1000 * (server.cpu_seconds() - cpu) / 3.0
    return 1000.0, used


def _thousand(server: Server, vnfd_id: str) -> str:
    """Make a thousand instances; the id of one."""
    body = b'{"vnfdId": "%s", "vnfInstanceName": "bench"}' % vnfd_id.encode()
    _cost(server, [request("POST", INSTANCES, server.token, body)] * 1000, status=201)
    with server.client as client:
        instance_id: str = client.get(INSTANCES).json()[0]["id"]
    return instance_id


def _by_turns(measured: Callable[[str], Cost], first: str, second: str) -> tuple[Cost, Cost]:
    """The median of each."""
    costs: dict[str, list[Cost]] = {first: [], second: []}
    for _ in range(TURNS):
        for name in costs:
            costs[name].append(measured(name))
    medians = [
        (statistics.median(c[0] for c in some), statistics.median(c[1] for c in some)) for some in costs.values()
    ]
    return medians[0], medians[1]


def _row(what: str, empty: Cost, grown: Cost) -> None:
    times = grown[1] / empty[1] if empty[1] else 1.0
    verdict = "reached" if times <= MOST else "NOT reached"
    shown = [f"{clock:.2f} {cpu:.2f}" for clock, cpu in (empty, grown)]
    print(f"  {what:<42} {shown[0]:>15} {shown[1]:>15}  {times:.2f}, goal <= {MOST:g}: {verdict}", flush=True)


def _multiple(what: str, goal: float, cost: Cost, bare: Cost) -> None:
    """Of a core's time: the load comes from this machine too, and takes its part of the clock. An instantiation is
    waited for, so there the clock counts.
    """
    waited = what == "instantiate"
    times = (cost[0] if waited else cost[1]) / bare[1]
    shown = f"{cost[0]:.1f} ms" if waited else f"{1000 / cost[0]:.0f}/s"
    verdict = "reached" if times <= goal else "NOT reached"
    beside = f"a bare request takes {1000 * bare[1]:.0f} us of a core"
    print(f"  {what:<16} {shown:>9}, {times:>6.1f} bare requests, goal <= {goal:g}: {verdict}; {beside}", flush=True)
