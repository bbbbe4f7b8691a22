"""The driver of Kubernetes VIMs: an instance is the objects of its package's manifests, of whatever kinds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.kube.credentials import Credentials
from slipway.kube.errors import KubeError, short
from slipway.model.action import Action, VimConnection
from slipway.model.errors import Unprocessable, VimError, VimFault
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.target import Change, VimResource, VnfTarget
from slipway.model.vim import KUBERNETES, VimInfo
from slipway.outgoing.guard import Guard
from slipway.vim import trust
from slipway.vim.kubernetes.account import account_of
from slipway.vim.kubernetes.actions import ObjectActions
from slipway.vim.kubernetes.cnf_parameters import cnf_parameters, refuse_parameters
from slipway.vim.kubernetes.drift import drift
from slipway.vim.kubernetes.helm.actions import ReleaseActions
from slipway.vim.kubernetes.helm.chart import chart_globs
from slipway.vim.kubernetes.helm.parameters import helm_parameters, refuse_charts, refuse_leaving_charts, uses_helm
from slipway.vim.kubernetes.helm.process import HelmProgram
from slipway.vim.kubernetes.helm.release_steps import is_made_of_releases, release_steps
from slipway.vim.kubernetes.helm.repository import refuse_repositories
from slipway.vim.kubernetes.inventory import find
from slipway.vim.kubernetes.object_steps import steps_of
from slipway.vim.kubernetes.oidc import IdTokens
from slipway.vim.kubernetes.refusals import (
    refuse_connectivity,
    refuse_dependencies,
    refuse_last_of_a_control_plane,
    refuse_machines,
)
from slipway.vim.kubernetes.session import fault_of, vim_errors

if TYPE_CHECKING:
    from slipway.kube.api import Api

LONGEST_NAMESPACE = 63
MOST_REGIONS = 1000  # namespaces that are kept with a VIM
ANONYMOUS = "system:anonymous"
UNKNOWN_VERSION = "of no known version"


class KubernetesVimDriver:
    vim_type = KUBERNETES

    def __init__(self, tokens: IdTokens | None = None, guard: Guard | None = None, helm: Path | None = None) -> None:
        """`helm`: the program for charts; else the one in PATH."""
        self._tokens = tokens or IdTokens(guard)
        self._guard = guard
        self._chart_guard = guard or Guard(loopback=True)
        self._helm = HelmProgram(helm)
        objects = ObjectActions(self.api)
        releases = ReleaseActions(objects.session, self.credentials, self._helm, self._chart_guard)
        self._actions = (*objects.all, *releases.all)

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._actions

    def validate(self, connection: VimConnection) -> None:
        account_of(connection)

    def namespace(self, connection: VimConnection) -> str:
        return account_of(connection).namespace

    async def check(self, connection: VimConnection) -> str:
        return (await self.inspect(connection)).detail

    async def inspect(self, connection: VimConnection) -> VimInfo:
        account = account_of(connection)
        if account.oidc:
            await self._tokens.log_in(account.oidc, trust.context(connection.interface_info))
        try:
            async with self.api(connection) as api:
                version = await _version(api)
                nodes = await _names(api, "nodes")
                namespaces = await _names(api, "namespaces")
        except KubeError as error:
            raise VimError(error.detail, fault_of(error)) from None
        found = f"Kubernetes {version}: {_counted(nodes, 'node')}, {_counted(namespaces, 'namespace')}."
        if namespaces is not None and account.namespace not in namespaces:
            found += f" There is no namespace {account.namespace} yet."
        return VimInfo(found, _regions(namespaces or []) or (account.namespace,))

    def api(self, connection: VimConnection) -> Api:
        """The cluster's API, to be entered; a token that ends is renewed while it is used."""
        from slipway.kube.api import Api

        account = account_of(connection)
        token: Callable[[], Awaitable[str]] | None = None
        if oidc := account.oidc:
            tls = trust.context(connection.interface_info)

            async def token() -> str:
                return await self._tokens.get(oidc, tls)

        return Api(account.credentials, guard=self._guard, token=token)

    async def credentials(self, connection: VimConnection) -> Credentials:
        """For a program that is no part of Slipway: with the token of the moment."""
        account = account_of(connection)
        if account.oidc is None:
            return account.credentials
        token = await self._tokens.get(account.oidc, trust.context(connection.interface_info))
        return replace(account.credentials, token=token)

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found) -> Found:
        if not inventory.objects:
            return Found()
        with vim_errors():
            async with self.api(connection) as api:
                return await find(api, instance_id, inventory)

    async def drift(self, connection: VimConnection, instance_id: str, inventory: Found) -> tuple[str, ...]:
        with vim_errors():
            async with self.api(connection) as api:
                return await drift(api, instance_id, inventory)

    def refuse(self, change: Change) -> None:
        if change.retains_data:
            raise Unprocessable(
                "additionalParams.retain_data: a CNF's claims go with it, and what becomes of their volumes is said by "
                "persistentVolumeReclaimPolicy; leave it out."
            )
        if change.after is None:
            return
        refuse_machines(change.after)
        refuse_dependencies(change.after)
        if uses_helm(change.after):
            refuse_charts(change)
            refuse_repositories(helm_parameters(change.after), self._chart_guard)
            self._helm.refuse_if_missing()
        else:
            refuse_leaving_charts(change)
            refuse_parameters(change)
        refuse_connectivity(change)
        refuse_last_of_a_control_plane(change)

    def package_files(self, target: VnfTarget) -> tuple[str, ...]:
        if uses_helm(target):
            paths = [chart.path for chart in helm_parameters(target).charts if chart.path]
            rules = target.flavour.manifests  # beside charts they are for readiness rules
            return (*(glob for path in paths for glob in chart_globs(path)), *rules)
        return cnf_parameters(target).files

    def resources(self, change: Change) -> tuple[VimResource, ...]:
        """Pods come and go by themselves: an NFVO is not asked for each."""
        return ()

    def steps(self, change: Change, found: Found) -> Plan:
        return release_steps(change, found) if is_made_of_releases(change, found) else steps_of(change, found)


async def _version(api: Api) -> str:
    """Not every API server tells it: that of Cluster API's in-memory provider does not."""
    try:
        return short(str((await api.get("/version")).get("gitVersion", UNKNOWN_VERSION)))
    except KubeError as error:
        if error.status != 404:
            raise
        return UNKNOWN_VERSION


async def _names(api: Api, what: str) -> list[str] | None:
    """None when this user may not see them: one who works in a single namespace need not."""
    try:
        names = await api.names(f"/api/v1/{what}")
    except KubeError as error:
        if error.status != 403:
            raise
        if ANONYMOUS in error.detail:
            raise VimError(
                f"{error.detail} The cluster does not know these credentials.",
                VimFault.AUTH,
                cure="give credentials that it knows; Kubernetes itself has no passwords any more, a token is best.",
            ) from None
        return None
    return [short(name) for name in names]


def _regions(namespaces: list[str]) -> tuple[str, ...]:
    """Stored with the VIM, so no more than a real cluster would have: a namespace is a DNS label."""
    return tuple(name for name in namespaces if len(name) <= LONGEST_NAMESPACE)[:MOST_REGIONS]


def _counted(names: list[str] | None, what: str) -> str:
    from slipway.kube.api import MOST_NAMES

    if names is None:
        return f"its {what}s are not for this user to see"
    more = " or more" if len(names) >= MOST_NAMES else ""
    return f"{len(names)}{more} {what}{'' if len(names) == 1 else 's'}"
