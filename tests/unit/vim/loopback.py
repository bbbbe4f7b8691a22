"""A server on a loopback address, in a thread of the test, plain or with TLS."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    client: str | None  # the common name of a client certificate
    query: dict[str, str]

    @property
    def document(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))


@dataclass(frozen=True)
class Reply:
    """`document`: bytes are sent as they are, anything else as JSON."""

    status: int = 200
    document: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Answering = Callable[[Asked], Reply]


@contextmanager
def serving(answer: Answering, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server that answers so."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two packets, and the client acknowledges late

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:  # the client did not like our certificate, or went away
                self.close_connection = True

        def answered(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(
                self.command,
                parts.path,
                {name.lower(): value for name, value in self.headers.items()},
                self.rfile.read(length),
                _common_name(self.connection),
                dict(parse_qsl(parts.query)),
            )
            reply = answer(asked)
            body = _body(reply.document)
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answered

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _body(document: Any) -> bytes:
    if document is None or isinstance(document, bytes):
        return document or b""
    return json.dumps(document).encode()


def _common_name(connection: Any) -> str | None:
    certificate: Any = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
    names = [value for part in (certificate or {}).get("subject", ()) for key, value in part if key == "commonName"]
    return names[0] if names else None
