"""What each operation on a CNF asks its API server, counted: for a test of the lab, and for `make bench`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from slipway.model.action import VimConnection
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest, ChangePackageRequest, ModifyRequest
from slipway.outgoing.guard import Guard
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.contract.life import FIRST, INSTANTIATE, NEXT, TERMINATE, heal, out
from tests.lab.kubernetes.small_cnf import Cnf
from tests.unit.vim.kubernetes_targets import PATH, config, together, workload

MODIFY = ModifyRequest(vnfd_id=NEXT, metadata={"configmap_secret_paths": [PATH]})
USES = "envFrom: [{configMapRef: {name: c0}}]"


async def calls_of_operations(connection: VimConnection, objects: int) -> dict[str, Counter[str]]:
    """Of a CNF of so many: ConfigMaps, one of which the pods use and other packages change, and a Deployment."""
    guard = CountingGuard(loopback=True)
    same = [config(f"c{at}") for at in range(1, objects - 1)]
    cnf = Cnf(connection, *(together(config("c0", value), *same, workload(more=USES)) for value in "12"))
    cnf.life.driver = KubernetesVimDriver(guard=guard)
    calls: dict[str, Counter[str]] = {}

    async def run(kind: OperationType, request: AnyRequest) -> None:
        await cnf.life.run(kind, request)
        calls[kind.value] = guard.taken()

    await run(OperationType.INSTANTIATE, INSTANTIATE)
    await run(OperationType.SCALE, out())
    await run(OperationType.HEAL, heal(cnf.life.vnfcs("web")[0]))
    await run(OperationType.MODIFY_INFO, MODIFY)
    await run(OperationType.CHANGE_VNFPKG, ChangePackageRequest(vnfd_id=FIRST))
    await run(OperationType.TERMINATE, TERMINATE)
    return calls


@dataclass(frozen=True)
class CountingGuard(Guard):
    counted: Counter[str] = field(default_factory=Counter)

    def transport(self, **options: Any) -> httpx.AsyncBaseTransport:
        return _Counting(super().transport(**options), self.counted)

    def taken(self) -> Counter[str]:
        """Since the last time."""
        found = Counter(self.counted)
        self.counted.clear()
        return found


class _Counting(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport, counted: Counter[str]) -> None:
        self.inner, self.counted = inner, counted

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.counted["WATCH" if "watch" in request.url.params else request.method] += 1
        return await self.inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self.inner.aclose()
