"""Helm on a master: its archive or program, checked by its digest, or the package's own script. It must answer then."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.cluster.schema import read
from slipway.cluster.source_parameters import HelmInstallation
from slipway.cluster.steps.arguments import Helm
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import run
from slipway.cluster.steps.package_script import run_package_script
from slipway.cluster.steps.setup import proxy_variables, write_proxy_environment
from slipway.cluster.steps.sources import install_programs
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

SCRIPT_SECONDS = 900.0


@dataclass(frozen=True)
class HelmFile:
    url: str | None
    path: str | None
    sha256: str
    name: str = "helm"


async def helm(deps: Dependencies, args: Helm, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    proxy = await proxy_variables(args.setup, args.cluster, ctx)
    wanted = None
    if args.path is not None:
        lower = {name.lower(): value for name, value in proxy.items()}
        await run_package_script(deps, host, args.path, [], lower, ctx, job="helm-script", limit=SCRIPT_SECONDS)
    else:
        given = read(HelmInstallation, args.given, "helm")
        wanted = given.version
        await write_proxy_environment(host, proxy)
        await install_programs(deps, host, [HelmFile(given.url, given.path, given.sha256 or "")], ctx)
    found = (await run(host, "helm_version")).text.strip()
    if wanted is not None and found.removeprefix("v") != wanted.removeprefix("v"):
        raise StepError(
            f"{args.node.slot} has Helm {found or '(which tells no version)'}, and {wanted} is wanted.",
            cure="name the archive of that version, or another helm.version.",
        )
    return Outcome()
