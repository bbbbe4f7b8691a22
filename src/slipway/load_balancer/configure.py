"""What is done on the balancer's machine: HAProxy from our template, or whatever the package's own script does.

Either way a change carries its revision, and the machine refuses one that is older than what it has seen: an operation
that was thought dead and comes back can't undo what others did meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from slipway.cluster.spec import Node
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.package_script import run_package_script
from slipway.load_balancer.haproxy import haproxy_config, marked_as, ports_of
from slipway.load_balancer.routes import API_FRONT_END, FrontEnd, Routes, Server
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.remote.quoting import run_script

Verb = Literal["install", "add", "remove", "reinstall"]  # what a script of a package is called for
SCRIPTS = Path(__file__).parent / "scripts"
LATER = "later"
INSTALL_SECONDS = 900.0
APPLY_SECONDS = 120.0
SCRIPT_SECONDS = 1200.0
CURES = {  # by what the machine said
    "No space left": "free some space on it, and retry.",
    "can't be written": "free some space on it, and retry.",
    "is in use by": "stop that program, or expose another port; then retry.",
    "neither apt-get nor dnf": "use an image that has haproxy and socat.",
    "Unable to locate package": "let the machine reach a package repository, or use an image with haproxy and socat.",
    "Could not resolve": "let the machine reach a package repository, or use an image with haproxy and socat.",
}


class RoutesChange(msgspec.Struct, frozen=True, kw_only=True):
    """All that the balancer does from now on, and of that what is new or gone."""

    verb: Verb
    routes: Routes
    servers: tuple[Server, ...] = ()
    front_ends: tuple[FrontEnd, ...] = ()


async def apply_template(host: RemoteHost, node: Node, change: RoutesChange, revision: int) -> None:
    """HAProxy is installed where it is missing. The machine checks the file, and keeps the old one if it is no good."""
    try:
        config = haproxy_config(change.routes)
    except ValueError as error:
        raise StepError(f"Load balancer {node.slot}: it can't be told its routes, for {error}.") from None
    ports = [str(port) for port in ports_of(config)]
    try:
        if change.verb in ("install", "reinstall"):
            command = _line("install_haproxy")
            await host.run_job(
                "install-haproxy", command, sudo=True, limit=INSTALL_SECONDS, description="install haproxy"
            )
            await host.remove_job("install-haproxy", sudo=True)  # a machine that lost it since gets it again
        printed = await host.run(
            _line("apply_haproxy", str(revision), marked_as(change.routes), *ports),
            sudo=True,
            stdin=config.encode(),
            limit=APPLY_SECONDS,
            description="configure haproxy",
        )
    except StepError as error:
        raise _explained(node, error) from None
    _refuse_later(printed.text, node)


async def run_script_of(
    deps: Dependencies, host: RemoteHost, node: Node, path: str, change: RoutesChange, revision: int, ctx: StepContext
) -> None:
    """The package's script, under a name made from the operation and what it is to do: found again after a crash."""
    options = script_options(change)
    job = f"load-balancer-{hashlib.sha256(' '.join((ctx.operation_id, *options)).encode()).hexdigest()[:16]}"
    try:
        printed = await host.run(_line("fence", str(revision)), sudo=True, description="begin a change")
        _refuse_later(printed.text, node)
        await run_package_script(deps, host, path, options, {}, ctx, job=job, limit=SCRIPT_SECONDS)
        await host.remove_job(job, sudo=True)  # the same once more is a run of its own
    except StepError as error:
        raise _explained(node, error) from None


def script_options(change: RoutesChange) -> list[str]:
    """docs/load-balancer.md has them. All values are names, addresses and ports: no blanks, no quotes."""
    routes = change.routes
    return [
        change.verb,
        *("--api-port", str(API_FRONT_END)),
        *("--masters", _servers(routes.masters)),
        *("--nodes", _servers(routes.servers)),
        *("--front-ends", _front_ends(routes.front_ends)),
        *("--changed-nodes", _servers(change.servers)),
        *("--changed-front-ends", _front_ends(change.front_ends)),
    ]


def _servers(servers: Iterable[Server]) -> str:
    return ",".join(f"{server.name}={server.address}" for server in servers)


def _front_ends(front_ends: Iterable[FrontEnd]) -> str:
    return ",".join(f"{one.namespace}/{one.service}={one.port}" for one in front_ends)


def _refuse_later(printed: str, node: Node) -> None:
    if printed.strip() == LATER:
        raise StepError(
            f"The load balancer {node.slot} has been changed by a later operation meanwhile.", temporary=True
        )


def _explained(node: Node, error: StepError) -> StepError:
    cure = next((cure for said, cure in CURES.items() if said in error.detail), None)
    return StepError(f"Load balancer {node.slot}: {error.detail}", temporary=error.temporary, cure=cure)


def _line(name: str, *arguments: str) -> list[str]:
    return run_script(name, *arguments, folder=SCRIPTS)
