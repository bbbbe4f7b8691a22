#!/usr/bin/env python3
"""Receives the credentials of workload clusters and registers each as a Kubernetes VIM at Slipway.

    credentials_receiver.py --certificate server.pem --key server.key --slipway http://127.0.0.1:9890 --port 8443

It speaks HTTPS and asks for a bearer token. Both tokens come from the environment, so that no list of processes shows
them: RECEIVER_TOKEN is what Slipway must send (`bearer_token`), SLIPWAY_TOKEN is this program's own login at Slipway.
Python's standard library is all it needs; docs/cluster-api.md has the contract.
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/credentials"
LARGEST = 1 << 20  # bytes of a body
VIMS = "/slipway/v1/vims"
KUBERNETES = "ETSINFV.KUBERNETES.V_1"


def vim_from(message: dict[str, Any]) -> dict[str, Any]:
    """What Slipway stores of a VIM, from what the credentials sender told. KeyError when something is missing."""
    if "bearerToken" in message:
        access = {"bearer_token": message["bearerToken"]}
    else:
        access = {"client_certificate": message["clientCertificate"], "client_key": message["clientKey"]}
    interface = {"endpoint": message["server"], "ssl_ca_cert": message["certificateAuthority"]}
    if "tlsServerName" in message:
        interface["tls_server_name"] = message["tlsServerName"]
    return {
        "name": f"{message['cluster']['namespace']}-{message['cluster']['name']}",
        "vimType": KUBERNETES,
        "description": f"The workload cluster of VNF instance {message['vnfInstanceId']}",
        "interfaceInfo": interface,
        "accessInfo": access,
    }


class Slipway:
    def __init__(self, url: str, token: str | None) -> None:
        self._url, self._token = url.rstrip("/"), token

    def register(self, vim: dict[str, Any]) -> None:
        """Made, or brought up to date: the same credentials may come twice."""
        try:
            self._call("POST", VIMS, vim)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
            changes = {key: vim[key] for key in ("description", "interfaceInfo", "accessInfo")}
            self._call("PATCH", f"{VIMS}/{vim['name']}", changes)

    def _call(self, method: str, path: str, body: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)  # noqa: S310 - our own URL
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            response.read()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        status, why = self._received()
        body = json.dumps({"detail": why}).encode() if why else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _received(self) -> tuple[int, str]:
        """2xx: we have it. 4xx: it will never do. 5xx: Slipway tries again."""
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= LARGEST:
            self.close_connection = True
            return 413, "the body is empty or too large"
        content = self.rfile.read(length)
        if self.path != PATH:
            return 404, f"post to {PATH}"
        if not hmac.compare_digest(self.headers.get("Authorization", ""), f"Bearer {self.server.token}"):
            return 401, "the bearer token is not the one of this receiver"
        try:
            vim = vim_from(json.loads(content))
        except (ValueError, KeyError, TypeError) as error:
            return 400, f"this is no credentials message: {type(error).__name__}"
        try:
            self.server.slipway.register(vim)
        except urllib.error.HTTPError as error:
            return 502, f"Slipway answered {error.code}"
        except OSError:
            return 503, "Slipway can't be reached"
        print(f"registered VIM {vim['name']}", flush=True)  # never a word of the credentials
        return 204, ""

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], context: ssl.SSLContext, slipway: Slipway, token: str) -> None:
        super().__init__(address, Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.slipway, self.token = slipway, token


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--certificate", required=True, help="of this server, as PEM, its authority behind it")
    parser.add_argument("--key", required=True, help="of the certificate")
    parser.add_argument("--slipway", required=True, help="URL of Slipway's API")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8443)
    given = parser.parse_args()
    if not (token := os.environ.get("RECEIVER_TOKEN")):
        sys.exit("Set RECEIVER_TOKEN: without one anybody could register VIMs here.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(given.certificate, given.key)
    slipway = Slipway(given.slipway, os.environ.get("SLIPWAY_TOKEN"))
    server = Server((given.host, given.port), context, slipway, token)
    print(f"receiving at https://{given.host}:{server.server_port}{PATH}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
