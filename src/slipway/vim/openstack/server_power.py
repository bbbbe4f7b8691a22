"""Servers that Nova itself is told to stop, start or remove, before Heat changes their stack."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from slipway.model.errors import VimError, VimFault
from slipway.vim.openstack.answers import ShownServer
from slipway.vim.openstack.cloud import NOVA, Cloud, for_each
from slipway.waiting import Backoff

GONE_TIMEOUT = 120.0  # seconds for Nova to remove a server


async def shut_down(cloud: Cloud, servers: Iterable[str], grace_seconds: int) -> set[str]:
    """Those that run get so long to stop in order; what does not is taken away all the same. Answers those that ran."""
    if not grace_seconds:
        return set()
    running = {id_ for id_ in servers if await _is_active(cloud, id_)}
    told = frozenset(running)
    await for_each(told, lambda id_: _act(cloud, id_, "os-stop"))
    backoff = Backoff(0.5, 5.0, timeout=grace_seconds)
    while running:
        running = {id_ for id_ in running if await _is_active(cloud, id_)}
        if running and not await backoff.pause():
            break
    return set(told)


async def start(cloud: Cloud, server: str) -> None:
    await _act(cloud, server, "os-start")


async def remove(cloud: Cloud, server: str) -> None:
    """And wait until it is gone."""
    await cloud.remove(NOVA, f"/servers/{server}")
    backoff = Backoff(0.5, 5.0, timeout=GONE_TIMEOUT)
    while await cloud.find(NOVA, f"/servers/{server}", ShownServer):
        if not await backoff.pause():
            raise VimError(
                f"Server {server} is still there {GONE_TIMEOUT:g} s after its removal.",
                VimFault.TEMPORARY,
                cure=f"see why Nova does not remove it (openstack server show {server}), then retry.",
            )


async def _act(cloud: Cloud, server: str, verb: str) -> None:
    with suppress(VimError):  # locked, or gone meanwhile
        await cloud.call(NOVA, "POST", f"/servers/{server}/action", json={verb: None})


async def _is_active(cloud: Cloud, server: str) -> bool:
    there = await cloud.find(NOVA, f"/servers/{server}", ShownServer)
    return there is not None and there.server.status == "ACTIVE"
