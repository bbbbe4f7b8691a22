"""The addresses of a script's network, set in a namespace where its router was quicker than we."""

from __future__ import annotations

import subprocess

from slipway.mgmt.script_network import ROUTER_6, addresses
from tests.script_sandbox import needs_sandbox

ANNOUNCED = "ip -6 route add default via fe80::2 dev tap0 proto ra metric 1024"  # what the kernel makes of slirp4netns


@needs_sandbox
def test_a_default_route_that_the_router_has_announced_already_is_no_error() -> None:
    interface = "ip tuntap add tap0 mode tap && ip link set tap0 up"
    commands = f"{interface} && {ANNOUNCED} && {addresses(ipv6=True)} && ip -6 route show default"
    namespace = ["unshare", "--user", "--map-root-user", "--net", "/bin/sh", "-c", commands]
    done = subprocess.run(namespace, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"default via {ROUTER_6} dev tap0")
