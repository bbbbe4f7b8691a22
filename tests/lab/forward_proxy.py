"""An HTTP proxy with a login, on the address that machines of a sandbox network reach the host at.

It fetches what the host itself can reach, such as Debian's packages. One host is no real one: the registry REGISTRY,
which has the image of a directory that skopeo wrote.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from tests.lab.file_server import EarlyServer, running

REGISTRY = "registry.slipway.test:5000"
USER, PASSWORD = "fetcher", "hills.and-far"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_HOP = frozenset(["connection", "keep-alive", "proxy-authorization", "proxy-connection", "transfer-encoding", "te"])


class ForwardProxy(EarlyServer):
    image: Path
    is_open: bool

    @property
    def url(self) -> str:
        address, port = self.server_address[:2]
        return f"http://{USER}:{PASSWORD}@{address!s}:{port}"


class Handler(BaseHTTPRequestHandler):
    server: ForwardProxy

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        wanted, place = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode(), urlsplit(self.path)
        if not self.server.is_open:
            self._answer(503)
        elif self.headers.get("Proxy-Authorization") != f"Basic {wanted}":
            self._answer(407)
        elif place.netloc == REGISTRY:
            self._registry(place.path)
        else:
            self._forward(place.netloc, place.path + (f"?{place.query}" if place.query else ""))

    do_HEAD = do_GET

    def do_CONNECT(self) -> None:
        """Nothing is fetched by HTTPS here: whoever tries that first, as engines do, goes on by HTTP."""
        self.server.asked.append(self.path)
        self._answer(502)

    def _registry(self, path: str) -> None:
        kind, reference = path.rstrip("/").split("/")[-2:]
        name = {"manifests": "manifest.json", "blobs": reference.removeprefix("sha256:")}.get(kind)
        if name is None:
            self._answer(200, b"{}")
        elif (file := self.server.image / Path(name).name).is_file():
            self._answer(200, file.read_bytes(), MANIFEST if kind == "manifests" else "application/octet-stream")
        else:
            self._answer(404)

    def _forward(self, host: str, path: str) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        connection = http.client.HTTPConnection(host, timeout=60)
        try:
            connection.request(self.command, path, headers=headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command == "GET":
                shutil.copyfileobj(answer, self.wfile)
        except OSError as error:
            self.log_error("%s", error)
        finally:
            connection.close()
            self.close_connection = True

    def _answer(self, status: int, content: bytes = b"", media_type: str = "application/json") -> None:
        self.send_response(status)
        headers = {
            "Content-Type": media_type,
            "Content-Length": str(len(content)),
            "Docker-Distribution-Api-Version": "registry/2.0",
            "Docker-Content-Digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "Connection": "close",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if status == 407:
            self.send_header("Proxy-Authenticate", 'Basic realm="lab"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def proxying(address: str, image: Path) -> Iterator[ForwardProxy]:
    """`image`: what `skopeo copy ... dir:` wrote. It refuses everything until it is opened."""
    server = ForwardProxy((address, 0), Handler, bind_and_activate=False)
    server.image, server.asked, server.is_open = image, [], False
    with running(server):
        yield server
