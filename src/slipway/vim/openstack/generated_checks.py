"""Whether a HOT can be generated from the VNFD: what no template, or not Nova without an NFVO, can do is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from slipway.model.descriptor import Flavour, PlacementRule, Vdu
from slipway.model.errors import Unprocessable
from slipway.model.target import Change, VnfTarget

HOST_SCOPE = "nfvi_node"  # hosts are Nova's choice; zones are that of an NFVO, who is told of all rules
ZONE_SCOPES, SITE_SCOPE = ("zone", "zone_group"), "nfvi_pop"
LONGEST_METADATA = 255  # characters of a key or a value, in Nova


def refuse_generated(change: Change) -> None:
    """Unprocessable when no HOT can be made for what the change leads to, or none that leads there."""
    if change.after is None:
        return
    target, flavour = change.after, change.after.flavour
    _refuse_names(flavour)
    _refuse_two_groups(flavour)
    for vdu in flavour.vdus.values():
        _refuse_vdu(vdu, flavour)
        if not change.grant_follows:
            image = target.images.get(vdu.name) or (vdu.image.name if vdu.image else None)
            refuse_unbootable(vdu.name, image, target.flavours.get(vdu.name) or vdu.flavour, flavour)
            _refuse_two_roots(vdu, image)
    _refuse_unconnected(target)
    if not change.grant_follows:
        _refuse_unplaced(target, {*target.zones, *(one.id for one in change.inventory.machines if one.zone)})
    if change.before is not None:
        _refuse_other_vnics(change.before.flavour, flavour)


def boot_storages(flavour: Flavour, vdu: str, image: str | None) -> tuple[str, ...]:
    """The storages that a machine without an image boots from, the first one first.

    Those of the VNFD's boot order; if it has none, the first storage that has an image.
    """
    if image:
        return ()
    described = flavour.vdus[vdu]
    bootable = (name for name in described.storages if _is_bootable(flavour, name))
    return described.boot_order or tuple(bootable)[:1]


def rules_of_hosts(flavour: Flavour) -> Iterator[PlacementRule]:
    for rule in flavour.placement:
        if rule.scope == HOST_SCOPE and any(name in flavour.vdus for name in rule.targets):
            yield rule


def refuse_unbootable(vdu: str, image: str | None, size: str | None, flavour: Flavour) -> None:
    if not size:
        raise Unprocessable(
            f"VDU {vdu}: it names no Nova flavor, and none is chosen by CPUs and memory; name one by "
            "requested_additional_capabilities in the VNFD, let a grant choose one, or bring a HOT in BaseHOT."
        )
    if not image and not boot_storages(flavour, vdu, image):
        raise Unprocessable(
            f"VDU {vdu}: neither it nor one of its block storages has an image to boot from; give it sw_image_data in "
            "the VNFD, or let a grant choose an image."
        )


def _is_bootable(flavour: Flavour, storage: str) -> bool:
    described = flavour.storages[storage]
    return described.kind == "block" and described.image is not None


def _refuse_vdu(vdu: Vdu, flavour: Flavour) -> None:
    if vdu.container:
        raise Unprocessable(f"VDU {vdu.name}: it is a container, and OpenStack runs machines; choose another VIM.")
    for name in vdu.storages:
        if (kind := flavour.storages[name].kind) != "block":
            raise Unprocessable(
                f"VDU {vdu.name}: its storage {name} is of the kind {kind}, and only block storages become "
                "volumes; leave it out of the VNFD, or make it a Vdu.VirtualBlockStorage."
            )
    for key, value in vdu.metadata.items():
        if not key or max(len(key), len(value)) > LONGEST_METADATA:
            raise Unprocessable(
                f"VDU {vdu.name}: kvp_data {key[:60]!r} is more than the {LONGEST_METADATA} characters that Nova keeps "
                "of a key and of a value; put it into the content of its boot data."
            )


def _refuse_two_roots(vdu: Vdu, image: str | None) -> None:
    if image and vdu.boot_order:
        raise Unprocessable(
            f"VDU {vdu.name}: it boots from its own image, and boot_order says {', '.join(vdu.boot_order)}; leave out "
            "boot_order, or the VDU's sw_image_data."
        )


def _refuse_names(flavour: Flavour) -> None:
    """Resources are named after these; Heat allows no '/' in names, and ':' stands between their parts."""
    kinds: dict[str, Iterable[str]] = {
        "VDU": flavour.vdus,
        "connection point": flavour.connection_points,
        "storage": flavour.storages,
        "virtual link": flavour.virtual_links,
        "placement rule": [rule.name for rule in rules_of_hosts(flavour)],
    }
    for kind, names in kinds.items():
        for name in names:
            if ":" in name or "/" in name:
                raise Unprocessable(f"The {kind} {name!r} has a ':' or '/' in its name; rename it in the VNFD.")


def _refuse_two_groups(flavour: Flavour) -> None:
    for vdu in flavour.vdus:
        rules = [rule.name for rule in rules_of_hosts(flavour) if vdu in rule.targets]
        if len(rules) > 1:
            raise Unprocessable(
                f"VDU {vdu}: the placement rules {', '.join(rules)} are for it, and a server can be in one group only; "
                "keep one of them in the VNFD, or bring a HOT in BaseHOT."
            )


def _refuse_unconnected(target: VnfTarget) -> None:
    outside = {cp.cpd_id for link in target.links for cp in link.ext_cps}
    used: dict[str, Vdu] = {name: vdu for name, vdu in target.flavour.vdus.items() if target.counts.get(name)}
    for cp in target.flavour.connection_points.values():
        if cp.vdu in used and cp.name not in outside and cp.virtual_link not in target.flavour.virtual_links:
            raise Unprocessable(
                f"extVirtualLinks: the connection point {cp.name} of VDU {cp.vdu} has no network; name one for it."
            )


def _refuse_unplaced(target: VnfTarget, zoned: Collection[str]) -> None:
    """`zoned`: ids of VNFCs that have a zone: an NFVO, who knows the rules, has chosen it."""
    for rule in target.flavour.placement:
        members = [one for one in target.members if one.vdu in rule.targets]
        if rule.scope == HOST_SCOPE or len(members) < 2 or (rule.scope == SITE_SCOPE and not rule.apart):
            continue
        if rule.scope not in ZONE_SCOPES or any(one.id not in zoned for one in members):
            words = "apart" if rule.apart else "together"
            raise Unprocessable(
                f"The placement rule {rule.name} keeps VNFCs of {', '.join(sorted({one.vdu for one in members}))} "
                f"{words} by {rule.scope}, and no NFVO has chosen zones for them; let one grant zones, let the rule's "
                f"scope be {HOST_SCOPE}, or bring a HOT in BaseHOT."
            )


def _refuse_other_vnics(before: Flavour, after: Flavour) -> None:
    """A port outlives its server, and Neutron changes no port that is in use."""
    for name, cp in after.connection_points.items():
        was = before.connection_points.get(name)
        if was is not None and was.vdu == cp.vdu and was.vnic_type != cp.vnic_type:
            raise Unprocessable(
                f"The connection point {name} has another vnic_type ({cp.vnic_type}) than before ({was.vnic_type}), "
                "and ports that are there stay; give the connection point another name in the VNFD."
            )
