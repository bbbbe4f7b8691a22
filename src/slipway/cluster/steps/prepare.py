"""A machine becomes one that kubeadm can work on: kernel, containerd, registries, proxy, programs, images."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from slipway.cluster.containerd_config import Login, containerd_toml
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.arguments import Prepare
from slipway.cluster.steps.facts import kubernetes_version
from slipway.cluster.steps.machine import install, run, run_named
from slipway.cluster.steps.proxy import proxy_variables
from slipway.cluster.steps.registries import logins, registry_files
from slipway.cluster.steps.sources import import_images, provided
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
    facts = await provided(world, args, hands, ctx)
    chosen = kubernetes_version(facts, args.site, args.node)
    if facts.containerd is None:
        cure = "use an image that has it, or name it in source.files."
        raise StepError(f"{args.node.slot} has no containerd.", cure=cure)
    known = await logins(args.setup, ctx)
    files = {
        "/etc/modules-load.d/slipway-kubernetes.conf": "overlay\nbr_netfilter\n",
        "/etc/sysctl.d/90-slipway-kubernetes.conf": SYSCTLS,
        **await registry_files(world, args.setup, ctx),
    }
    changed = await install(hands, files)
    configuration = {CONTAINERD: _containerd(chosen, args.site, facts.containerd, known)}
    changed += await install(hands, configuration, mode=0o600 if known else 0o644)
    changed += await _install_proxy(world, args, ctx)
    restart = any(path == CONTAINERD or "containerd.service.d" in path for path in changed)
    await run(hands, "prepare", str(chosen) if facts.versions else "", "yes" if restart else "no")
    await run_named(hands, "import_images", *archives(args.node), limit=IMPORT_SECONDS)
    await import_images(hands, args.setup)
    return await introduced(world, args.node, ctx)


async def introduced(world: World, node: Node, ctx: StepContext) -> Outcome:
    """The host key of the first contact goes into the record, so that every later contact is held to it."""
    machine = await ctx.machine(node.machine)
    if machine.host_key is not None:
        return Outcome()
    key = await world.reach.host_key(node, ctx)
    return Outcome(machines=(replace(machine, host_key=key),)) if key else Outcome()


def _containerd(chosen: Version, site: Site, containerd: str, known: Mapping[str, Login]) -> str:
    newer = containerd.removeprefix("v").startswith("2.")
    return containerd_toml(chosen.needs.pause, site.image_repository, config_version=3 if newer else 2, logins=known)


def archives(node: Node) -> tuple[str, ...]:
    return ("node", "master") if node.master else ("node",)


async def _install_proxy(world: World, args: Prepare, ctx: StepContext) -> list[str]:
    """For containerd, which pulls the images. It may hold a password, so only root reads it."""
    variables = await proxy_variables(args.setup, args.site, ctx)
    if not variables:
        return []
    unit = "[Service]\n" + "".join(f'Environment="{name}={_escaped(value)}"\n' for name, value in variables.items())
    hands = await world.reach.hands(args.node, ctx)
    return await install(hands, {"/etc/systemd/system/containerd.service.d/slipway-proxy.conf": unit}, mode=0o600)


def _escaped(value: str) -> str:
    """As systemd reads a quoted word: % begins a specifier, a backslash an escape."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
