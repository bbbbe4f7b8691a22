"""Every action of a registry's plans, by name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.liveness import Waiting
from slipway.model.action import Action, StepContext
from slipway.model.machine import Outcome
from slipway.registry.arguments import InstallRegistry, LoadArchive, MountVolume, OnRegistry, ServeImages
from slipway.registry.steps import install, load, serve

NAMES: dict[type[Any], str] = {
    InstallRegistry: "registry.install",
    MountVolume: "registry.volume",
    ServeImages: "registry.serve",
    LoadArchive: "registry.load",
}
StepFunction = Callable[[Dependencies, Any, StepContext], Coroutine[Any, Any, Outcome]]


def registry_actions(deps: Dependencies) -> tuple[Action[Any], ...]:
    def action(kind: type[Any], run: StepFunction, seconds: float) -> Action[Any]:
        return Action(action_name(kind), kind, partial(_run_while_alive, deps, run), timeout=seconds)

    return (
        action(InstallRegistry, install.install_registry, 3600.0),
        action(MountVolume, serve.mount_volume, 900.0),
        action(ServeImages, serve.serve_images, 600.0),
        action(LoadArchive, load.load_archive, 7200.0),
    )


def action_name(kind: type[Any]) -> str:
    return NAMES[kind]


async def _run_while_alive(deps: Dependencies, function: StepFunction, args: OnRegistry, ctx: StepContext) -> Outcome:
    """No step waits for a machine that is dead."""
    await deps.liveness.wait_for_boot(args.node, ctx)
    return await deps.liveness.run_while_alive(function(deps, args, ctx), Waiting(ctx, (args.node,)))
