"""A machine becomes one that kubeadm can work on: kernel, containerd, proxy, programs, images."""

from __future__ import annotations

from msgspec.structs import replace

from slipway.cluster.containerd_config import CONTAINERD, containerd_toml
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.arguments import Prepare
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import install, kubernetes_version, run, run_job
from slipway.cluster.steps.setup import proxy_variables
from slipway.cluster.steps.sources import import_images, install_sources
from slipway.cluster.versions import Version
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

IMPORT_SECONDS = 900.0
SYSCTLS = "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n"


async def prepare(deps: Dependencies, args: Prepare, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    facts = await install_sources(deps, args, host, ctx)
    chosen = kubernetes_version(facts, args.cluster, args.node)
    if facts.containerd is None:
        cure = "use an image that has it, or name it in source.files."
        raise StepError(f"{args.node.slot} has no containerd.", cure=cure)
    files = {
        "/etc/modules-load.d/slipway-kubernetes.conf": "overlay\nbr_netfilter\n",
        "/etc/sysctl.d/90-slipway-kubernetes.conf": SYSCTLS,
    }
    changed = await install(host, files)
    changed += await install(host, {CONTAINERD: _containerd(chosen, args.cluster, facts.containerd)})
    changed += await _install_proxy(deps, args, ctx)
    restart = any(path == CONTAINERD or "containerd.service.d" in path for path in changed)
    await run(host, "prepare", str(chosen) if facts.versions else "", "yes" if restart else "no")
    await run_job(host, "import_images", *archives(args.node), limit=IMPORT_SECONDS)
    await import_images(host, args.setup)
    return await record_host_key(deps, args.node, ctx)


async def record_host_key(deps: Dependencies, node: Node, ctx: StepContext) -> Outcome:
    """The host key of the first contact goes into the record, so that every later contact is held to it."""
    machine = await ctx.machine(node.machine)
    if machine.host_key is not None:
        return Outcome()
    key = await deps.connector.host_key(node, ctx)
    return Outcome(machines=(replace(machine, host_key=key),)) if key else Outcome()


def _containerd(chosen: Version, cluster: ClusterSpec, containerd: str) -> str:
    newer = containerd.removeprefix("v").startswith("2.")
    return containerd_toml(chosen.needs.pause, cluster.image_repository, config_version=3 if newer else 2)


def archives(node: Node) -> tuple[str, ...]:
    return ("node", "master") if node.master else ("node",)


async def _install_proxy(deps: Dependencies, args: Prepare, ctx: StepContext) -> list[str]:
    """For containerd, which pulls the images. It may hold a password, so only root reads it."""
    variables = await proxy_variables(args.setup, args.cluster, ctx)
    if not variables:
        return []
    unit = "[Service]\n" + "".join(f'Environment="{name}={_escaped(value)}"\n' for name, value in variables.items())
    host = await deps.connector.host(args.node, ctx)
    return await install(host, {"/etc/systemd/system/containerd.service.d/slipway-proxy.conf": unit}, mode=0o600)


def _escaped(value: str) -> str:
    """As systemd reads a quoted word: % begins a specifier, a backslash an escape."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
