"""Whether a VNF is where a changed description of its VIM leads: what it has elsewhere would be left behind there.

Descriptions may change, as VIMs get other addresses and are registered anew. So the VIM is asked before a change is
accepted, and not told by its description.
"""

from __future__ import annotations

import asyncio

from slipway.lcm.record import inventory
from slipway.model.action import VimConnection
from slipway.model.errors import StepError
from slipway.model.instance import VnfInstance
from slipway.vim.drivers import Drivers

LOOK_SECONDS = 30.0  # that a VIM may take to say what it has, while a request waits


async def missing_there(drivers: Drivers, connection: VimConnection, vnf: VnfInstance) -> str | None:
    """Why the VNF is not known to be where the connection leads; None when it is there, or has nothing at all."""
    recorded = inventory(vnf.instantiated_vnf_info)
    if not recorded.own_ids:
        return None
    driver = drivers.for_type(connection.vim_type)
    driver.validate(connection)
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            found = await driver.find(connection, vnf.id, recorded)
    except TimeoutError:
        return f"the VIM there did not say within {LOOK_SECONDS:g} s what it has of VNF instance {vnf.id}."
    except StepError as error:
        return f"the VIM there can't be asked what it has of VNF instance {vnf.id}: {error.detail}"
    if recorded.own_ids.isdisjoint(found.own_ids):
        return f"the VIM there has nothing of VNF instance {vnf.id}, which would be left behind where it is."
    return None
