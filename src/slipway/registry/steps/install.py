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
    await _run_job(
        host, "install_package", file, job=f"registry-package-{digest(asked.package_path)[:16]}", asked=asked
    )
    return program_unit(asked.port_no, volume=asked.data_volume is not None)


async def _install_image(deps: Dependencies, host: RemoteHost, asked: InstallationParameters, ctx: StepContext) -> str:
    """An engine that is there is used. What the archive holds is run by its id: its name may be anybody's."""
    await _run_job(host, "install_engine", job="registry-engine", asked=asked)
    if asked.image_path is not None:
        file = await send(deps, host, asked.image_path, ctx)
        words = (SENT, file, asked.image_path)
    else:
        words = ("pull", asked.image or DEFAULT_IMAGE, asked.image or DEFAULT_IMAGE)
    printed = await _run_job(host, "install_image", *words, job=f"registry-image-{digest(*words)[:16]}", asked=asked)
    engine, _, image = printed.strip().splitlines()[-1].partition(" ")
    return container_unit(engine, image, volume=asked.data_volume is not None)


async def _run_job(host: RemoteHost, script: str, *arguments: str, job: str, asked: InstallationParameters) -> str:
    try:
        return (await run_job(host, script, *arguments, limit=SECONDS, job=job)).text
    except StepError as error:
        if error.temporary:
            raise
        raise StepError(error.detail, cure=_cure(asked)) from None


def _cure(asked: InstallationParameters) -> str:
    if asked.source == "package":
        return "see that the machine's repositories have docker-registry, or bring it in the package (package_path)."
    if asked.image_path is not None:
        return f"see that {asked.image_path} is what `docker save` or `skopeo copy` made of one image of a registry."
    return (
        "see that the machine reaches the image (proxy); or bring it in the package (image_path), or say source: "
        "package."
    )


def _proxy(asked: InstallationParameters) -> dict[str, str]:
    said = {"HTTP_PROXY": asked.proxy.http_proxy, "HTTPS_PROXY": asked.proxy.https_proxy}
    given = {name: secret.opened(str) for name, secret in said.items() if secret}
    return {**given, "NO_PROXY": ",".join(filter(None, ("127.0.0.1,localhost", asked.proxy.no_proxy)))} if given else {}
