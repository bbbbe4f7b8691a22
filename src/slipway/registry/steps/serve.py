"""The registry serves: its volume is mounted, certificate, users and configuration are written, the service answers."""

from __future__ import annotations

from typing import Any

from slipway.cluster.steps import volumes
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import address_of, install
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.registry.arguments import MountVolume, ServeImages
from slipway.registry.certificates import (
    Authority,
    is_still_good,
    make_authority,
    make_server_certificate,
    why_not_a_pair,
)
from slipway.registry.configuration import CERTIFICATE, CONFIGURATION, DATA, KEY, configuration
from slipway.registry.parameters import PATH, InstallationParameters, RegistryUser
from slipway.registry.steps.machine import opened, run

OUTPUTS = "registry"  # in instantiatedVnfInfo.metadata


async def mount_volume(deps: Dependencies, args: MountVolume, ctx: StepContext) -> Outcome:
    """The volume that keeps the images, before anything is served from there."""
    host = await deps.connector.host(args.node, ctx)
    await volumes.mount_volume(host, args.node, args.volume, DATA, ctx)
    return Outcome()


async def serve_images(deps: Dependencies, args: ServeImages, ctx: StepContext) -> Outcome:
    host, asked = await deps.connector.host(args.node, ctx), await opened(args, ctx)
    address = await address_of(args.node, ctx)
    outputs: dict[str, Any] = {"server": _place(address, asked.port_no)}
    if asked.tls is not None:
        outputs |= await _write_certificate(deps, host, asked, address, args.authority, ctx)
    await run(host, "write_users", stdin=_users(asked.users))
    text = configuration(asked.port_no, tls=asked.tls is not None, login=bool(asked.users))
    await install(host, {CONFIGURATION: text}, mode=0o640)
    scheme = "https" if asked.tls is not None else "http"
    await run(host, "serve", scheme, str(asked.port_no), DATA, limit=300.0)
    outputs["url"] = f"{scheme}://{outputs['server']}"
    return Outcome(instance={"instantiatedVnfInfo": {"metadata": {OUTPUTS: outputs}}})


async def _write_certificate(
    deps: Dependencies,
    host: RemoteHost,
    asked: InstallationParameters,
    address: str,
    given: dict[str, Any] | None,
    ctx: StepContext,
) -> dict[str, str]:
    """One that is given, or one that is made: then whoever is to trust it needs its authority, which is returned."""
    tls = asked.tls
    if tls is not None and tls.certificate_path is not None and tls.private_key is not None:
        certificate, key = await deps.files.read(ctx.instance_id, tls.certificate_path), tls.private_key.opened(str)
        if why := why_not_a_pair(certificate, key):
            raise StepError(
                f"{PATH}.tls: {why}.", cure="give a certificate as PEM, its own first, and its private key."
            )
        await install(host, {CERTIFICATE: certificate, KEY: key.rstrip("\n") + "\n"}, mode=0o640)
        return {}
    names = [address, *(tls.names if tls else ())]
    known = await ctx.decrypt_secrets(given) if given else None
    authority = Authority(**known) if known else make_authority(f"Slipway registry {ctx.instance_id}")
    if not is_still_good(await host.get(CERTIFICATE, sudo=True), authority, names):
        made, key = make_server_certificate(authority, names)
        await install(host, {CERTIFICATE: made, KEY: key}, mode=0o640)
    # What the record has of it already stays there.
    return {"ca": authority.certificate} | ({} if known else {"caPrivateKey": authority.private_key})


def _users(users: tuple[RegistryUser, ...]) -> bytes:
    """A line for each, `name:password`: neither has a line break, and no name has a colon."""
    return "".join(f"{one.username}:{one.password.opened(str)}\n" for one in users).encode()


def _place(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
