"""What a machine's setup says beyond its source: the proxy, and which registries there are.

A proxy may hold a password: on a node only root reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.cluster.networks import no_proxy
from slipway.cluster.parameters import REGISTRIES, RegistryParameters
from slipway.cluster.schema import read
from slipway.cluster.source_parameters import ProxyParameters
from slipway.cluster.spec import ClusterSpec
from slipway.cluster.steps.dependencies import RemoteHost
from slipway.cluster.steps.machine import address_of, install
from slipway.model.action import StepContext
from slipway.remote.quoting import quoted

ENVIRONMENT = "/etc/slipway/environment"  # what our scripts read before they fetch anything


async def proxy_variables(setup: dict[str, Any], cluster: ClusterSpec, ctx: StepContext) -> dict[str, str]:
    """HTTP_PROXY, HTTPS_PROXY and NO_PROXY as far as they were asked for; nothing without a proxy."""
    if "proxy" not in setup:
        return {}
    proxy = read(ProxyParameters, await ctx.decrypt_secrets(setup["proxy"]), "proxy")
    said = {"HTTP_PROXY": proxy.http_proxy, "HTTPS_PROXY": proxy.https_proxy}
    given = {name: secret.opened(str) for name, secret in said.items() if secret}
    if not given:
        return {}
    masters = [await address_of(node, ctx) for node in cluster.masters]
    direct = no_proxy(cluster.networks, cluster.vip or masters[0], proxy.no_proxy)
    return {**given, "NO_PROXY": ",".join((*direct, *masters))}


async def write_proxy_environment(host: RemoteHost, variables: Mapping[str, str]) -> None:
    """For our own scripts on the node. Written even if empty: an older one would still count."""
    await install(host, {ENVIRONMENT: exports(variables)}, mode=0o600)


def exports(variables: Mapping[str, str]) -> str:
    """For a shell to read. Some programs know the names in lower case only."""
    both = {**variables, **{name.lower(): value for name, value in variables.items()}}
    return "".join(f"export {name}={quoted(value)}\n" for name, value in both.items())


def registries_of(setup: dict[str, Any]) -> list[RegistryParameters]:
    return [read(RegistryParameters, given, REGISTRIES) for given in setup.get(REGISTRIES, ())]
