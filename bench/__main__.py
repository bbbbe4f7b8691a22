"""Run all benchmarks and print each figure beside the peer's and the goal."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench import (
    by_hand,
    cluster_api,
    clusters,
    figures,
    growth,
    kubernetes,
    lifecycle,
    notifications,
    onboarding,
    openstack,
)
from bench.figures import Figure
from bench.history import write_history
from bench.load import rate, request
from bench.server import Server, serving
from slipway.vim.sandbox.connection import LOCAL

INSTANCES = lifecycle.INSTANCES


def show(figure: Figure, measured: float) -> None:
    print(figure.line(measured), flush=True)


def start_and_size(data_dir: Path) -> None:
    with serving(data_dir):
        pass  # the first start makes database, key and token
    times = []
    for _ in range(5):
        with serving(data_dir) as server:
            times.append(server.seconds_to_first_answer)
            time.sleep(1.0)
            rss = server.rss_mib()
    show(figures.START, statistics.median(times))
    show(figures.RSS, rss)


def requests_a_second(server: Server, vnfd_id: str) -> None:
    def measured(requests: list[bytes], status: int, clients: int = 32) -> float:
        return asyncio.run(rate("127.0.0.1", server.port, requests, clients=clients, status=status))

    body = b'{"vnfdId": "%s", "vnfInstanceName": "bench"}' % vnfd_id.encode()
    show(figures.CREATE, measured([request("POST", INSTANCES, server.token, body)] * 1000, 201))
    with server.client as client:
        one = client.get(INSTANCES).json()[0]["id"]
    show(figures.GET_ONE, measured([request("GET", f"{INSTANCES}/{one}", server.token)] * 8000, 200))
    show(figures.GET_LIST, measured([request("GET", INSTANCES, server.token)] * 400, 200, clients=4))


def first_page(server: Server) -> float:
    with server.client as client:
        client.get(INSTANCES)
        began = time.perf_counter()
        answer = client.get("/vnflcm/v2/vnf_lcm_op_occs")
        seconds = time.perf_counter() - began
        if answer.status_code != 200 or "next" not in answer.headers.get("link", ""):
            raise SystemExit("the first page of the operations is not a page")
    return seconds


def subscribers(place: Path) -> None:
    os.environ["SLIPWAY_CALLBACK_TEST"] = "false"  # it would not pass
    with serving(place / "subscribers") as server:
        show(figures.SILENT_SUBSCRIBER, notifications.seconds_with_over_without(server, place))


def growing_clusters(place: Path) -> None:
    with serving(place / "clusters") as server:
        grown = clusters.growth(server, clusters.onboard(server, place), place / "clusters")
    for what, ones in (("at once", grown.one), ("as slowly as by SSH", grown.slow_one)):
        told = [f"{one.seconds:.3f} s, {one.calls} remote calls" for one in ones]
        print(f"  +1 worker, hosts that answer {what}: at 3 nodes {told[0]}; at 300 nodes {told[1]}")
    small, large, hundred = *grown.slow_one, grown.slow_hundred
    print(f"  +100 workers, hosts as slow as SSH: {hundred.seconds:.2f} s, {hundred.calls} remote calls")
    show(figures.WORKER_AT_300, large.seconds / small.seconds)
    show(figures.CALLS_AT_300, large.calls / small.calls)
    show(figures.HUNDRED_WORKERS, hundred.seconds / small.seconds)


def many_clusters(place: Path) -> None:
    (place / "many").mkdir()
    with serving(place / "many" / "data") as server:
        show(figures.CLUSTERS, clusters.many(server, clusters.onboard(server, place / "many")))


def real_clusters(place: Path) -> None:
    """By turns, so that both meet the machine in the same moods."""
    if os.geteuid() != 0:
        print("  no real clusters: they need root")
        return
    times: dict[str, list[float]] = {"by Slipway": [], "by hand": []}
    with by_hand.sandbox() as engines:
        os.environ["SLIPWAY_SANDBOX_DIR"] = str(engines.paths.directory)
        for turn in range(3):
            with serving(place / f"real-{turn}") as server:
                times["by Slipway"].append(by_hand.by_slipway(server, place))
            by_hand.clear(engines.operations(LOCAL))
            times["by hand"].append(by_hand.by_hand(engines))
            by_hand.clear(engines.operations(LOCAL))
    for who, seconds in times.items():
        print(f"  a real cluster of 3 nodes {who}: {', '.join(f'{one:.1f}' for one in seconds)} s")
    show(figures.BY_HAND, statistics.median(times["by Slipway"]) / statistics.median(times["by hand"]))


def stacks(place: Path) -> None:
    """By turns, as above."""
    if os.geteuid() != 0:
        print("  no OpenStack: its lab needs root")
        return
    (place / "stacks").mkdir()
    with openstack.lab() as cloud, serving(place / "stacks" / "data") as server:
        vnfd_id = openstack.onboard(server, place / "stacks")
        turns = [openstack.turn(server, cloud, vnfd_id) for _ in range(4)][1:]  # the first one warms Heat up
    ours, theirs = ([getattr(one, who) for one in turns] for who in ("by_slipway", "by_hand"))
    for who, seconds in (("by Slipway", ours), ("by hand", theirs)):
        print(f"  5 servers {who}: {', '.join(f'{one:.1f}' for one in seconds)} s")
    show(figures.OPENSTACK, statistics.median(ours) / statistics.median(theirs))
    show(figures.OPENSTACK_MORE, statistics.median(ours) - statistics.median(theirs))


def main() -> None:
    print(figures.machine())
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as directory:
        place = Path(directory)
        wall, cpu = onboarding.measure()
        show(figures.ONBOARDING, wall)
        show(figures.ONBOARDING_CPU, cpu)
        start_and_size(place / "empty")
        with serving(place / "reads") as server:
            requests_a_second(server, lifecycle.onboard(server, place))
        with serving(place / "operations") as server:
            vnfd_id = lifecycle.onboard(server, place)
            show(figures.INSTANTIATE, lifecycle.one_after_another(server, vnfd_id))
            median, each_second = lifecycle.at_once(server, vnfd_id)
            show(figures.FIFTY, median)
            show(figures.OPERATIONS, each_second)
        with serving(place / "thousand") as server:
            show(figures.THOUSAND, lifecycle.many(server, lifecycle.onboard(server, place)))
        subscribers(place)
        growing_clusters(place)
        many_clusters(place)
        real_clusters(place)
        stacks(place)
        kubernetes.main()
        cluster_api.main()
        growth.table(place)
        with serving(place / "history"):
            pass
        write_history(place / "history")
        with serving(place / "history") as server:
            show(figures.FIRST_PAGE, first_page(server))
    print(figures.machine())


if __name__ == "__main__":
    main()
