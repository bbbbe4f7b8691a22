"""What the catalog of a project holds, for whoever registers or checks a VIM: regions, services, what is missing."""

from __future__ import annotations

from typing import Any

from slipway.model.errors import VimError, VimFault
from slipway.model.vim import VimInfo
from slipway.outgoing.responses import server_message
from slipway.vim.openstack.account import OpenStackAccount

NEEDED = ("compute", "network", "image", "orchestration")  # what VNFs will be made of
NAMES = {"compute": "Nova", "network": "Neutron", "image": "Glance", "orchestration": "Heat"}
MOST_REGIONS = 100  # that are named, and kept with a VIM


def info_of(account: OpenStackAccount, catalog: object) -> VimInfo:
    """VimError when it lacks the account's region. `catalog` is Keystone's own."""
    regions = _services(catalog, account.interface)
    if account.region is not None and account.region not in regions:
        raise VimError(
            f"The catalog of Keystone at {account.url} has no region {account.region!r}.",
            VimFault.PERMANENT,
            cure=f"accessInfo.region must be one of: {', '.join(list(regions)[:10]) or 'none'}.",
        )
    shown = [account.region] if account.region else list(regions)[:MOST_REGIONS]
    paths = "; ".join(f"region {region} has {', '.join(regions[region])}{_lacks(regions[region])}" for region in shown)
    choose = " Choose one by accessInfo.region." if len(shown) > 1 else ""
    where = f" in project {account.project}" if account.project else ""
    found = paths or f"its catalog has no {account.interface} endpoint"
    return VimInfo(f"Keystone v3 at {account.url}, as {account.who}{where}: {found}.{choose}", tuple(shown))


def refuse_several_regions(account: OpenStackAccount, catalog: object) -> None:
    """VimError where a region must be named: openstacksdk would take the first of each service's endpoints."""
    if account.region is not None:
        return
    regions = [name for name, there in _services(catalog, account.interface).items() if not {*NEEDED}.isdisjoint(there)]
    if len(regions) > 1:
        raise VimError(
            f"The catalog of Keystone at {account.url} has several regions, and the VIM names none.",
            VimFault.PERMANENT,
            cure=f"let accessInfo.region be one of: {', '.join(regions[:10])}.",
        )


def _services(catalog: object, interface: str) -> dict[str, tuple[str, ...]]:
    """Regions, each with the types of the services that have an endpoint there."""
    found: dict[str, set[str]] = {}
    for service in _dicts(catalog):
        for endpoint in _dicts(service.get("endpoints")):
            region = endpoint.get("region_id") or endpoint.get("region")
            if endpoint.get("interface") == interface and isinstance(region, str):
                found.setdefault(region, set()).add(server_message(service.get("type")))
    return {server_message(region): tuple(sorted(found[region])) for region in sorted(found)}


def _lacks(services: tuple[str, ...]) -> str:
    missing = [f"{kind} ({NAMES[kind]})" for kind in NEEDED if kind not in services]
    return f", but no {', no '.join(missing)}, which VNFs need" if missing else ""


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
