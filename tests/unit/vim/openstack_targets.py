"""VNFs to make stacks of: a flavour, and targets and changes of it as `lcm/` would give them."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from slipway.model.descriptor import Aspect, ConnectionPoint, Flavour, Storage, Vdu, VirtualLink
from slipway.model.instance import CpConfig, CpProtocolData, ExtVirtualLink, IpAddresses, IpOverEthernet, VnfExtCpData
from slipway.model.machine import Found, FoundMachine, Wanted
from slipway.model.package import SoftwareImage
from slipway.model.target import Change, PackageFile, VnfcMember, VnfTarget
from slipway.vim.machine_by_machine.wanted import wanted_of

INSTANCE = "11111111-2222-4333-8444-555555555555"
GIB = 1 << 30


def image(name: str) -> SoftwareImage:
    return SoftwareImage(id=name, name=name)


def flavour(**changes: Any) -> Flavour:
    """One `base`, which is connected from outside; and two `work`, which scale, on `net`, with a volume each."""
    base = Vdu(name="base", initial=1, image=image("debian"), flavour="m1.small")
    work = Vdu(name="work", initial=2, maximum=300, image=image("debian"), flavour="m1.large", storages=("data",))
    parts: dict[str, Any] = {
        "vdus": {"base": base, "work": work},
        "connection_points": {
            "base_cp": ConnectionPoint(name="base_cp", vdu="base"),
            "work_cp": ConnectionPoint(name="work_cp", vdu="work", virtual_link="net"),
        },
        "virtual_links": {"net": VirtualLink(name="net", cidr="10.10.0.0/24")},
        "storages": {"data": Storage(name="data", size_bytes=GIB + 1)},
        "aspects": {"workers": Aspect(name="workers", max_level=298, deltas={"work": (1,)})},
    }
    return Flavour(id="simple", **{**parts, **changes})


def link(cp: str, *addresses: IpAddresses, network: str = "outside", mac: str | None = None) -> ExtVirtualLink:
    """A network outside for a connection point. Each member in turn gets one of the addresses."""
    configs = {
        str(number): CpConfig(
            cp_protocol_data=(
                CpProtocolData(
                    layer_protocol="IP_OVER_ETHERNET",
                    ip_over_ethernet=IpOverEthernet(mac_address=mac, ip_addresses=(asked,)),
                ),
            )
        )
        for number, asked in enumerate(addresses)
    }
    return ExtVirtualLink(id=network, resource_id=network, ext_cps=(VnfExtCpData(cpd_id=cp, cp_config=configs),))


def fixed(address: str, subnet: str | None = None) -> IpAddresses:
    return IpAddresses(type="IPV4", fixed_addresses=(address,), subnet_id=subnet)


def target(made_of: Flavour | None = None, files: Mapping[str, str] | None = None, **changes: Any) -> VnfTarget:
    """At scale level 0, unless `members` says something else, as "base-0" or "work-1"."""
    made_of = made_of or flavour()
    names = changes.pop("members", None) or [
        f"{vdu}-{slot}" for vdu in made_of.vdus for slot in range(made_of.members(vdu, {}))
    ]
    members = tuple(member(name) for name in names)
    parts: dict[str, Any] = {
        "scale": {},
        "counts": {vdu: sum(one.vdu == vdu for one in members) for vdu in made_of.vdus},
        "members": members,
        "links": (link("base_cp"),),
        "files": {path: package_file(text) for path, text in (files or {}).items()},
    }
    return VnfTarget(vnfd_id="vnfd", flavour=made_of, **{**parts, **changes})


def member(name: str) -> VnfcMember:
    vdu, _, slot = name.rpartition("-")
    return VnfcMember(id=f"id of {name}", vdu=vdu, slot=int(slot))


def package_file(text: str) -> PackageFile:
    return PackageFile(content=text.encode(), digest=sha256(text.encode()).hexdigest())


def change_to(after: VnfTarget, *standing: FoundMachine) -> Change:
    return Change(instance_id=INSTANCE, version=1, inventory=Found(machines=standing), after=after)


def wanted(after: VnfTarget) -> Wanted:
    return wanted_of(change_to(after))
