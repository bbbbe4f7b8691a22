"""A node's containerd and the registries it pulls from: asked for first, then written down, then pulled from.

Nothing is written before a registry was reached, by its name, with its CA and its login, from the node itself.
containerd is restarted only if its configuration has changed, and the pods run on meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from slipway.cluster.containerd_config import (
    CONTAINERD,
    ForeignConfiguration,
    RegistryLogin,
    hosts_toml,
    registry_directory,
    registry_host,
    registry_url,
    with_logins,
)
from slipway.cluster.parameters import REGISTRIES, RegistryParameters
from slipway.cluster.registry_access import (
    CHECK,
    NoAccess,
    RegistryResponse,
    Trouble,
    basic_authorization,
    check_answer,
    curl_config,
    pull_failed,
    read_answer,
    token_of,
)
from slipway.cluster.schema import read
from slipway.cluster.steps.arguments import CheckRegistries, ConnectRegistries
from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.cluster.steps.machine import install, run, run_job
from slipway.cluster.steps.setup import proxy_variables
from slipway.cluster.values import server
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.package.certificate import MALFORMED

OURS = "/etc/slipway/registries"  # on a node: the servers that it knows from us, a line each
HOSTS = "/etc/slipway/hosts"
CHECKED = "/var/lib/slipway/script/registry-check"  # for root only, and no longer than a check
PULL_SECONDS = 900.0


async def check(deps: Dependencies, args: CheckRegistries, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    registries, proxy = await _opened(args.registries, ctx), await proxy_variables(args.setup, args.cluster, ctx)
    await _authorizations(deps, host, args.node.slot, registries, proxy, ctx)
    await run(host, "remove_directory", CHECKED)
    return Outcome()


async def connect(deps: Dependencies, args: ConnectRegistries, ctx: StepContext) -> Outcome:
    host = await deps.connector.host(args.node, ctx)
    registries, proxy = await _opened(args.registries, ctx), await proxy_variables(args.setup, args.cluster, ctx)
    authorizations = await _authorizations(deps, host, args.node.slot, registries, proxy, ctx)
    await _write(deps, host, args.node.slot, registries, ctx)
    try:
        for registry in registries:
            await _pull(host, args.node.slot, registry, authorizations[registry.server])
    except NoAccess:
        with contextlib.suppress(StepError):
            await run(host, "remove_directory", CHECKED)
        raise
    await run(host, "remove_directory", CHECKED)
    return Outcome()


async def disconnect(deps: Dependencies, args: ConnectRegistries, ctx: StepContext) -> Outcome:
    """What the node knew before. Nothing is asked of those registries: they may be gone."""
    if args.former is not None:
        host = await deps.connector.host(args.node, ctx)
        await _write(deps, host, args.node.slot, await _opened(args.former, ctx), ctx)
        await run(host, "remove_directory", CHECKED)
    return Outcome()


async def _opened(given: Sequence[dict[str, Any]], ctx: StepContext) -> list[RegistryParameters]:
    """With passwords in clear: for this step only."""
    return [read(RegistryParameters, one, REGISTRIES) for one in await ctx.decrypt_secrets(list(given))]


async def _authorizations(
    deps: Dependencies,
    host: RemoteHost,
    node: str,
    registries: Sequence[RegistryParameters],
    proxy: Mapping[str, str],
    ctx: StepContext,
) -> dict[str, str | None]:
    """By server, the header that it lets in. NoAccess for the first that can't be used."""
    await run(host, "private_directory", CHECKED)
    certificates = {f"{registry_directory(one.server, CHECKED)}/ca.crt": await _certificate(deps, one, ctx)
                    for one in registries if one.certificate_path}  # fmt: skip
    if certificates:
        await install(host, certificates, mode=0o600)
    return {one.server: await _authorization(host, node, one, proxy) for one in registries}


async def _authorization(
    host: RemoteHost, node: str, registry: RegistryParameters, proxy: Mapping[str, str]
) -> str | None:
    answer = await _ask(host, node, registry, f"{registry_url(registry)}/v2/", proxy)
    if (url := check_answer(registry, node, answer)) is None:
        return basic_authorization(registry)
    given = await _ask(host, node, registry, url, proxy)
    try:
        document = msgspec.json.decode(given.body)
    except (msgspec.DecodeError, RecursionError):
        document = None
    return f"Bearer {token_of(registry, node, given.status, document)}"


