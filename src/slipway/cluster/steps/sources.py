"""Where a machine's programs come from: its image, packages, or files one by one. Afterwards, what it has."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from slipway.cluster.schema import read
from slipway.cluster.source_parameters import NEEDED_FILES, SourceParameters
from slipway.cluster.steps.arguments import Fetch, Prepare
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import Facts, address_of, facts_of, install, run, run_job
from slipway.cluster.steps.setup import proxy_variables, write_proxy_environment
from slipway.model.action import StepContext
from slipway.model.errors import StepError

IMPORT_SECONDS = 900.0
PACKAGES_SECONDS = 1500.0
APT_LIST = "/etc/apt/sources.list.d/slipway-kubernetes.list"
KEYRING = "/etc/apt/keyrings/slipway-kubernetes"
DISTRIBUTION = "debian"
PACKAGES_CURE = (
    "see that the node reaches the repository, that it has this version, and that the machine has, or its own "
    "repositories bring, what the packages depend on (conntrack, iptables, ...)."
)
PROGRAMS_SECONDS = 1800.0
SENT = "-"  # in place of a URL: the file was sent by us


def source_of(setup: dict[str, Any]) -> SourceParameters:
    return read(SourceParameters, setup.get("source", {}), "source")


async def install_sources(deps: Dependencies, args: Prepare, host: RemoteHost, ctx: StepContext) -> Facts:
    """See that the programs are there; then what the machine says about itself."""
    source, address = source_of(args.setup), await address_of(args.node, ctx)
    if source.kind == "image":
        return await facts_of(host, address)
    await write_proxy_environment(host, await proxy_variables(args.setup, args.cluster, ctx))
    if source.kind == "packages":
        await install_packages(deps, host, source, args, ctx)
    else:
        await install_programs(deps, host, source.files, ctx)
    facts = await facts_of(host, address)
    if facts.missing:
        raise StepError(
            f"{args.node.slot} has no {', '.join(facts.missing)}, which Kubernetes needs.",
            cure="use an image that has them, or packages that depend on them.",
        )
    return replace(facts, versions=())  # what lies in the image beside it is not what was asked for


async def fetch_programs(deps: Dependencies, host: RemoteHost, args: Fetch, ctx: StepContext) -> None:
    """The programs of another version. Packages wait in apt's cache; files lie side by side, as in an image."""
    source, wanted = source_of(args.setup), args.cluster.version or ""
    await write_proxy_environment(host, await proxy_variables(args.setup, args.cluster, ctx))
    if source.kind == "packages":
        await install_packages(deps, host, source, args, ctx)
        return
    files = [file for file in source.files if file.name in (*NEEDED_FILES, "images")]
    try:
        await install_programs(deps, host, files, ctx, beside=wanted, vnfd=args.vnfd)
    except StepError as error:
        cure = None if error.temporary else f"name the files of Kubernetes {wanted} in source.files."
        raise StepError(error.detail, temporary=error.temporary, cure=cure) from None
    await import_images(host, args.setup)


async def import_images(host: RemoteHost, setup: dict[str, Any]) -> None:
    """Container images that came as a file. Not before containerd runs with its own configuration."""
    for file in source_of(setup).files:
        if file.name == "images":
            job = f"import-{file.sha256[:16]}"
            await run_job(host, "import_file", file.sha256, limit=IMPORT_SECONDS, job=job)


async def install_packages(
    deps: Dependencies, host: RemoteHost, source: SourceParameters, args: Prepare, ctx: StepContext
) -> None:
    """By the name of the job, the same packages of the same repository are installed once; or fetched, for Fetch."""
    distribution = (await run(host, "distribution")).text
    if DISTRIBUTION not in distribution.split():
        raise StepError(
            f"{args.node.slot} runs {distribution.split(' ')[0] or 'an unknown system'}, and packages are installed on "
            "Debian and Ubuntu only.",
            cure="use an image with the programs, or source.kind files.",
        )
    key = None
    if source.signing_key_path is not None:
        key = await deps.files.read(ctx.instance_id, source.signing_key_path, args.vnfd)
    files = repository_files(source, key)
    await install(host, files)
    version, how = args.cluster.version or "", "fetch" if isinstance(args, Fetch) else "install"
    content_of_job = [version, how, *(part for path, content in files.items() for part in (path, content))]
    job = f"packages-{_digest(content_of_job)}"
    await _run(host, version, how, NEEDED_FILES, job)


async def install_fetched_packages(host: RemoteHost, version: str, *names: str) -> None:
    """Some of those that were fetched."""
    await _run(host, version, "place", names, f"packages-{version}-{'-'.join(names)}".replace(".", "-"))


async def _run(host: RemoteHost, version: str, how: str, names: Sequence[str], job: str) -> None:
    try:
        await run_job(host, "packages", version, how, *names, limit=PACKAGES_SECONDS, job=job)
    except StepError as error:
        raise StepError(
            error.detail, temporary=error.temporary, cure=None if error.temporary else PACKAGES_CURE
        ) from None


def repository_files(source: SourceParameters, key: bytes | None) -> dict[str, str | bytes]:
    """apt's list of the repository, and the key that must have signed it. Without either, the machine's own keys."""
    options, keyring = "", {}
    if key is not None:
        path = f"{KEYRING}.{'asc' if key.lstrip().startswith(b'-----BEGIN PGP') else 'gpg'}"  # apt goes by the name
        options, keyring = f"[signed-by={path}] ", {path: key}
    elif source.allow_unsigned:
        options = "[trusted=yes] "
    return {**keyring, APT_LIST: f"deb {options}{source.repository} /\n"}


def _digest(parts: list[str | bytes]) -> str:
    whole = b"\0".join(part if isinstance(part, bytes) else part.encode() for part in parts)
    return hashlib.sha256(whole).hexdigest()[:16]


class WantedFile(Protocol):
    """One of `source.files`, or Helm's archive."""

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str | None: ...
    @property
    def path(self) -> str | None: ...
    @property
    def sha256(self) -> str: ...


async def install_programs(
    deps: Dependencies,
    host: RemoteHost,
    wanted: Sequence[WantedFile],
    ctx: StepContext,
    *,
    beside: str = "",
    vnfd: str | None = None,
) -> None:
    """Send what the package brings, let the node fetch the rest, check all, then put all in place.

    `beside`: programs of that version of Kubernetes, beside those in use. `vnfd`: of another package than the
    instance's own.
    """
    absent = set((await run(host, "absent_files", *(file.sha256 for file in wanted))).text.splitlines())
    for file in wanted:
        if file.path is not None and file.sha256 in absent:
            await _send(deps, host, file.path, file.sha256, ctx, vnfd)
    arguments = [beside, *(part for file in wanted for part in (file.name, file.sha256, file.url or SENT))]
    job = f"programs-{hashlib.sha256(' '.join(arguments).encode()).hexdigest()[:16]}"
    await run_job(host, "install_programs", *arguments, limit=PROGRAMS_SECONDS, job=job)


async def _send(
    deps: Dependencies, host: RemoteHost, path: str, sha256: str, ctx: StepContext, vnfd: str | None
) -> None:
    """Piece by piece: neither we nor a command line hold a whole archive of images."""
    sent = 0
    async for piece in deps.files.pieces(ctx.instance_id, path, vnfd):
        await run(host, "receive", sha256, str(sent), str(len(piece)), stdin=piece)
        sent += len(piece)
