"""The registry's program on its machine: the distribution's package, or a container engine and an image."""

from __future__ import annotations

from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import install
from slipway.cluster.steps.prepare import record_host_key
from slipway.cluster.steps.setup import write_proxy_environment
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.registry.arguments import InstallRegistry
from slipway.registry.configuration import UNIT, container_unit, program_unit
from slipway.registry.parameters import DEFAULT_IMAGE, InstallationParameters
from slipway.registry.steps.machine import digest, opened, run, run_job, send

SECONDS = 1800.0
SENT, NOTHING = "sent", "-"
ENGINE_CURE = (
    "use an image of the machine that has docker or podman, or see that it reaches its package repositories (through "
    "`proxy`, where it needs one); or say source: package, and bring the package (package_path)."
)
PACKAGE_CURE = (
    "see that the machine's repositories have docker-registry and that it reaches them (proxy), or bring it in the "
    "package (package_path)."
)
PULL_CURE = "see that the machine reaches the image (proxy); or bring it in the package (image_path)."


async def install_registry(deps: Dependencies, args: InstallRegistry, ctx: StepContext) -> Outcome:
    host, asked = await deps.connector.host(args.node, ctx), await opened(args, ctx)
    await write_proxy_environment(host, _proxy(asked))
    unit = await (_install_package if asked.source == "package" else _install_image)(deps, host, asked, ctx)
    await install(host, {UNIT: unit})
    return await record_host_key(deps, args.node, ctx)


async def _install_package(
    deps: Dependencies, host: RemoteHost, asked: InstallationParameters, ctx: StepContext
) -> str:
    file = NOTHING
    if asked.package_path is not None and not (await run(host, "has_registry")).text:
        file = await send(deps, host, asked.package_path, ctx)
    job = f"registry-package-{digest(file)[:16]}"  # without a file it is another command, and so another job
    await _run_job(host, "install_package", file, job=job, cure=PACKAGE_CURE)
    return program_unit(asked.port_no, volume=asked.data_volume is not None)


async def _install_image(deps: Dependencies, host: RemoteHost, asked: InstallationParameters, ctx: StepContext) -> str:
    """An engine that is there is used. What the archive holds is run by its id: its name may be anybody's."""
    await _run_job(host, "install_engine", job="registry-engine", cure=ENGINE_CURE)
    file = NOTHING
    if asked.image_path is not None:
        file = await send(deps, host, asked.image_path, ctx)
        words = (SENT, file, asked.image_path)
        cure = f"see that {asked.image_path} is what `docker save` or `skopeo copy` made of one image of a registry."
    else:
        words, cure = ("pull", asked.image or DEFAULT_IMAGE, asked.image or DEFAULT_IMAGE), PULL_CURE
    printed = await _run_job(host, "install_image", *words, job=f"registry-image-{digest(*words)[:16]}", cure=cure)
    if asked.image_path is not None:
        await run(host, "forget_archive", file)  # of a job that had ended before, it was sent once more
    engine, _, image = printed.strip().splitlines()[-1].partition(" ")
    return container_unit(engine, image, volume=asked.data_volume is not None)


async def _run_job(host: RemoteHost, script: str, *arguments: str, job: str, cure: str) -> str:
    try:
        return (await run_job(host, script, *arguments, limit=SECONDS, job=job)).text
    except StepError as error:
        if error.temporary:
            raise
        raise StepError(error.detail, cure=cure) from None


def _proxy(asked: InstallationParameters) -> dict[str, str]:
    said = {"HTTP_PROXY": asked.proxy.http_proxy, "HTTPS_PROXY": asked.proxy.https_proxy}
    given = {name: secret.opened(str) for name, secret in said.items() if secret}
    return {**given, "NO_PROXY": ",".join(filter(None, ("127.0.0.1,localhost", asked.proxy.no_proxy)))} if given else {}
