"""Run all benchmarks and print each figure beside the peer's and the goal."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench import figures, lifecycle, onboarding
from bench.figures import Figure
from bench.history import write_history
from bench.load import rate, request
from bench.server import Server, serving

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
        with serving(place / "history"):
            pass
        write_history(place / "history")
        with serving(place / "history") as server:
            show(figures.FIRST_PAGE, first_page(server))
    print(figures.machine())


if __name__ == "__main__":
    main()
