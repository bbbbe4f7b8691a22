"""An HTTP server on the address that machines of a sandbox network reach the host at, before that network is there.

It serves a directory, and a small image registry under /v2/ that wants a login.
"""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from slipway.vim.sandbox.image.kubernetes.oci import MANIFEST, Image, documents

USER, PASSWORD = "puller", "let me: \"in\" % 'please'"
_FREEBIND = 15  # IP_FREEBIND of Linux: an address that comes later


class EarlyServer(ThreadingHTTPServer):
    """At an address that this host does not have yet; `running` binds it."""

    daemon_threads = True
    asked: list[str]

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IP, _FREEBIND, 1)
        super().server_bind()


class Server(EarlyServer):
    directory: Path
    blobs: Mapping[str, bytes]  # by digest
    manifests: Mapping[str, bytes]  # by "name:tag" and "name@digest"


class Handler(SimpleHTTPRequestHandler):
    server: Server

    def __init__(self, request: Any, address: Any, server: Server) -> None:
        super().__init__(request, address, server, directory=str(server.directory))

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path.startswith("/v2/"):
            self._registry()
        elif self.path.startswith("/elsewhere/"):
            self.send_response(302)
            self.send_header("Location", f"file:///etc/{self.path.removeprefix('/elsewhere/')}")
            self.end_headers()
        else:
            super().do_GET()

    do_HEAD = do_GET

    def _registry(self) -> None:
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="lab"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        name, kind, reference = self.path.removeprefix("/v2/").rpartition("/")[0], "", self.path.rpartition("/")[2]
        name, _, kind = name.rpartition("/")
        if kind == "manifests":
            found = self.server.manifests.get(f"{name}{'@' if ':' in reference else ':'}{reference}")
            self._answer(found, MANIFEST)
        elif kind == "blobs":
            self._answer(self.server.blobs.get(reference), "application/octet-stream")
        else:
            self._answer(b"{}", "application/json")

    def _answer(self, content: bytes | None, media_type: str) -> None:
        self.send_response(200 if content is not None else 404)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content or b"")))
        if content is not None:
            self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(content).hexdigest()}")
        self.end_headers()
        if content is not None and self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(address: str, directory: Path, images: Mapping[str, Image]) -> Iterator[Server]:
    """`images` by "name:tag"."""
    blobs: dict[str, bytes] = {}
    manifests: dict[str, bytes] = {}
    for name, image in images.items():
        config, manifest = documents(image)
        contents = [config, *(layer.file.read_bytes() for layer in image.layers)]
        blobs |= {f"sha256:{hashlib.sha256(content).hexdigest()}": content for content in contents}
        manifests[name] = manifest
        manifests[f"{name.rpartition(':')[0]}@sha256:{hashlib.sha256(manifest).hexdigest()}"] = manifest
    server = Server((address, 0), Handler, bind_and_activate=False)
    server.directory, server.blobs, server.manifests, server.asked = directory, blobs, manifests, []
    with running(server):
        yield server


@contextmanager
def running(server: EarlyServer) -> Iterator[None]:
    server.server_bind()
    server.server_activate()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
