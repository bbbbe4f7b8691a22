"""A chart, and the life of a CNF that is made of it."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import VimError
from slipway.model.operation import OperationType
from slipway.model.requests import InstantiateRequest
from slipway.model.target import PackageFile
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.kubernetes.helm.releases import release_name
from tests.contract.life import FIRST, NEXT, ONE, Life
from tests.contract.plans import run_plan, undo_steps
from tests.unit.vim.helm_targets import PATH, flavour
from tests.unit.vim.kubernetes_targets import workload

ABOUT = "apiVersion: v2\nname: web\nversion: 1.0.0\nannotations: {slipway.io/replicas.web: replicas}\n"
NAMED = "{{ .Release.Name }}-web"
RELEASE = release_name("vnf", ONE)
RULES = "Files/readiness.yaml"


def chart_of(templates: str, **files: str) -> dict[str, bytes]:
    found = {"Chart.yaml": ABOUT, "values.yaml": "replicas: 1\n", "templates/all.yaml": templates, **files}
    return {name: text.encode() for name, text in found.items()}


def web(more: str = "") -> str:
    return workload(name=f'"{NAMED}"').replace("spec:", "spec:\n  replicas: {{ .Values.replicas }}", 1) + more


class Cnf:
    """`rules`: a file of the package that the VNFD names beside the chart."""

    def __init__(
        self, connection: VimConnection, driver: KubernetesVimDriver, files: dict[str, bytes], rules: str = ""
    ) -> None:
        def files_of(globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
            contents = {f"{PATH}/{name}": content for name, content in files.items()} if globs else {}
            contents |= {RULES: rules.encode()} if rules and RULES in globs else {}
            return {name: PackageFile(content=one, digest=sha256(one).hexdigest()) for name, one in contents.items()}

        of = flavour(manifests=(RULES,) if rules else ())
        self.life = Life(driver, connection, {FIRST: of, NEXT: of}, ONE, files_of=files_of)

    async def instantiate(self, **parameters: Any) -> None:
        await self.life.run(OperationType.INSTANTIATE, instantiation(parameters))

    async def refused(self, **parameters: Any) -> VimError:
        """The error that an instantiation ends with; what it made is taken back."""
        context = self.life.context()
        plan = await self.life.plan(OperationType.INSTANTIATE, instantiation(parameters))
        with pytest.raises(VimError) as raised:
            await run_plan(self.life.driver, plan, context)
        await undo_steps(self.life.driver, list(plan.steps), context)
        return raised.value


def instantiation(parameters: dict[str, Any]) -> InstantiateRequest:
    return InstantiateRequest(flavour_id="simple", additional_params=parameters)
