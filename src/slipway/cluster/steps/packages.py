"""kubeadm, kubelet and kubectl as packages of a repository, at one version and held there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from slipway.cluster.source_parameters import NEEDED_FILES, SourceParameters
from slipway.cluster.steps.arguments import Fetch, Prepare
from slipway.cluster.steps.machine import install, run, run_named
from slipway.cluster.steps.world import Hands, World
from slipway.model.action import StepContext
from slipway.model.errors import StepError

SECONDS = 1500.0
LIST = "/etc/apt/sources.list.d/slipway-kubernetes.list"
KEYRING = "/etc/apt/keyrings/slipway-kubernetes"
FAMILY = "debian"
CURE = (
    "see that the node reaches the repository, that it has this version, and that the machine has, or its own "
    "repositories bring, what the packages depend on (conntrack, iptables, ...)."
)


async def install_packages(
    world: World, hands: Hands, source: SourceParameters, args: Prepare, ctx: StepContext
) -> None:
    """By the name of the job, the same packages of the same repository are installed once; or fetched, for Fetch."""
    distribution = (await run(hands, "distribution")).text
    if FAMILY not in distribution.split():
        raise StepError(
            f"{args.node.slot} runs {distribution.split(' ')[0] or 'an unknown system'}, and packages are installed on "
            "Debian and Ubuntu only.",
            cure="use an image with the programs, or source.kind files.",
        )
    key = None
    if source.signing_key_path is not None:
        key = await world.files.read(ctx.instance_id, source.signing_key_path, args.vnfd)
    files = repository_files(source, key)
    await install(hands, files)
    version, how = args.site.version or "", "fetch" if isinstance(args, Fetch) else "install"
    told = [version, how, *(part for path, content in files.items() for part in (path, content))]
    job = f"packages-{_digest(told)}"
    await _run(hands, version, how, NEEDED_FILES, job)


async def place_packages(hands: Hands, version: str, *names: str) -> None:
    """Some of those that were fetched."""
    await _run(hands, version, "place", names, f"packages-{version}-{'-'.join(names)}".replace(".", "-"))


async def _run(hands: Hands, version: str, how: str, names: Sequence[str], job: str) -> None:
    try:
        await run_named(hands, "packages", version, how, *names, limit=SECONDS, job=job)
    except StepError as error:
        raise StepError(error.detail, temporary=error.temporary, cure=None if error.temporary else CURE) from None


def repository_files(source: SourceParameters, key: bytes | None) -> dict[str, str | bytes]:
    """apt's list of the repository, and the key that must have signed it. Without either, the machine's own keys."""
    options, keyring = "", {}
    if key is not None:
        path = f"{KEYRING}.{'asc' if key.lstrip().startswith(b'-----BEGIN PGP') else 'gpg'}"  # apt goes by the name
        options, keyring = f"[signed-by={path}] ", {path: key}
    elif source.allow_unsigned:
        options = "[trusted=yes] "
    return {**keyring, LIST: f"deb {options}{source.repository} /\n"}


def _digest(parts: list[str | bytes]) -> str:
    whole = b"\0".join(part if isinstance(part, bytes) else part.encode() for part in parts)
    return hashlib.sha256(whole).hexdigest()[:16]
