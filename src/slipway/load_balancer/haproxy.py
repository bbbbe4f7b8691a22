"""The whole configuration of HAProxy from one template: a pure function of the routes.

HAProxy has no way to quote a name, so every word that goes in is narrowed right here to characters that can't end a
word or a line, whoever checked it before. There is no statistics page; the one socket is root's, and only tells.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from slipway.cluster.kubernetes_names import DNS_LABEL
from slipway.cluster.load_balancer import checked_address, checked_name
from slipway.cluster.naming import API_PORT, host_and_port
from slipway.load_balancer.routes import API_FRONT_END, API_FRONT_END_NAME, FrontEnd, Routes, Server

CONFIG = "/etc/haproxy/haproxy.cfg"
SOCKET = "/run/slipway-haproxy.sock"
MARK = "slipway-"  # begins the description by which a running HAProxy tells which configuration it has
_CHECKS = "check inter 2s fall 3 rise 1"


def haproxy_config(routes: Routes) -> str:
    """Its second line is `marked_as(routes)`: what the running process is asked for."""
    return "\n".join(["global", f"    description {marked_as(routes)}", *_body(routes)]) + "\n"


def marked_as(routes: Routes) -> str:
    """The same for the same routes, and for no others."""
    return MARK + hashlib.sha256("\n".join(_body(routes)).encode()).hexdigest()[:16]


def _body(routes: Routes) -> list[str]:
    return [*_settings(), *_api(routes), *(line for one in routes.front_ends for line in _exposed(one, routes))]


def _settings() -> Iterator[str]:
    yield from (
        "    log stdout format raw local0 notice",
        "    maxconn 8192",
        "    chroot /var/lib/haproxy",
        "    user haproxy",
        "    group haproxy",
        f"    stats socket {SOCKET} mode 600 level user",
        "defaults",
        "    log global",
        "    mode tcp",
        "    balance roundrobin",
        "    option tcpka",
        "    option redispatch",
        "    retries 3",
        "    timeout connect 5s",
        "    timeout check 5s",
        "    timeout client 1h",
        "    timeout server 1h",
    )


def _api(routes: Routes) -> Iterator[str]:
    """Connections go only to API servers that say they are ready."""
    yield from _front_end(API_FRONT_END_NAME, API_FRONT_END, routes)
    yield f"backend {API_FRONT_END_NAME}"
    yield "    option httpchk GET /readyz"
    yield "    http-check expect status 200"
    yield f"    default-server {_CHECKS} check-ssl verify none on-marked-down shutdown-sessions"
    yield from _servers(routes.masters, API_PORT)


def _exposed(one: FrontEnd, routes: Routes) -> Iterator[str]:
    """The same port on every node; those where nothing accepts connections get none."""
    name, port = _front_end_name(one), _port(one.port)
    yield from _front_end(name, port, routes)
    yield f"backend {name}"
    yield f"    default-server {_CHECKS}"
    yield from _servers(routes.servers, port)


def _front_end(name: str, port: int, routes: Routes) -> Iterator[str]:
    """On all addresses of the balancer: of both families where nodes have addresses of IPv6."""
    both = any(":" in server.address for server in routes.servers)
    yield f"frontend {name}"
    yield f"    bind {'[::]' if both else '*'}:{port}{' v4v6' if both else ''}"
    yield f"    default_backend {name}"


def _servers(servers: Sequence[Server], port: int) -> Iterator[str]:
    for server in servers:
        yield f"    server {checked_name(server.name)} {host_and_port(checked_address(server.address), port)}"


def _front_end_name(one: FrontEnd) -> str:
    for name in (one.namespace, one.service):
        if not DNS_LABEL.fullmatch(name):
            raise ValueError("a namespace or Service has a name that Kubernetes would not take")
    return one.name


def _port(port: int) -> int:
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
        raise ValueError("this is not a port")
    return port


def ports_of(config: str) -> tuple[int, ...]:
    """Those that a configuration binds."""
    return tuple(int(found) for found in re.findall(r"^    bind (?:\*|\[::\]):([0-9]+)", config, re.MULTILINE))
