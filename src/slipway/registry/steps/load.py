"""Images of the package come into the registry: the archive goes to its machine, which pushes them from there."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import PurePosixPath

from slipway.cluster.steps.dependencies import Dependencies, RemoteHost
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.registry.arguments import LoadArchive
from slipway.registry.image_archive import (
    LARGEST_DOCUMENT,
    ArchivedImage,
    BrokenArchive,
    digest_of,
    images_in,
    read_listing,
)
from slipway.registry.parameters import InstallationParameters
from slipway.registry.steps.machine import digest, opened, run, run_job, send

PUSH_SECONDS = 3000.0
LISTING_SECONDS = 300.0
LONGEST_LISTING = 200_000  # characters: SSH keeps no more of what a command prints


async def load_archive(deps: Dependencies, args: LoadArchive, ctx: StepContext) -> Outcome:
    """What the registry has already is not sent to it again."""
    host, asked = await deps.connector.host(args.node, ctx), await opened(args, ctx)
    archive = await send(deps, host, args.path, ctx)
    try:
        images = await _images(host, archive, args.path)
    except BrokenArchive as error:
        await run(host, "forget_archive", archive)
        raise StepError(
            f"{args.path} of the package is no archive of images: {error}.",
            cure="make it by `docker save` or `skopeo copy docker://... oci-archive:...`, or leave it out.",
        ) from None
    await run(host, "registry_login", archive, stdin=_login(asked).encode())
    place = f"{'https' if asked.tls else 'http'}://127.0.0.1:{asked.port_no}"
    try:
        for number, image in enumerate(images, 1):
            ctx.progress(f"{image.repository}:{image.tag}, {number} of {len(images)}")
            await _push(host, archive, image, place)
    except StepError as error:
        if not error.temporary:  # otherwise a push may still run, and reads it
            with contextlib.suppress(StepError):
                await run(host, "forget_archive", archive)
        raise
    await run(host, "forget_archive", archive)
    return Outcome(data={"images": [f"{image.repository}:{image.tag}" for image in images]})


async def _images(host: RemoteHost, archive: str, path: str) -> list[ArchivedImage]:
    """The machine lists and reads; what it tells is read apart from what else this process does."""
    try:
        listed = await run(host, "archive_listing", archive, limit=LISTING_SECONDS)
    except StepError as error:
        if error.temporary:
            raise
        raise BrokenArchive("tar can't read it") from None
    if listed.lost or len(listed.stdout) > LONGEST_LISTING:
        raise BrokenArchive("it has too many files")

    async def read(member: str) -> bytes:
        if listing.get(member, 0) > LARGEST_DOCUMENT:
            raise BrokenArchive(f"{member} is larger than {LARGEST_DOCUMENT >> 20} MiB")
        return await _member(host, archive, member, listing.get(member, 0))

    listing = await asyncio.to_thread(read_listing, listed.text)
    return await images_in(listing, read, _plain(PurePosixPath(path).stem))


async def _member(host: RemoteHost, archive: str, member: str, size: int) -> bytes:
    """By a file, for what a command prints is cut at its beginning."""
    printed = await run(host, "archive_member", archive, member, str(LARGEST_DOCUMENT), limit=LISTING_SECONDS)
    content = await host.get(printed.text.strip(), sudo=True)
    if content is None or len(content) != size:
        raise BrokenArchive(f"{member} is cut off in it")
    return content


async def _push(host: RemoteHost, archive: str, image: ArchivedImage, place: str) -> None:
    for blob in image.blobs:
        if blob.member is None:
            await host.put(f"/var/lib/slipway/files/{archive}.document", blob.content, sudo=True)
        job = f"push-{digest(archive, image.repository, blob.digest)[:16]}"
        words = (archive, blob.member or "-", image.repository, blob.digest, place)
        await run_job(host, "push_blob", *words, limit=PUSH_SECONDS, job=job)
        await host.remove_job(job, sudo=True)
    for manifest in image.manifests:
        await host.put(f"/var/lib/slipway/files/{archive}.document", manifest.content, sudo=True)
        words = (archive, image.repository, manifest.reference, manifest.media_type, digest_of(manifest.content))
        await run(host, "push_manifest", *words, place)


def _login(asked: InstallationParameters) -> str:
    """For curl's --config: in no argument, and for root only."""
    if not asked.users:
        return ""
    one = asked.users[0]
    login = f"{one.username}:{one.password.opened(str)}".replace("\\", "\\\\").replace('"', '\\"')
    return f'user = "{login}"\n'


def _plain(name: str) -> str:
    """A file's name as that of a repository."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower()).strip("-")
    return kept or "image"
