"""What a connection may cost before anybody knows who is at its other end: bytes and time, over a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from sqlalchemy.engine import URL

from slipway.api.application import make_app
from slipway.http_server import LARGEST_HEAD, BoundedProtocol, HttpServer
from slipway.store.database import Database
from tests.functional.processes import serving_on
from tests.unit.api.world import LCM, PACKAGES, TOKEN, World, a_world

pytestmark = pytest.mark.sqlite_suffices

SOON = 0.5  # seconds, in place of a server's patience
HEAD = f"Host: x\r\nX-Auth-Token: {TOKEN}\r\nVersion: 2.0.0\r\n"


class Impatient(BoundedProtocol):
    head_seconds = SOON
    rest_seconds = SOON


class Listener(HttpServer):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config, ready="ready")
        self.listens = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


class Listening:
    def __init__(self, world: World, port: int) -> None:
        self.world = world
        self.port = port

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def told(self, *pieces: str | bytes, pause: float = 0.0) -> tuple[int, Any]:
        """Status and document of the answer to these pieces; (0, None) when the connection ends without one."""
        reader, writer = await self.connect()
        for piece in pieces:
            writer.write(piece if isinstance(piece, bytes) else piece.encode())
            await asyncio.sleep(pause)
        answer = await answered(reader)
        writer.close()
        return answer


async def answered(reader: asyncio.StreamReader) -> tuple[int, Any]:
    async with asyncio.timeout(20):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return 0, None
        headers = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:-2])
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return int(head.split()[1]), json.loads(body) if body else None


async def ended(reader: asyncio.StreamReader) -> None:
    """The server has closed the connection."""
    async with asyncio.timeout(20):
        try:
            while await reader.read(65536):
                pass
        except ConnectionResetError:
            pass


async def sent_until_ended(here: Listening, begin: str, piece: bytes, pause: float = 0.0) -> int:
    """The number of pieces that went out before the server ended the connection."""
    reader, writer = await here.connect()
    writer.write(begin.encode())
    ending, pieces = asyncio.create_task(ended(reader)), 0
    while not ending.done():
        try:
            writer.write(piece)
            await writer.drain()
            pieces += 1
            await asyncio.sleep(pause)
        except ConnectionError:
            break
    await ending
    writer.close()
    return pieces


@asynccontextmanager
async def listening(database: Database, directory: Path, **more: Any) -> AsyncIterator[Listening]:
    async with a_world(database, directory, **more) as world:
        app: Any = make_app(world.services)
        server = Listener(uvicorn.Config(app, port=0, log_config=None, http=Impatient, ws="none", lifespan="off"))
        serving = asyncio.create_task(server.serve())
        await server.listens.wait()
        yield Listening(world, server.servers[0].sockets[0].getsockname()[1])
        server.should_exit = True
        await serving


@pytest.fixture
async def here(database: Database, tmp_path: Path) -> AsyncIterator[Listening]:
    async with listening(database, tmp_path, body_seconds=SOON, max_body_bytes=4096) as here:
        yield here


async def test_an_ordinary_request_is_answered(here: Listening) -> None:
    status, found = await here.told(f"GET {LCM}/vnf_instances HTTP/1.1\r\n{HEAD}\r\n")
    assert (status, found) == (200, [])


@pytest.mark.parametrize(
    "head",
    [
        f"GET /{'x' * LARGEST_HEAD} HTTP/1.1\r\n{HEAD}\r\n",
        f"GET / HTTP/1.1\r\nX-Long: {'x' * LARGEST_HEAD}\r\n{HEAD}\r\n",
        "GET / HTTP/1.1\r\n" + "".join(f"X-Many-{number}: {'x' * 20}\r\n" for number in range(3000)) + "\r\n",
    ],
    ids=["line", "one header", "many headers"],
)
async def test_a_large_head_is_refused(here: Listening, head: str) -> None:
    status, problem = await here.told(head)
    assert (status, problem["status"]) == (431, 431)
    assert f"{LARGEST_HEAD} bytes" in problem["detail"]


async def test_a_token_of_the_largest_size_fits(here: Listening) -> None:
    status, _ = await here.told(f"GET /slipway/v1/info HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {'x' * 16384}\r\n\r\n")
    assert status == 401


CHUNKED = f"POST {PACKAGES} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        ("GET /", b"x" * 65536),
        ("GET / HTTP/1.1\r\nX-Endless: ", b"x" * 65536),
        ("GET / HTTP/1.1\r\n", b"X-Many: header\r\n" * 4096),
        (f"{CHUNKED}2;extension=", b"x" * 65536),
        (f"{CHUNKED}2\r\n{{}}\r\n0\r\nX-Trailer: ", b"x" * 65536),
    ],
    ids=["line", "one header", "many headers", "extension of a piece", "trailer"],
)
async def test_what_has_no_end_is_cut_off(here: Listening, begin: str, piece: bytes) -> None:
    """However fast it comes: the server takes in no more than a bounded part of it."""
    assert await sent_until_ended(here, begin, piece) * len(piece) < 20_000_000


async def test_a_head_that_comes_too_slowly_is_refused(here: Listening) -> None:
    status, problem = await here.told(f"GET {LCM}/vnf_instances HTTP/1.1\r\nHost: ")
    assert (status, problem["status"]) == (408, 408)
    pieces = await sent_until_ended(here, f"GET {LCM}/vnf_instances HTTP/1.1\r\nHost: ", b"x", SOON / 20)
    assert pieces < 40  # a byte now and then is no excuse


async def test_who_says_nothing_is_not_waited_for(here: Listening) -> None:
    reader, writer = await here.connect()
    assert await answered(reader) == (0, None)
    writer.close()


async def test_the_second_request_of_a_connection_is_bounded_like_the_first(here: Listening) -> None:
    reader, writer = await here.connect()
    writer.write(f"GET /health HTTP/1.1\r\n{HEAD}\r\n".encode())
    assert (await answered(reader))[0] == 200
    writer.write(b"GET /health HTTP/1.1\r\nHost")
    assert (await answered(reader))[0] == 408
    await ended(reader)
    writer.close()


async def test_a_body_that_does_not_come_is_not_waited_for(here: Listening) -> None:
    head = f"POST {LCM}/vnf_instances HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    status, problem = await here.told(head, '{"vnfdId"')
    assert (status, problem["status"]) == (408, 408)
    assert f"{SOON:g} s" in problem["detail"]


async def test_a_package_may_take_its_time_but_not_stand_still(here: Listening) -> None:
    made = (await here.world.call("POST", PACKAGES, 201, json={})).json()["id"]
    head = f"PUT {PACKAGES}/{made}/package_content HTTP/1.1\r\n{HEAD}Content-Type: application/zip\r\n"
    length = "Content-Length: 10\r\n\r\n"
    slow = [head + length, *("x" for _ in range(10))]
    status, _ = await here.told(*slow, pause=SOON / 4)  # longer than SOON as a whole
    assert status == 202
    assert "ZIP" in str((await here.world.call("GET", f"{PACKAGES}/{made}", 200)).json()["onboardingFailureDetails"])
    status, problem = await here.told(head + length, "xxx")
    assert (status, problem["status"]) == (408, 408)
    shown = (await here.world.call("GET", f"{PACKAGES}/{made}", 200)).json()
    assert (shown["onboardingState"], shown["onboardingFailureDetails"]["status"]) == ("CREATED", 408)


async def test_the_rest_of_a_body_that_was_refused_is_not_waited_for(here: Listening) -> None:
    """Whoever is refused by its token could go on sending for ever."""
    reader, writer = await here.connect()
    writer.write(b"POST /slipway/v1/vims HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
    assert (await answered(reader))[0] == 401
    writer.close()
    refused = "POST /slipway/v1/vims HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
    assert await sent_until_ended(here, refused, b"x", SOON / 20) < 100


async def test_what_is_no_http_is_refused(here: Listening) -> None:
    status, problem = await here.told(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100)
    assert (status, problem["status"]) == (400, 400)


@pytest.mark.parametrize(("length", "status"), [(4096, 413), (4000, 400)])
async def test_a_body_has_a_largest_size(here: Listening, length: int, status: int) -> None:
    body = '{"vnfdId": 1}' + " " * length
    head = f"POST {LCM}/vnf_instances HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
    assert (await here.told(f"{head}Content-Length: {len(body)}\r\n\r\n{body}"))[0] == status
    chunk = f"{len(body):x}\r\n{body}\r\n0\r\n\r\n"
    assert (await here.told(f"{head}Transfer-Encoding: chunked\r\n\r\n{chunk}"))[0] == status


async def test_a_filter_has_a_longest_size(here: Listening) -> None:
    for path in (f"{LCM}/vnf_instances", "/vnflcm/v1/vnf_instances", PACKAGES, "/slipway/v1/vims"):
        long = f"(eq,id,{'x' * 4096})"
        refused = await here.world.call("GET", path, 400, params={"filter": long})
        assert "at most 4096" in refused.json()["detail"]


def test_a_server_as_it_is_started_has_these_limits(database_url: URL, tmp_path: Path) -> None:
    with serving_on(database_url, tmp_path) as (_, client):
        assert client.get("/slipway/v1/info").status_code == 200
        refused = client.get("/slipway/v1/info", headers={"X-Long": "x" * LARGEST_HEAD})
        assert refused.status_code == 431
        forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "10.0.0.1", "X-Forwarded-Host": "evil.example"}
        made = client.post(PACKAGES, json={}, headers=forwarded)
        assert made.headers["location"].startswith(str(client.base_url).rstrip("/"))
