"""Registries that the nodes pull from: where containerd finds each, its CA, names that no DNS knows, and the logins."""

from __future__ import annotations

from typing import Any

from slipway.cluster.containerd_config import Login, hosts_toml, registry_directory, registry_host
from slipway.cluster.reading import read
from slipway.cluster.registry_parameters import RegistryParameters
from slipway.cluster.steps.world import World
from slipway.model.action import StepContext

PARAMETER = "private_registry_connection_info"


def registries_of(setup: dict[str, Any]) -> list[RegistryParameters]:
    return [read(RegistryParameters, given, PARAMETER) for given in setup.get(PARAMETER, ())]


async def logins(setup: dict[str, Any], ctx: StepContext) -> dict[str, Login]:
    """By server, in clear: for containerd's configuration, and no longer than this step."""
    opened = registries_of({PARAMETER: await ctx.reveal(setup.get(PARAMETER, []))})
    return {
        one.server: Login(one.username, one.password.opened(str)) for one in opened if one.username and one.password
    }


async def registry_files(world: World, setup: dict[str, Any], ctx: StepContext) -> dict[str, str | bytes]:
    files: dict[str, str | bytes] = {}
    lines = []
    for registry in registries_of(setup):
        files[f"{registry_directory(registry.server)}/hosts.toml"] = hosts_toml(registry_host(registry))
        if registry.certificate_path:
            certificate = await world.files.read(ctx.instance_id, registry.certificate_path)
            files[f"{registry_directory(registry.server)}/ca.crt"] = certificate
        if registry.hosts_string:
            lines.append(registry.hosts_string)
    if lines:
        files["/etc/slipway/hosts"] = "".join(f"{line}\n" for line in lines)
    return files
