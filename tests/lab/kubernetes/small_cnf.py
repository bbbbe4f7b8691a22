"""A CNF of a few manifests on a real API server: one VDU, `web`, that scales from two pods to five."""

from __future__ import annotations

from hashlib import sha256

import pytest

from slipway.model.action import VimConnection
from slipway.model.descriptor import Aspect, Flavour, Vdu
from slipway.model.errors import VimError
from slipway.model.operation import OperationType
from slipway.model.target import PackageFile
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.contract.life import FIRST, INSTANTIATE, NEXT, ONE, Life
from tests.contract.plans import run_plan, undo_steps
from tests.unit.vim.kubernetes_targets import PATH


class Cnf:
    """`first` and `next` are what its two packages have."""

    def __init__(self, connection: VimConnection, first: str, next_: str = "", instance: str = ONE) -> None:
        texts = {FIRST: first, NEXT: next_ or first}

        def files_of(globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
            content = texts[vnfd_id].encode()
            return {glob: PackageFile(content=content, digest=sha256(content).hexdigest()) for glob in globs}

        web = Vdu(name="web", initial=2, maximum=5, container=True)
        flavour = Flavour(
            id="simple",
            vdus={"web": web},
            aspects={"workers": Aspect(name="workers", max_level=3, deltas={"web": (1,)})},
            manifests=(PATH,),
        )
        self.life = Life(
            KubernetesVimDriver(), connection, {FIRST: flavour, NEXT: flavour}, instance, files_of=files_of
        )

    async def instantiate(self) -> None:
        await self.life.run(OperationType.INSTANTIATE, INSTANTIATE)

    async def refused(self) -> VimError:
        """The error that an instantiation ends with; what it made is taken back."""
        context = self.life.context()
        plan = await self.life.plan(OperationType.INSTANTIATE, INSTANTIATE)
        with pytest.raises(VimError) as raised:
            await run_plan(self.life.driver, plan, context)
        await undo_steps(self.life.driver, list(plan.steps), context)
        return raised.value
