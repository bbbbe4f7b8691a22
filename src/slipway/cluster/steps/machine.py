"""What steps do on one machine: run our fixed scripts, install files, ask for its facts and addresses."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.cluster.schema import Refusal
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.dependencies import RemoteHost
from slipway.cluster.versions import Version, version
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.remote.output import Result
from slipway.remote.quoting import run_script

_PASSING = re.compile(
    "Client.Timeout exceeded|i/o timeout|connection refused|TLS handshake timeout|context deadline exceeded"
    "|etcdserver: (leader changed|request timed out)"
    r"|\[ERROR CreateJob\]: Job .* did not complete in"  # the health check before an upgrade, which has 15 s for a pod
    '|is forbidden: User "system:node:'  # by an API server that has just started, and does not know its nodes yet
)
SCRIPTS = Path(__file__).parent.parent / "scripts"


async def run(
    host: RemoteHost,
    name: str,
    *arguments: str,
    stdin: bytes | None = None,
    limit: float = 120.0,
    folder: Path = SCRIPTS,
) -> Result:
    """One of our scripts, as root."""
    command, description = run_script(name, *arguments, folder=folder), name.replace("_", " ")
    return await host.run(command, sudo=True, stdin=stdin, limit=limit, description=description)


async def run_job(
    host: RemoteHost, name: str, *arguments: str, limit: float, job: str | None = None, folder: Path = SCRIPTS
) -> Result:
    """A long one, which goes on without us and is found again: by the script's name, or by another one."""
    command, description = run_script(name, *arguments, folder=folder), name.replace("_", " ")
    return await host.run_job(job or name.replace("_", "-"), command, sudo=True, limit=limit, description=description)


def temporary_if_api_error(error: StepError) -> StepError:
    """What kubeadm says when the API did not answer for a moment is worth another try; all else is for a person."""
    return StepError(error.detail, temporary=True) if _PASSING.search(error.detail) else error


def line(name: str, *arguments: str) -> list[str]:
    return run_script(name, *arguments, folder=SCRIPTS)


async def install(host: RemoteHost, files: Mapping[str, str | bytes], *, mode: int = 0o644) -> list[str]:
    """Files of root, all in one go; the paths of those that are new or have changed."""
    printed = await run(host, "install_files", stdin=_archive(files, mode))
    return printed.text.splitlines()


def _archive(files: Mapping[str, str | bytes], mode: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in files.items():
            written = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(written), mode
            tar.addfile(entry, io.BytesIO(written))
    return packed.getvalue()


async def address_of(node: Node, ctx: StepContext, point: str | None = None) -> str:
    """Where the machine is reached: at the connection point of the cluster's traffic, another one, or a floating IP."""
    machine = await ctx.machine(node.machine)
    wanted = point or node.nic
    for port in machine.ports:
        if port.name == wanted and port.address:
            return port.address
        if wanted in port.floating:
            return port.floating[wanted]
    floating = sorted(name for port in machine.ports for name in port.floating)
    raise StepError(
        f"{node.slot} has no address at the connection point {wanted}, nor a floating IP of that name; it has the "
        f"floating IPs: {', '.join(floating) or 'none'}.",
        cure="name a connection point of its VDU in ssh_cp_name and nic_cp_name; ssh_cp_name may also name a floating "
        "IP that the template gives one of its ports.",
    )


@dataclass(frozen=True)
class Facts:
    """`versions` can be chosen from; `interface` carries the cluster's traffic; `missing` are the system's programs."""

    machine: str | None = None
    kubeadm: str | None = None
    containerd: str | None = None
    interface: str | None = None
    prefix: int | None = None
    versions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


async def facts_of(host: RemoteHost, address: str) -> Facts:
    printed = (await run(host, "facts", address)).text
    words = [line.split() for line in printed.splitlines() if line.strip()]
    one = {name: rest for name, *rest in words if rest}
    interface = one.get("interface", [])
    return Facts(
        machine=one.get("machine", [None])[0],
        kubeadm=one.get("kubeadm", [None])[0],
        containerd=one.get("containerd", [None])[0],
        interface=interface[0] if interface else None,
        prefix=int(interface[1]) if len(interface) > 1 else None,
        versions=tuple(rest[0] for name, *rest in words if name == "version" and rest),
        missing=tuple(rest[0] for name, *rest in words if name == "missing" and rest),
    )


def kubernetes_version(facts: Facts, cluster: ClusterSpec, node: Node) -> Version:
    """The version that the machine will have: the one asked for, or the one it has. StepError when neither can be."""
    if facts.kubeadm is None:
        raise StepError(
            f"{node.slot} has no kubeadm.",
            cure="use an image that has Kubernetes, or name a source of packages or files.",
        )
    if cluster.version is not None and cluster.version not in (*facts.versions, facts.kubeadm.removeprefix("v")):
        has = ", ".join(facts.versions) or facts.kubeadm.removeprefix("v")
        raise StepError(
            f"{node.slot} has Kubernetes {has}, and {cluster.version} is wanted.",
            cure="use an image that has it, name a source of packages or files, or another kubernetes_version.",
        )
    try:
        return version(cluster.version or facts.kubeadm)
    except Refusal as refusal:
        raise StepError(f"{node.slot}: {refusal.what}.", cure=f"{refusal.cure}.") from None
