"""A machine becomes one that kubeadm can work on: kernel, containerd, registries, proxy, programs, images."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from slipway.cluster.containerd_config import containerd_toml, hosts_toml, registry_directory, registry_host
from slipway.cluster.networks import no_proxy
from slipway.cluster.reading import read
from slipway.cluster.registry_parameters import RegistryParameters
from slipway.cluster.site import Node, Site
from slipway.cluster.source_parameters import ProxyParameters
from slipway.cluster.steps.arguments import Prepare
from slipway.cluster.steps.facts import facts_of, kubernetes_version
from slipway.cluster.steps.machine import address_of, install, run, run_named
from slipway.cluster.steps.world import World
from slipway.cluster.versions import Version
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

CONTAINERD = "/etc/containerd/config.toml"
IMPORT_SECONDS = 900.0
SYSCTLS = "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n"


async def prepare(world: World, args: Prepare, ctx: StepContext) -> Outcome:
    hands = await world.reach.hands(args.node, ctx)
    address = await address_of(args.node, ctx)
    facts = await facts_of(hands, address)
    chosen = kubernetes_version(facts, args.site, args.node)
    if facts.containerd is None:
        raise StepError(f"{args.node.slot} has no containerd.", cure="use an image that has it.")
    files = {
        CONTAINERD: _containerd(chosen, args.site, facts.containerd),
        "/etc/modules-load.d/slipway-kubernetes.conf": "overlay\nbr_netfilter\n",
        "/etc/sysctl.d/90-slipway-kubernetes.conf": SYSCTLS,
        **await _registries(world, args.setup, ctx),
    }
    changed = await install(hands, files)
    changed += await _install_proxy(world, args, ctx)
    restart = any(path == CONTAINERD or "containerd.service.d" in path for path in changed)
    await run(hands, "prepare", str(chosen) if facts.versions else "", "yes" if restart else "no")
    await run_named(hands, "import_images", *_archives(args.node), limit=IMPORT_SECONDS)
    return await _introduced(world, args.node, ctx)


async def _introduced(world: World, node: Node, ctx: StepContext) -> Outcome:
    """The host key of the first contact goes into the record, so that every later contact is held to it."""
    machine = await ctx.machine(node.machine)
    if machine.host_key is not None:
        return Outcome()
    key = await world.reach.host_key(node, ctx)
    return Outcome(machines=(replace(machine, host_key=key),)) if key else Outcome()


def _containerd(chosen: Version, site: Site, containerd: str) -> str:
    newer = containerd.removeprefix("v").startswith("2.")
    return containerd_toml(chosen.needs.pause, site.image_repository, config_version=3 if newer else 2)


def _archives(node: Node) -> tuple[str, ...]:
    return ("node", "master") if node.master else ("node",)


async def _registries(world: World, setup: dict[str, Any], ctx: StepContext) -> dict[str, str | bytes]:
    """Where containerd finds each registry, its CA, and names that no DNS knows."""
    files: dict[str, str | bytes] = {}
    lines = []
    for given in setup.get("private_registry_connection_info", ()):
        registry = read(RegistryParameters, given, "private_registry_connection_info")
        files[f"{registry_directory(registry.server)}/hosts.toml"] = hosts_toml(registry_host(registry))
        if registry.certificate_path:
            certificate = await world.files.read(ctx.instance_id, registry.certificate_path)
            files[f"{registry_directory(registry.server)}/ca.crt"] = certificate
        if registry.hosts_string:
            lines.append(registry.hosts_string)
    if lines:
        files["/etc/slipway/hosts"] = "".join(f"{line}\n" for line in lines)
    return files


async def _install_proxy(world: World, args: Prepare, ctx: StepContext) -> list[str]:
    """For containerd, which pulls the images. It may hold a password, so only root reads it."""
    if "proxy" not in args.setup:
        return []
    proxy = read(ProxyParameters, await ctx.reveal(args.setup["proxy"]), "proxy")
    said = {"HTTP_PROXY": proxy.http_proxy, "HTTPS_PROXY": proxy.https_proxy}
    given = {name: secret.opened(str) for name, secret in said.items() if secret}
    if not given:
        return []
    masters = [await address_of(node, ctx) for node in args.site.masters]
    direct = no_proxy(args.site.networks, args.site.vip or masters[0], proxy.no_proxy)
    variables = {**given, "NO_PROXY": ",".join((*direct, *masters))}
    unit = "[Service]\n" + "".join(f'Environment="{name}={_escaped(value)}"\n' for name, value in variables.items())
    hands = await world.reach.hands(args.node, ctx)
    return await install(hands, {"/etc/systemd/system/containerd.service.d/slipway-proxy.conf": unit}, mode=0o600)


def _escaped(value: str) -> str:
    """As systemd reads a quoted word: % begins a specifier, a backslash an escape."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
