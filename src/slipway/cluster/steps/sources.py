"""Where a machine's programs come from: its image, packages, or files one by one. Afterwards, what it has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slipway.cluster.reading import read
from slipway.cluster.source_parameters import NEEDED_FILES, SourceParameters
from slipway.cluster.steps.arguments import Fetch, Prepare
from slipway.cluster.steps.facts import Facts, facts_of
from slipway.cluster.steps.machine import address_of, run_named
from slipway.cluster.steps.packages import install_packages
from slipway.cluster.steps.program_files import install_programs
from slipway.cluster.steps.proxy import proxy_variables, tell_scripts
from slipway.cluster.steps.world import Hands, World
from slipway.model.action import StepContext
from slipway.model.errors import StepError

IMPORT_SECONDS = 900.0


def source_of(setup: dict[str, Any]) -> SourceParameters:
    return read(SourceParameters, setup.get("source", {}), "source")


async def provided(world: World, args: Prepare, hands: Hands, ctx: StepContext) -> Facts:
    """See that the programs are there; then what the machine says about itself."""
    source, address = source_of(args.setup), await address_of(args.node, ctx)
    if source.kind == "image":
        return await facts_of(hands, address)
    await tell_scripts(hands, await proxy_variables(args.setup, args.site, ctx))
    if source.kind == "packages":
        await install_packages(world, hands, source, args, ctx)
    else:
        await install_programs(world, hands, source.files, ctx)
    facts = await facts_of(hands, address)
    if facts.missing:
        raise StepError(
            f"{args.node.slot} has no {', '.join(facts.missing)}, which Kubernetes needs.",
            cure="use an image that has them, or packages that depend on them.",
        )
    return replace(facts, versions=())  # what lies in the image beside it is not what was asked for


async def fetched(world: World, hands: Hands, args: Fetch, ctx: StepContext) -> None:
    """The programs of another version. Packages wait in apt's cache; files lie side by side, as in an image."""
    source, wanted = source_of(args.setup), args.site.version or ""
    await tell_scripts(hands, await proxy_variables(args.setup, args.site, ctx))
    if source.kind == "packages":
        await install_packages(world, hands, source, args, ctx)
        return
    files = [file for file in source.files if file.name in (*NEEDED_FILES, "images")]
    try:
        await install_programs(world, hands, files, ctx, beside=wanted, vnfd=args.vnfd)
    except StepError as error:
        cure = None if error.temporary else f"name the files of Kubernetes {wanted} in source.files."
        raise StepError(error.detail, temporary=error.temporary, cure=cure) from None
    await import_images(hands, args.setup)


async def import_images(hands: Hands, setup: dict[str, Any]) -> None:
    """Container images that came as a file. Not before containerd runs with its own configuration."""
    for file in source_of(setup).files:
        if file.name == "images":
            job = f"import-{file.sha256[:16]}"
            await run_named(hands, "import_file", file.sha256, limit=IMPORT_SECONDS, job=job)
