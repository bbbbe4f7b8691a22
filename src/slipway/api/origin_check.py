"""Protects against requests that other web pages make through a user's browser (CSRF, DNS rebinding).

A browser carries requests of any page to this machine. A page that had its own name lead to 127.0.0.1 (DNS rebinding)
could read and change everything where no token is required; the Host header has the name that was used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from slipway.model.errors import Forbidden

CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:@#/?\[\]]+))(?::[0-9]{1,5})?")

Headers = Iterable[tuple[bytes, bytes]]


class OriginCheck:
    """`base_url` is where this server is found. Unless `tokens` are required, it answers only to its own names."""

    def __init__(self, base_url: str, *, tokens: bool) -> None:
        url = urlsplit(base_url.lower())
        self._name = url.hostname or ""
        self._origin = f"{url.scheme}://{url.netloc}"
        self._tokens = tokens

    def check(self, method: str, headers: Headers) -> None:
        """Forbidden when the request may come from a page of another origin."""
        if self._tokens and method not in CHANGING:
            return
        hosts = [_decoded_header(value) for name, value in headers if name == b"host"]
        if not self._tokens and (len(hosts) != 1 or not self._is_own_name(hosts[0])):
            raise Forbidden(
                "The Host header names no address of this machine, and without authentication only requests to its own "
                "are answered. Ask for http://localhost or the address of the setting base_url, or start Slipway with "
                "authentication."
            )
        if method in CHANGING:
            self._check_page(hosts, headers)

    def _check_page(self, hosts: list[str], headers: Headers) -> None:
        for name, value in headers:
            foreign = (name == b"sec-fetch-site" and _decoded_header(value) == "cross-site") or (
                name == b"origin" and not self._is_own_origin(_decoded_header(value), hosts)
            )
            if foreign:
                raise Forbidden(
                    "The request comes from a web page of another origin (headers Origin, Sec-Fetch-Site). Open the "
                    "page at the address of Slipway itself, which the setting base_url names, or use another client."
                )

    def _is_own_name(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1] or match[2].rstrip(".")
        if name in ("localhost", self._name):
            return True
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return False

    def _is_own_origin(self, origin: str, hosts: list[str]) -> bool:
        scheme, _, authority = origin.partition("://")
        return origin == self._origin or (scheme in ("http", "https") and authority != "" and [authority] == hosts)


def _decoded_header(value: bytes) -> str:
    return value.decode("latin-1").strip().lower()
