"""Networks: a bridge for each, with the range that was wanted, and a guard so that nothing for it leaves the machine.

Two instances may want the same range, but one machine has one routing table. The second network gets a range of its own
towards the engine and no way out; the machines on it have the wanted addresses and reach each other, not the host.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_address, ip_network

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import FoundNetwork, Network
from slipway.vim.address import checked_cidr
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox import labels
from slipway.vim.sandbox.engine import Engine, Thing
from slipway.vim.sandbox.labels import bridge_name, engine_name

OUTSIDE = "public"  # the one network that every sandbox has
OUTSIDE_RANGES = IPv4Network("10.200.0.0/14")
CHOSEN_RANGES = IPv4Network("10.204.0.0/14")
HIDDEN_RANGES = IPv4Network("100.64.0.0/10")
IP_SECONDS = 10.0
GUARD_METRIC = "4096"


@dataclass(frozen=True)
class Wire:
    """A network as ports need it. `cidr` is what machines see, `subnet` what the engine believes."""

    engine_name: str
    cidr: IPv4Network
    subnet: IPv4Network

    @property
    def isolated(self) -> bool:
        return self.cidr != self.subnet

    def for_engine(self, address: str) -> str:
        """The engine's address for one of ours: the same place in its range."""
        place = int(ip_address(address)) - int(self.cidr.network_address)
        return str(self.subnet.network_address + place)


def wire_of(thing: Thing) -> Wire:
    configured = (thing.get("IPAM") or {}).get("Config") or []
    ranges = [ip_network(one["Subnet"], strict=False) for one in configured]
    subnet = next((one for one in ranges if isinstance(one, IPv4Network)), None)
    if subnet is None:
        raise VimError(f"Network {thing['Name']} has no IPv4 range.", VimFault.PERMANENT)
    cidr = labels.of(thing).get(labels.CIDR)
    return Wire(str(thing["Name"]), IPv4Network(cidr) if cidr else subnet, subnet)


def ensure_network(engine: Engine, network: Network, maker: Maker) -> FoundNetwork:
    """Once for its id. Under the lock on ranges."""
    name = engine_name("network", network.id)
    there = engine.network(name)
    if there is None:
        cidr, subnet = _ranges(engine, network)
        text = labels.labels("network", network.id, network.name, maker, cidr=str(cidr))
        engine.create_network(
            name, str(subnet), str(subnet[1]), bridge_name(engine.url, network.id), text, internal=cidr != subnet
        )
        there = engine.network(name)
    if there is None:
        raise VimError(f"Network {network.name} vanished while it was made.", VimFault.TEMPORARY)
    found = labels.of(there)
    if found.get(labels.INSTANCE) != maker.instance_id:
        raise VimError(f"Network {network.id} belongs to another instance.", VimFault.PERMANENT)
    guard(wire_of(there).subnet)
    return found_network(there)


def found_network(thing: Thing) -> FoundNetwork:
    text = labels.of(thing)
    return FoundNetwork(id=text[labels.ID], name=text[labels.NAME], resource_id=str(thing["Id"]))


def ensure_outside(engine: Engine, name: str) -> Wire:
    """A network that is no instance's: `public` is made when first wanted, others must be there."""
    there = engine.network(name if name != OUTSIDE else engine_name("outside", OUTSIDE))
    if there is None and name == OUTSIDE:
        subnet = _free(OUTSIDE_RANGES, 16, _used(engine))
        own = engine_name("outside", OUTSIDE)
        text = {labels.KIND: "outside", labels.NAME: OUTSIDE}
        engine.create_network(own, str(subnet), str(subnet[1]), bridge_name(engine.url, own), text, internal=False)
        there = engine.network(own)
    if there is None:
        raise VimError(f"There is no network {name} outside the VNF.", VimFault.PERMANENT,
                       cure=f"use {OUTSIDE}, or make one: podman network create {name}")  # fmt: skip
    guard(wire_of(there).subnet)
    return wire_of(there)


def remove_network(engine: Engine, thing: Thing) -> None:
    """The guard first: one that stayed would keep the range from the next network."""
    wire = wire_of(thing)
    unguard(wire.subnet)
    engine.remove_network(wire.engine_name)


def guard(subnet: IPv4Network) -> None:
    """While the bridge is away, a packet for one of its addresses ends here, and not on the way to someone else."""
    _ip("route", "replace", "unreachable", str(subnet), "metric", GUARD_METRIC)


def unguard(subnet: IPv4Network) -> None:
    _ip("route", "del", "unreachable", str(subnet), "metric", GUARD_METRIC)


def _ranges(engine: Engine, network: Network) -> tuple[IPv4Network, IPv4Network]:
    """What machines see, and what the engine is told."""
    used = _used(engine)
    if network.cidr is None:
        chosen = _free(CHOSEN_RANGES, 24, used)
        return chosen, chosen
    wanted = ip_network(checked_cidr(network.cidr, network.name))
    if not isinstance(wanted, IPv4Network) or not 8 <= wanted.prefixlen <= 29:
        raise VimError(f"Network {network.name}: the sandbox has IPv4 ranges from /8 to /29, not {wanted}.",
                       VimFault.PERMANENT, cure="give it another cidr.")  # fmt: skip
    if not any(wanted.overlaps(other) for other in used):
        return wanted, wanted
    return wanted, _free(HIDDEN_RANGES, wanted.prefixlen, used)


def _free(pool: IPv4Network, length: int, used: list[IPv4Network]) -> IPv4Network:
    if length >= pool.prefixlen:
        for subnet in pool.subnets(new_prefix=length):
            if not any(subnet.overlaps(other) for other in used):
                return subnet
    raise VimError(f"No range of /{length} is free in {pool}.", VimFault.QUOTA, cure="slipway sandbox prune")


def _used(engine: Engine) -> list[IPv4Network]:
    """The ranges of all networks of the engine and of the machine itself."""
    used = [ip_network(route["dst"], strict=False) for route in _routes() if route["dst"] != "default"]
    for thing in engine.networks():
        used += [ip_network(one["Subnet"], strict=False) for one in (thing.get("IPAM") or {}).get("Config") or []]
    return [one for one in used if isinstance(one, IPv4Network)]


def _routes() -> list[dict[str, str]]:
    """Guards among them, which stand for networks of other engines whose bridges are not up yet."""
    found: list[dict[str, str]] = json.loads(_ip("-4", "-json", "route", "show") or "[]")
    return found


def _ip(*arguments: str) -> str:
    try:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=IP_SECONDS, check=False)
    except FileNotFoundError:
        raise VimError("There is no ip command.", VimFault.PERMANENT, cure="apt-get install iproute2") from None
    except subprocess.TimeoutExpired:
        raise VimError(f"ip did not end within {IP_SECONDS:.0f} s.", VimFault.TEMPORARY) from None
    if done.returncode and "No such process" not in done.stderr:
        raise VimError(f"ip {' '.join(arguments[:2])} failed: {done.stderr.strip()}.", VimFault.PERMANENT,
                       cure="routes need root: slipway sandbox check")  # fmt: skip
    return done.stdout
