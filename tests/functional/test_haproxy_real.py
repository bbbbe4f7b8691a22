"""Our script and our template on a real HAProxy: what goes live, what does not, and that nobody notices."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from slipway.load_balancer.haproxy import haproxy_config
from slipway.load_balancer.routes import Exposed, FrontEnd, Routes, Server
from tests.functional.haproxy_machine import Machine, missing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"missing on this host: {', '.join(missing())}"),
]
PORT, OTHER = 30080, 30081
EXAMPLE = Path(__file__).parents[2] / "samples" / "cluster-kubespray-sandbox" / "Scripts" / "ExternalLB_installation.sh"


def routes(*ports: int, addresses: tuple[str, ...] = ("10.0.0.1", "10.0.0.2")) -> Routes:
    servers = tuple(
        Server(name=f"worker-{at}", address=address, master=at == 0) for at, address in enumerate(addresses)
    )
    front_ends = tuple(FrontEnd(port=port, namespace="default", service=f"web-{port}") for port in ports)
    return Routes(servers=servers, exposed={"cnf": Exposed(front_ends=front_ends)})


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine.made(tmp_path)
    try:
        yield made
    finally:
        made.close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(*addresses: str) -> Iterator[None]:
    """Something that answers at a NodePort of each node."""
    with ExitStack() as stack:
        for address in addresses:
            server = stack.enter_context(http.server.ThreadingHTTPServer((address, PORT), Handler))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
        yield


async def ask(address: str) -> None:
    reader, writer = await asyncio.open_connection(address, PORT)
    await answered(reader, writer)


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert (await reader.read()).endswith(b"ok")
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    "routes",
    [
        routes(),
        routes(PORT, OTHER),
        routes(PORT, addresses=()),
        routes(PORT, addresses=("fd00::7", "10.0.0.2")),
    ],
    ids=["api alone", "front-ends", "no node", "both families"],
)
def test_haproxy_accepts_what_the_template_makes(routes: Routes, tmp_path: Path) -> None:
    file = tmp_path / "haproxy.cfg"
    file.write_text(haproxy_config(routes))
    checked = subprocess.run(["haproxy", "-c", "-f", file], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "[WARNING]" not in checked.stderr


def test_what_is_not_good_does_not_go_live(machine: Machine) -> None:
    first = machine.apply(routes(PORT), 1)
    assert first.returncode == 0, first.stderr
    live, mark = machine.file("/etc/haproxy/haproxy.cfg"), machine.running()
    assert live == haproxy_config(routes(PORT))
    assert mark.startswith("slipway-")

    refused = machine.apply_text("global\n    no such thing\n", 2, "slipway-x")
    assert refused.returncode == 1
    assert "[ALERT]" in refused.stderr
    assert "haproxy does not accept the new configuration; the old one stays" in refused.stderr

    machine.run("sh", "-c", f"socat TCP-LISTEN:{OTHER} - </dev/null >/dev/null 2>&1 & sleep 0.5")
    refused = machine.apply(routes(PORT, OTHER), 3)
    assert refused.returncode == 1
    assert f'port {OTHER} is in use by "socat"; the old configuration stays' in refused.stderr

    machine.run("sh", "-c", "dd if=/dev/zero of=/etc/haproxy/full bs=4k 2>/dev/null")
    refused = machine.apply(routes(), 4)
    assert refused.returncode == 1
    assert "No space left" in refused.stderr
    assert "100%" in refused.stderr
    machine.run("rm", "/etc/haproxy/full")

    assert machine.apply(routes(), 1).stdout == "later\n"
    assert (machine.file("/etc/haproxy/haproxy.cfg"), machine.running()) == (live, mark)


def test_a_configuration_that_fails_to_start_is_taken_back(machine: Machine) -> None:
    """`haproxy -c` does not see everything: here a port that only binding shows to be taken."""
    assert machine.apply(routes(PORT), 1).returncode == 0
    mark = machine.running()
    machine.run("sh", "-c", f"socat TCP-LISTEN:{OTHER} - </dev/null >/dev/null 2>&1 & sleep 0.5")
    bad = haproxy_config(routes(OTHER))
    refused = machine.apply_text(bad, 2, "slipway-never")  # nobody says which ports to look at
    assert refused.returncode == 1
    assert "did not take the new configuration; the old one is live again" in refused.stderr
    assert machine.file("/etc/haproxy/haproxy.cfg") == haproxy_config(routes(PORT))
    assert machine.running() == mark
    assert machine.apply(routes(), 3).returncode == 0


async def test_the_example_of_a_packages_script_balances(machine: Machine) -> None:
    nodes = ",".join(f"worker-{at}={address}" for at, address in enumerate(machine.nodes))
    told = ["--api-port", "8383", "--masters", nodes, "--nodes", nodes]
    front_end = ["--front-ends", f"shop/web={PORT}", "--changed-nodes", "", "--changed-front-ends", f"shop/web={PORT}"]
    with serving(*machine.nodes):
        installed = machine.run("sh", str(EXAMPLE), "install", *told, "--front-ends", "", "--changed-nodes", nodes)
        assert installed.returncode == 0, installed.stderr
        added = machine.run("sh", str(EXAMPLE), "add", *told, *front_end)
        assert added.returncode == 0, added.stderr
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(OSError):
                    await ask(machine.address)
                    break
                await asyncio.sleep(0.1)


async def test_reloads_lose_no_request(machine: Machine) -> None:
    asked, stop = 0, asyncio.Event()

    async def keep_asking() -> None:
        nonlocal asked
        while not stop.is_set():
            await ask(machine.address)
            asked += 1

    with serving(*machine.nodes):
        first = await asyncio.to_thread(machine.apply, routes(PORT, addresses=machine.nodes), 1)
        assert first.returncode == 0, first.stderr
        old = await asyncio.open_connection(machine.address, PORT)  # a connection from before all reloads
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(keep_asking())
            for revision in range(2, 10):
                ports = (PORT, OTHER) if revision % 2 else (PORT,)
                wanted = routes(*ports, addresses=machine.nodes)
                applied = await asyncio.to_thread(machine.apply, wanted, revision)
                assert applied.returncode == 0, applied.stderr
            stop.set()
        await answered(*old)
    assert asked > 20


async def test_a_node_that_does_not_answer_gets_no_connection(machine: Machine) -> None:
    with serving(machine.nodes[0]):
        applied = await asyncio.to_thread(machine.apply, routes(PORT, addresses=machine.nodes), 1)
        assert applied.returncode == 0, applied.stderr
        for _ in range(10):
            await ask(machine.address)
