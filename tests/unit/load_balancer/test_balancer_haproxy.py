"""The configuration of HAProxy: nothing that anybody calls a node, a namespace or a Service breaks out of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slipway.load_balancer.haproxy import haproxy_config, marked_as, ports_of
from slipway.load_balancer.routes import Exposed, FrontEnd, Routes, Server

MASTER = Server(name="master-0", address="10.0.0.1", master=True)
WORKER = Server(name="worker-0", address="10.0.0.2")
KNOWN = re.compile(
    r"global|defaults|(frontend|backend) [a-z0-9_-]+|    (description slipway-[0-9a-f]{16}|server [a-z0-9-]+ [0-9.:]+"
    r"|bind \*:[0-9]+|default_backend [a-z0-9_-]+|(log|maxconn|chroot|user|group|stats socket|mode|balance|option"
    r"|retries|timeout|http-check|default-server) [\w/. -]+)"
)


def routes(namespace: str = "shop", service: str = "web", port: int = 30080, *servers: Server) -> Routes:
    exposed = Exposed(front_ends=(FrontEnd(port=port, namespace=namespace, service=service),))
    return Routes(servers=servers or (MASTER, WORKER), exposed={"cnf": exposed})


def test_every_port_has_a_front_end_and_the_api_its_own() -> None:
    config = haproxy_config(routes())
    assert ports_of(config) == (8383, 30080)
    assert "    option httpchk GET /readyz\n" in config
    assert config.count("    server master-0 10.0.0.1:6443\n") == 1
    assert "server worker-0 10.0.0.2:6443" not in config
    assert "    server worker-0 10.0.0.2:30080\n" in config
    assert all(KNOWN.fullmatch(line) for line in config.splitlines())


def test_the_same_routes_are_the_same_configuration() -> None:
    turned = Routes(servers=(MASTER, WORKER), exposed=dict(reversed(routes().exposed.items())))
    assert haproxy_config(turned) == haproxy_config(routes())
    assert marked_as(routes()) != marked_as(routes(port=30081))
    assert f"    description {marked_as(routes())}\n" in haproxy_config(routes())


def test_addresses_of_ipv6_are_bound_beside_the_others() -> None:
    config = haproxy_config(routes("shop", "web", 30080, Server(name="n", address="fd00::7", master=True)))
    assert "    bind [::]:8383 v4v6\n" in config
    assert "    server n [fd00::7]:30080\n" in config


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.integers(-5, 70000))
@example("shop", "web\n    stats enable", "worker", 30080)
@example("shop\r", "web", "worker", 30080)
@example("shop", "web", "worker 10.0.0.9:22\n    server x", 30080)
@example("shop", "web # ", "worker", 0)
def test_no_name_breaks_out(namespace: str, service: str, name: str, port: int) -> None:
    try:
        config = haproxy_config(routes(namespace, service, port, Server(name=name, address="10.0.0.2", master=True)))
    except ValueError:
        return
    assert all(KNOWN.fullmatch(line) for line in config.split("\n")[:-1])
    assert len(ports_of(config)) == 2


@pytest.mark.parametrize("address", ["10.0.0.1 check\n", "evil.example", "fe80::1%eth0", "", "10.0.0.1:22"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"address|scope"):
        haproxy_config(routes("shop", "web", 30080, Server(name="worker-0", address=address)))
