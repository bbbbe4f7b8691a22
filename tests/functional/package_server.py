"""A file server on loopback that gives packages, and gives them badly: each path has a fault of its own."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USER, PASSWORD = "ada", "pass:wörd"
METADATA = "http://169.254.169.254/latest/meta-data/"


class PackageServer:
    """`reached` is set when somebody waits at a path that holds back its content; `go` lets all of them have it."""

    def __init__(self, content: bytes, tls: ssl.SSLContext | None = None) -> None:
        self.content = content
        self.elsewhere = ""
        self.asked: list[tuple[str, str | None]] = []  # path, Authorization
        self.reached, self.go = threading.Event(), threading.Event()
        self._scheme = "https" if tls else "http"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def url(self, path: str) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}{path}"

    @contextmanager
    def running(self) -> Iterator[PackageServer]:
        self._thread.start()
        try:
            yield self
        finally:
            self.go.set()
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


def _handler(known: PackageServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        server_of = known

    return Handler


class _Handler(BaseHTTPRequestHandler):
    server_of: PackageServer

    def do_GET(self) -> None:
        known = self.server_of
        given = self.headers.get("Authorization")
        known.asked.append((self.path, given))
        name, _, rest = self.path.partition("?")[0].lstrip("/").partition("/")
        with suppress(OSError):  # who asked has gone
            getattr(self, f"give_{name}", self.give_nothing)(known, rest, given)
        self.close_connection = True

    def log_message(self, *parts: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def give_nothing(self, *_: Any) -> None:
        self.answer(404, b"no such thing")

    def give_ok(self, known: PackageServer, *_: Any) -> None:
        self.answer(200, known.content)

    def give_status(self, known: PackageServer, status: str, given: str | None) -> None:
        self.answer(int(status), b"<html>secret of the server</html>")

    def give_private(self, known: PackageServer, rest: str, given: str | None) -> None:
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if given == wanted:
            self.answer(200, known.content)
        else:
            self.answer(401, WWW_Authenticate='Basic realm="x"')

    def give_hop(self, known: PackageServer, left: str, given: str | None) -> None:
        self.answer(302, Location=f"/hop/{int(left) - 1}" if int(left) else "/ok")

    def give_loop(self, *_: Any) -> None:
        self.answer(301, Location="/loop")

    def give_metadata(self, *_: Any) -> None:
        self.answer(302, Location=METADATA)

    def give_elsewhere(self, known: PackageServer, *_: Any) -> None:
        self.answer(307, Location=known.elsewhere)

    def give_announced(self, *_: Any) -> None:
        self.answer(200, b"PK", length=10**12)

    def give_endless(self, *_: Any) -> None:
        self.protocol_version = "HTTP/1.1"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while True:
            self.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    def give_drops(self, known: PackageServer, *_: Any) -> None:
        """A byte at a time, often enough never to be silent."""
        self.answer(200, length=10**6)
        while not known.go.wait(0.02):
            self.wfile.write(b"x")
            self.wfile.flush()

    def give_cut(self, known: PackageServer, *_: Any) -> None:
        self.answer(200, known.content[:1000], length=len(known.content))

    def give_packed(self, known: PackageServer, *_: Any) -> None:
        self.answer(200, known.content, Content_Encoding="gzip")

    def give_rubbish(self, *_: Any) -> None:
        self.wfile.write(b"220 this is a mail server\r\n")

    def give_silence(self, known: PackageServer, *_: Any) -> None:
        known.reached.set()
        known.go.wait(60)

    def give_stall(self, known: PackageServer, *_: Any) -> None:
        """The first part at once, the rest when the test says so."""
        self.answer(200, known.content[:1000], length=len(known.content))
        known.reached.set()
        known.go.wait(60)
        self.wfile.write(known.content[1000:])
