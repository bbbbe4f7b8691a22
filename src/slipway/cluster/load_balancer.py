"""HAProxy and keepalived on every master: all API servers behind one virtual address that one of the masters holds.

Both read files of their own syntax, for which there is no serializer. So every value is narrowed to characters that
can't end a word or a line, right before it is written, whoever checked it before.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

import msgspec

from slipway.cluster.kubernetes_names import DNS_LABEL
from slipway.cluster.naming import API_PORT, BALANCED_API_PORT, host_and_port

HIGHEST_PRIORITY = 250
_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
_PASSWORD = re.compile(r"[A-Za-z0-9]{8}")


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """A master as the load balancer sees it."""

    name: str
    address: str


class VirtualAddress(msgspec.Struct, frozen=True, kw_only=True):
    """`prefix` is that of the nodes' network; without it the address stands alone."""

    address: str
    prefix: int | None = None
    router_id: int


def haproxy_config(masters: Sequence[Backend]) -> str:
    """Connections go only to API servers that say they are ready. There is no statistics page."""
    everywhere = "[::]" if any(":" in checked_address(master.address) for master in masters) else "*"
    both = " v4v6" if everywhere == "[::]" else ""
    servers = [
        f"    server {checked_name(master.name)} {host_and_port(checked_address(master.address), API_PORT)}"
        for master in masters
    ]
    return _lines(
        "global",
        "    log stdout format raw local0 notice",
        "    maxconn 8192",
        "defaults",
        "    log global",
        "    mode tcp",
        "    timeout connect 5s",
        "    timeout check 5s",
        "    timeout client 1h",
        "    timeout server 1h",
        "frontend kubernetes-api",
        f"    bind {everywhere}:{BALANCED_API_PORT}{both}",
        "    default_backend masters",
        "backend masters",
        "    balance roundrobin",
        "    option httpchk GET /readyz",
        "    http-check expect status 200",
        "    default-server inter 2s fall 3 rise 1 check check-ssl verify none on-marked-down shutdown-sessions",
        *servers,
    )


def keepalived_config(
    virtual: VirtualAddress, masters: Sequence[Backend], own: str, interface: str, password: str
) -> str:
    """For the master `own`. The virtual address leaves a master whose HAProxy is gone. `password` is made by us.

    Peers are named one by one: no multicast, which many networks drop. VRRP of IPv6 has no passwords.
    """
    addresses = {master.name: checked_address(master.address) for master in masters}
    peers = [f"        {address}" for name, address in addresses.items() if name != own]
    if not _PASSWORD.fullmatch(password):
        raise ValueError("a VRRP password has 8 letters or digits")
    authentication = ["    authentication {", "        auth_type PASS", f"        auth_pass {password}", "    }"]
    return _lines(
        "global_defs {",
        "    enable_script_security",
        "    script_user root",
        "}",
        "vrrp_script haproxy {",
        '    script "/usr/bin/pgrep -x haproxy"',
        "    interval 2",
        "    fall 2",
        "    rise 2",
        "}",
        "vrrp_instance kubernetes_api {",
        "    state BACKUP",
        "    nopreempt",
        f"    interface {_interface(interface)}",
        f"    virtual_router_id {_between(virtual.router_id, 1, 255)}",
        f"    priority {_between(HIGHEST_PRIORITY - list(addresses).index(own), 1, 254)}",
        "    advert_int 1",
        f"    unicast_src_ip {addresses[own]}",
        "    unicast_peer {",
        *peers,
        "    }",
        *(authentication if _version(virtual.address) == 4 else ()),
        "    virtual_ipaddress {",
        f"        {_with_prefix(virtual)}",
        "    }",
        "    track_script {",
        "        haproxy",
        "    }",
        "}",
    )


def checked_name(name: str) -> str:
    if not DNS_LABEL.fullmatch(name):
        raise ValueError("a master's name is not a DNS label")
    return name


def _interface(name: str) -> str:
    if not _INTERFACE.fullmatch(name):
        raise ValueError("this is not the name of a network interface")
    return name


def checked_address(address: str) -> str:
    made = ipaddress.ip_address(address)
    if isinstance(made, ipaddress.IPv6Address) and made.scope_id:
        raise ValueError("an address with a scope is good on one machine only")
    return str(made)


def _version(address: str) -> int:
    return ipaddress.ip_address(address).version


def _with_prefix(virtual: VirtualAddress) -> str:
    longest = 32 if _version(virtual.address) == 4 else 128
    return f"{checked_address(virtual.address)}/{_between(virtual.prefix or longest, 1, longest)}"


def _between(number: int, lowest: int, highest: int) -> int:
    if not lowest <= number <= highest:
        raise ValueError(f"{number} is not within {lowest} to {highest}")
    return int(number)


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"