async def _ask(
    host: RemoteHost, node: str, registry: RegistryParameters, url: str, proxy: Mapping[str, str]
) -> RegistryResponse:
    certificate = f"{registry_directory(registry.server, CHECKED)}/ca.crt" if registry.certificate_path else None
    config = curl_config(url, registry, certificate, proxy, login=True)
    command, description = ["curl", "-q", "--config", "-"], f"ask {registry.server}"
    result = await host.run(command, sudo=True, stdin=config.encode(), check=False, description=description)
    if result.exit_code == 127:
        raise StepError(f"{node} has no curl, by which registries are checked.", cure="use an image that has it.")
    return read_answer(registry, node, result)


async def _certificate(deps: Dependencies, registry: RegistryParameters, ctx: StepContext) -> bytes:
    """All may read it on a node: what else is in the file, like a key, stays in the package."""
    path = registry.certificate_path or ""
    content = await deps.files.read(ctx.instance_id, path)
    try:
        found = x509.load_pem_x509_certificates(content)
    except MALFORMED:
        raise StepError(
            f"{path} of the package, for the registry {registry.server}, holds no certificate.",
            cure="give the CA's certificate as PEM: -----BEGIN CERTIFICATE-----",
        ) from None
    return b"".join(one.public_bytes(Encoding.PEM) for one in found)


async def _write(
    deps: Dependencies, host: RemoteHost, node: str, registries: Sequence[RegistryParameters], ctx: StepContext
) -> None:
    """What containerd reads, and the names in /etc/hosts. What the node had from us and has no longer goes."""
    before = ((await host.get(OURS, sudo=True)) or b"").decode(errors="replace").split()
    files: dict[str, str | bytes] = {}
    for one in registries:
        files[f"{registry_directory(one.server)}/hosts.toml"] = hosts_toml(registry_host(one))
        if one.certificate_path:
            files[f"{registry_directory(one.server)}/ca.crt"] = await _certificate(deps, one, ctx)
    now = [one.server for one in registries]
    # All that there may be of ours, before it is there: whoever goes on after a crash finds what is to go.
    await install(host, {OURS: _lines(dict.fromkeys([*before, *now]))})
    await install(host, {**files, HOSTS: _lines(one.hosts_string for one in registries if one.hosts_string)})
    await _write_logins(host, node, registries, before)
    await run(host, "registries", *(server(name) for name in before if name not in now))
    await install(host, {OURS: _lines(now)})


def registry_logins(opened: Sequence[RegistryParameters]) -> dict[str, RegistryLogin]:
    """By server, in clear: for containerd's configuration, and no longer than a step."""
    return {
        one.server: RegistryLogin(one.username, one.password.opened(str))
        for one in opened
        if one.username and one.password
    }


async def _write_logins(
    host: RemoteHost, node: str, registries: Sequence[RegistryParameters], before: Sequence[str]
) -> None:
    found = ((await host.get(CONTAINERD, sudo=True)) or b"").decode(errors="replace")
    try:
        wanted = with_logins(found, registry_logins(registries), before)
    except ForeignConfiguration as error:
        if not registries:
            return  # what could not be told of registries has none of ours to take away
        raise StepError(
            f"{CONTAINERD} on {node} can't be told of registries: {error}.",
            cure=f"let the package's script write registry.config_path = {'/etc/containerd/certs.d'!r} in it.",
        ) from None
    if wanted != found:
        await install(host, {CONTAINERD: wanted}, mode=0o600)  # a script of the package may have put logins there, too


def _lines(words: Any) -> str:
    return "".join(f"{word}\n" for word in words)


async def _pull(host: RemoteHost, node: str, registry: RegistryParameters, authorization: str | None) -> None:
    """An image that is named must come. Without one, the registry must know that it does not have ours."""
    told = hosts_toml(registry_host(registry, CHECKED), authorization)
    await install(host, {f"{registry_directory(registry.server, CHECKED)}/hosts.toml": told}, mode=0o600)
    image = f"{registry.server}/{registry.image or CHECK}"
    job = f"pull-{hashlib.sha256(image.encode()).hexdigest()[:16]}"
    try:
        await run_job(host, "pull", image, CHECKED, limit=PULL_SECONDS, job=job)
    except StepError as error:
        if error.temporary:
            raise
        failed = pull_failed(registry, node, image, error.detail)
        # Some registries say "denied" of what they don't have; that the login is right is known by now.
        if registry.image is not None or failed.trouble not in (Trouble.IMAGE, Trouble.LOGIN):
            raise failed from None
    await host.remove_job(job, sudo=True)  # the next check is another one
