"""The driver of OpenStack VIMs: who may log in, and what is there."""

from __future__ import annotations

from typing import Any

from slipway.model.action import Action, Connection
from slipway.model.errors import Unprocessable, VimError, VimFault
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.target import Change, Resource
from slipway.model.vim import OPENSTACK, Seen
from slipway.outside.guard import Guard
from slipway.vim import trust
from slipway.vim.openstack.account import Account, account_of
from slipway.vim.openstack.keystone import Token, log_in

NEEDED = ("compute", "network", "image", "orchestration")  # what VNFs will be made of
NAMES = {"compute": "Nova", "network": "Neutron", "image": "Glance", "orchestration": "Heat"}

MOST_REGIONS = 100  # that are named, and kept with a VIM


class OpenStackDriver:
    """It can be logged in to; it holds nothing of a VNF yet."""

    vim_type = OPENSTACK
    actions: tuple[Action[Any], ...] = ()

    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard

    def validate(self, connection: Connection) -> None:
        account_of(connection)

    async def check(self, connection: Connection) -> str:
        return (await self.look(connection)).detail

    async def look(self, connection: Connection) -> Seen:
        account = account_of(connection)
        token = await log_in(account, trust.context(connection.interface_info), self._guard)
        return _seen(account, token)

    async def find(self, connection: Connection, instance_id: str, inventory: Found) -> Found:
        return Found()

    def refuse(self, change: Change) -> None:
        if change.after is not None:
            raise Unprocessable("Slipway does not make machines on OpenStack yet; choose another VIM.")

    def resources(self, change: Change) -> tuple[Resource, ...]:
        return ()

    def steps(self, change: Change, found: Found) -> Plan:
        self.refuse(change)
        return Plan()


def _seen(account: Account, token: Token) -> Seen:
    regions = token.services(account.interface)
    if account.region is not None and account.region not in regions:
        raise VimError(
            f"The catalog of Keystone at {account.url} has no region {account.region!r}.",
            VimFault.PERMANENT,
            cure=f"correct accessInfo.region; possible are: {', '.join(list(regions)[:10]) or 'none'}.",
        )
    shown = [account.region] if account.region else list(regions)[:MOST_REGIONS]
    places = "; ".join(f"region {region} has {', '.join(regions[region])}{_lacks(regions[region])}" for region in shown)
    choose = " Choose one by accessInfo.region." if len(shown) > 1 else ""
    where = f" in project {account.project}" if account.project else ""
    found = places or f"its catalog has no {account.interface} endpoint"
    return Seen(f"Keystone v3 at {account.url}, as {account.who}{where}: {found}.{choose}", tuple(shown))


def _lacks(services: tuple[str, ...]) -> str:
    missing = [f"{kind} ({NAMES[kind]})" for kind in NEEDED if kind not in services]
    return f", but no {', no '.join(missing)}, which VNFs need" if missing else ""
