"""One step's work on a cluster: the API, whose objects they are, and errors as the VIM contract has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from slipway.kube.api import Api
from slipway.kube.errors import DENIED, KubeError, is_admission
from slipway.kube.interface import ObjectRef
from slipway.kube.ownership import Owner
from slipway.kube.readiness import Rule
from slipway.model.action import StepContext
from slipway.model.errors import StepError, VimError, VimFault
from slipway.vim.kubernetes.arguments import Placed
from slipway.vim.kubernetes.manifests import Manifest, parsed, rules_in
from slipway.vim.kubernetes.object_plan import FileObjects, ObjectPlan

QUOTA = "exceeded quota"


@dataclass(frozen=True)
class Session:
    """`namespace`: for objects that have one, and neither their manifests nor the plan say which."""

    api: Api
    owner: Owner
    namespace: str
    ctx: StepContext

    async def manifests(self, files: tuple[FileObjects, ...]) -> list[tuple[ObjectPlan, Manifest]]:
        """What each plan is made from, read from the package."""
        found = []
        for file in files:
            content = await self.ctx.package_file(file.vnfd_id, file.path, file.digest)
            manifests, _ = await asyncio.to_thread(parsed, file.path, content)  # it may be large
            found += [(plan, manifests[plan.at]) for plan in file.objects]
        return found

    async def rules(self, files: tuple[FileObjects, ...]) -> tuple[Rule, ...]:
        rules = list[Rule]()
        for file in files:
            content = await self.ctx.package_file(file.vnfd_id, file.path, file.digest)
            rules += (await asyncio.to_thread(rules_in, file.path, content))[0]
        return tuple(rules)

    async def ref(self, one: ObjectPlan | Placed, override: str | None) -> ObjectRef:
        """Where it is; a kind that nobody serves is an error that names it."""
        resource = await self.api.discovery.resource(one.api_version, one.kind)
        if resource.namespaced:
            namespace = override or one.namespace or one.home or self.namespace
            return ObjectRef(one.api_version, one.kind, one.name, namespace)
        if one.namespace and not override:
            raise VimError(
                f"{one.kind} {one.name} has the namespace {one.namespace!r}, and objects of its kind have none.",
                VimFault.PERMANENT,
                cure="leave metadata.namespace out of the manifest.",
            )
        return ObjectRef(one.api_version, one.kind, one.name)


@contextmanager
def vim_errors(about: object = "") -> Iterator[None]:
    """KubeErrors as VimErrors. `about`: the object that was being worked on."""
    try:
        yield
    except KubeError as error:
        raise VimError(f"{about}: {error.detail}" if about else error.detail, fault_of(error)) from None


def fault_of(error: StepError) -> VimFault:
    status = error.status if isinstance(error, KubeError) else None
    if status == 403 and QUOTA in error.detail:
        return VimFault.QUOTA
    denied = DENIED.search(error.detail) or is_admission(status, error.detail)
    if status == 401 or (status == 403 and not error.temporary and not denied):
        return VimFault.AUTH
    return VimFault.TEMPORARY if error.temporary else VimFault.PERMANENT
