"""Which host answers at an address, as another host on the same network sees it."""

from __future__ import annotations

import ipaddress
import re
import sqlite3

from slipway.cluster.naming import BALANCED_API_PORT
from slipway.simulator.cluster.host import SimulatedHost, find_host, is_running

HAPROXY = "/etc/haproxy/haproxy.cfg"
KEEPALIVED = "/etc/keepalived/keepalived.conf"
_SERVER = re.compile(r"^\s*server \S+ (\S+)$", re.MULTILINE)
_VIRTUAL = re.compile(r"virtual_ipaddress \{\s*(\S+?)(?:/\d+)?\s")
_PLACE = re.compile(r"\[?(.+?)\]?:(\d+)")
_BESIDE = (
    "SELECT other.machine_id FROM port AS own JOIN port AS other ON other.wire = own.wire"
    " WHERE own.machine_id = ? AND other.address = ?"
)


def api_server_at(db: sqlite3.Connection, viewer: str, endpoint: str) -> SimulatedHost | None:
    """The master that answers at host:port: the one with the address, or one that a balancer there leads to."""
    place = _PLACE.fullmatch(endpoint)
    if place is None:
        return None
    address, port = place[1], int(place[2])
    if port == BALANCED_API_PORT:
        return _through_balancer(db, viewer, address)
    row = db.execute(_BESIDE, (viewer, address)).fetchone()
    if row is None or not is_running(db, row[0]):
        return None
    host = find_host(db, row[0])
    return host if host.is_master else None


def _through_balancer(db: sqlite3.Connection, viewer: str, vip: str) -> SimulatedHost | None:
    """Any balancer that holds the address will do, for so it would be when the others are gone."""
    near = (
        "SELECT host.machine_id FROM host JOIN machine ON machine.id = host.machine_id WHERE host.vip = ?"
        " AND machine.errors_left >= 0 AND machine.instance_id = (SELECT instance_id FROM machine WHERE id = ?)"
    )
    for (machine_id,) in db.execute(f"{near} ORDER BY machine_id", (vip, viewer)).fetchall():
        for server in servers_of(find_host(db, machine_id)):
            if (found := api_server_at(db, machine_id, server)) is not None:
                return found
    return None


def servers_of(host: SimulatedHost) -> list[str]:
    file = host.files.get(HAPROXY)
    return _SERVER.findall(file.content.decode()) if file else []


def virtual_address(host: SimulatedHost) -> str | None:
    file = host.files.get(KEEPALIVED)
    found = _VIRTUAL.search(file.content.decode()) if file else None
    return found[1] if found else None


def prefix_at(db: sqlite3.Connection, machine_id: str, address: str) -> int | None:
    """How wide the network is in which the machine has the address; None when it has no such address."""
    row = db.execute(
        "SELECT network.cidr FROM port LEFT JOIN network ON network.id = port.wire"
        " WHERE port.machine_id = ? AND port.address = ?",
        (machine_id, address),
    ).fetchone()
    if row is None:
        return None
    return ipaddress.ip_network(row[0]).prefixlen if row[0] else 24
