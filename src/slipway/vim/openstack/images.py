"""Files of packages as images in Glance: one for each project and file, shared by the VNFs that are made from it.

Tags say whose an image is:

    slipway, sha-<digest>    ours, of this file
    vnf-<VNF>                a VNF that uses it; while it is not finished: the one that uploads it
    leaving-<VNF>            one that is about to remove it

An image gets its name when it is whole, so whoever finds it by its name may use it.

Glance changes tags by reading and writing all of them: of two who do so at the same time one may be lost. So whoever
writes a tag looks again a little later (`_retagged`), and an image that is being uploaded is changed by its uploader
only. Who joins writes its tag and then looks for `leaving`; who leaves writes `leaving` and then looks for users: one
of them sees the other, and no image goes while somebody begins to use it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.errors import StepError, VimError, VimFault
from slipway.model.machine import Outcome
from slipway.model.package_content import PackageContent
from slipway.vim.openstack.answers import Images, ShownImage
from slipway.vim.openstack.cloud import GLANCE, Cloud, Query, listed
from slipway.vim.openstack.package_images import (
    MIB,
    RELEASE_IMAGES,
    UPLOAD_IMAGE,
    ReleaseImages,
    UploadImage,
)
from slipway.waiting import Backoff

OURS = "slipway"
FILE, USER, LEAVING = "sha-", "vnf-", "leaving-"  # before a digest, and before ids of VNFs
ACTIVE = "active"
UPLOADING = " (upload)"  # after the name, until it is whole
SAVING = ("saving", "uploading", "importing")
GONE = ("deleted", "pending_delete")
PAGE, MOST = 100, 1000  # images of one list, and of all that have a tag

UPLOAD_TIMEOUT = 2 * 3600.0  # seconds for one attempt
RELEASE_TIMEOUT = 300.0
UPLOADS = 4  # at once: each holds one of the threads that a VIM has


@dataclass(frozen=True)
class ImageTimeouts:
    """In seconds. `tag_settle`: longer than Glance takes to write a tag. `create_race`: after that an image which
    somebody else made within the same second is seen. `queued`, `saving`, `leaving`: then the upload or removal of
    another VNF is taken for broken off. `finish`: for what Glance does at the end of an upload, and for tags to stay.
    `progress`: between two reports of how much was sent. `in_use`: for volumes to go that are clones of an image."""

    tag_settle: float = 0.4
    create_race: float = 1.2
    queued: float = 60.0
    saving: float = UPLOAD_TIMEOUT / 2
    finish: float = 300.0
    leaving: float = 60.0
    progress: float = 2.0
    in_use: float = 30.0


@dataclass(frozen=True)
class Image:
    id: str
    name: str
    status: str
    size: int | None
    formats: tuple[str | None, str | None]  # of the disk and of the container
    created_at: str
    tags: frozenset[str]

    def vnfs(self, prefix: str) -> set[str]:
        """Those with such a tag."""
        return {tag.removeprefix(prefix) for tag in self.tags if tag.startswith(prefix)}

    @property
    def path(self) -> str:
        return f"/images/{self.id}"

    @property
    def digest(self) -> str:
        return next((tag.removeprefix(FILE) for tag in sorted(self.tags) if tag.startswith(FILE)), "")

    @property
    def whole(self) -> bool:
        return self.status == ACTIVE and not self.name.endswith(UPLOADING)

    @property
    def deactivated(self) -> bool:
        """Taken out of use by an administrator: only they, or the owner by hand, put an end to that."""
        return self.status == "deactivated"


class ImageActions:
    def __init__(self, cloud: Callable[[VimConnection], Cloud], timeouts: ImageTimeouts | None = None) -> None:
        self._cloud, self._timeouts = cloud, timeouts or ImageTimeouts()
        self._uploads = asyncio.Semaphore(UPLOADS)
        self._writing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # tags, by the image's id
        self.all: tuple[Action[Any], ...] = (
            Action(UPLOAD_IMAGE, UploadImage, self._upload, self._take_back, timeout=UPLOAD_TIMEOUT, attempts=3),
            Action(RELEASE_IMAGES, ReleaseImages, self._release, timeout=RELEASE_TIMEOUT),
        )

    async def _upload(self, args: UploadImage, ctx: StepContext) -> Outcome:
        """Until there is one, whole, with our tag: somebody else's, or ours."""
        cloud, me = self._cloud(await ctx.connection()), ctx.instance_id
        others = _OtherUploads(self._timeouts)
        while True:
            there = await _of_file(cloud, args.digest)
            usable = next((one for one in there if one.whole), None)
            for image in there:
                _refuse_unusable(image, args)
                if not image.whole and (me in image.vnfs(USER) or others.broken_off(image)):
                    await cloud.remove(GLANCE, image.path)
            if usable is not None:
                if usable.name != args.name:  # somebody renamed it
                    await _rename(cloud, usable, args.name)
                if await self._joined(cloud, usable, me):
                    return Outcome()
            elif not there:
                await self._make(cloud, args, ctx)
            else:
                await others.pause()

    async def _take_back(self, args: UploadImage, ctx: StepContext) -> Outcome:
        if not args.kept:
            cloud = self._cloud(await ctx.connection())
            for image in await _of_file(cloud, args.digest):
                await self._leave(cloud, image, ctx.instance_id)
        return Outcome()

    async def _release(self, args: ReleaseImages, ctx: StepContext) -> Outcome:
        cloud, me = self._cloud(await ctx.connection()), ctx.instance_id
        for prefix in (USER, LEAVING):
            for image in await _listed(cloud, f"{prefix}{me}"):
                if image.digest not in args.kept:
                    await self._leave(cloud, image, me)
        return Outcome()

    async def _make(self, cloud: Cloud, args: UploadImage, ctx: StepContext) -> None:
        """Afterwards there is one, ours or that of somebody who was quicker."""
        content = await ctx.package_content(args.vnfd_id, args.path, args.digest)
        async with self._uploads:
            if await _of_file(cloud, args.digest):
                return  # somebody else's, while this one waited for its turn
            image = await _create(cloud, args, ctx.instance_id)
            try:
                await asyncio.sleep(self._timeouts.create_race)
                if await _is_first(cloud, image):
                    await self._send(cloud, image, args, ctx, content)
            except StepError:
                with suppress(VimError):  # What is said is why it failed. The next attempt removes it, too.
                    await cloud.remove(GLANCE, image.path)
                raise
            if await _is_first(cloud, image):
                await _rename(cloud, image, args.name)
            else:
                await cloud.remove(GLANCE, image.path)

    async def _send(
        self, cloud: Cloud, image: Image, args: UploadImage, ctx: StepContext, content: PackageContent
    ) -> None:
        """A lost connection says nothing: Glance may have got all of it."""
        failed: VimError | None = None
        sent = _CountedContent(content)
        reports = asyncio.create_task(self._report(ctx, sent))
        try:
            await cloud.send(GLANCE, f"{image.path}/file", sent)
        except VimError as error:
            if error.fault is not VimFault.TEMPORARY:
                raise
            failed = error
        finally:
            reports.cancel()
        backoff = Backoff(0.2, 5.0, timeout=self._timeouts.finish)
        while (there := await _find(cloud, image)) and there.status in SAVING and await backoff.pause():
            pass
        if there is None or there.status != ACTIVE or there.size != content.size:
            now = f"is {there.status} and has {there.size or 0} bytes" if there else "is gone"
            raise failed or VimError(
                f"Image {args.title} ({image.id}) {now} after an upload of {content.size} bytes.", VimFault.TEMPORARY
            )

    async def _report(self, ctx: StepContext, sent: _CountedContent) -> None:
        while True:
            ctx.progress(f"{sent.bytes >> 20} of {-(-len(sent) // MIB)} MiB")
            await asyncio.sleep(self._timeouts.progress)

    async def _joined(self, cloud: Cloud, image: Image, me: str) -> bool:
        """Whether it is there, with our tag, and to stay."""
        backoff = Backoff(0.2, 2.0, timeout=self._timeouts.leaving)
        now: Image | None = image
        while now is not None:
            if me not in now.vnfs(USER) or me in now.vnfs(LEAVING):
                now = await self._retagged(cloud, now, add={f"{USER}{me}"}, remove={f"{LEAVING}{me}"})
            elif not (leaving := now.vnfs(LEAVING)):
                return True
            elif await backoff.pause():
                now = await _find(cloud, now)
            else:  # whoever was about to remove it was broken off, and looks for users when it goes on
                now = await self._retagged(cloud, now, add=set(), remove={f"{LEAVING}{one}" for one in leaving})
        return False

    async def _leave(self, cloud: Cloud, image: Image, me: str) -> None:
        if me not in image.vnfs(USER) | image.vnfs(LEAVING):
            return
        if not image.whole and not image.deactivated:
            await cloud.remove(GLANCE, image.path)  # our upload; those who wait for it begin one of their own
            return
        now = await self._retagged(cloud, image, add={f"{LEAVING}{me}"}, remove={f"{USER}{me}"})
        if now is None:
            return
        if now.vnfs(USER) or now.deactivated or not await self._removed(cloud, now):
            await self._retagged(cloud, now, add=set(), remove={f"{LEAVING}{me}"})

    async def _removed(self, cloud: Cloud, image: Image) -> bool:
        """False for one that volumes are clones of, also after a while: the next VNF of its file may remove it."""
        backoff = Backoff(0.5, 5.0, timeout=self._timeouts.in_use)
        while not await cloud.removed(GLANCE, image.path):
            if not await backoff.pause():
                return False
        return True

    async def _retagged(
        self, cloud: Cloud, image: Image, *, add: Collection[str], remove: Collection[str]
    ) -> Image | None:
        """As it is once that was still so a little later; None when it is gone."""
        began, now = time.monotonic(), await _find(cloud, image)
        while now is not None and time.monotonic() < began + self._timeouts.finish:
            async with self._writing.setdefault(now.id, asyncio.Lock()):
                wrote = time.monotonic()
                for tag in sorted(set(add) - now.tags):
                    if not await _tag(cloud, now, tag):
                        return None
                for tag in sorted(now.tags.intersection(remove)):
                    await cloud.remove(GLANCE, f"{now.path}/tags/{tag}")
            # Other Slipways that write at the same time are no quicker than we were; and not all come back at once.
            later = max(self._timeouts.tag_settle, 3 * (time.monotonic() - wrote))
            await asyncio.sleep(random.uniform(later, 2 * later))  # noqa: S311 - not for secrecy
            now = await _find(cloud, now)
            if now is None or (now.tags.issuperset(add) and now.tags.isdisjoint(remove)):
                return now
        if now is not None:
            raise VimError(f"Image {now.name} ({now.id}) does not keep its tags.", VimFault.TEMPORARY)
        return None


class _CountedContent:
    """A file, and how much of it was read since it was last begun."""

    def __init__(self, content: PackageContent) -> None:
        self._content, self.bytes = content, 0

    def __len__(self) -> int:
        return len(self._content)

    def __iter__(self) -> Iterator[bytes]:
        self.bytes = 0
        for piece in self._content:
            yield piece
            self.bytes += len(piece)


class _OtherUploads:
    """Uploads of other VNFs, which are waited for as long as they may be going on."""

    def __init__(self, timeouts: ImageTimeouts) -> None:
        self._timeouts = timeouts
        self._seen: dict[tuple[str, str], Backoff] = {}
        self._pauses = Backoff(0.2, 5.0)

    def broken_off(self, image: Image) -> bool:
        limit = self._timeouts.saving if image.status in SAVING else self._timeouts.queued
        return not self._seen.setdefault((image.id, image.status), Backoff(1, 1, timeout=limit)).remaining

    async def pause(self) -> None:
        await self._pauses.pause()


def _refuse_unusable(image: Image, args: UploadImage) -> None:
    if image.deactivated:
        raise VimError(
            f"Image {args.title} ({image.name}) is deactivated in Glance.",
            VimFault.PERMANENT,
            cure="have it reactivated by an administrator, or delete it; then retry.",
        )
    wanted = (args.disk_format, args.container_format)
    if image.formats != wanted:
        has, says = " in ".join(map(str, image.formats)), " in ".join(wanted)
        raise VimError(
            f"Image {args.title}: its file is in Glance as {has} ({image.name}), and this VNFD says {says}.",
            VimFault.PERMANENT,
            cure="let disk_format and container_format in sw_image_data be the same in all packages with this file.",
        )


async def _create(cloud: Cloud, args: UploadImage, me: str) -> Image:
    body = {
        "name": f"{args.name}{UPLOADING}",
        "disk_format": args.disk_format,
        "container_format": args.container_format,
        "min_disk": args.min_disk,
        "min_ram": args.min_ram,
        "visibility": "private",
        "tags": [OURS, f"{FILE}{args.digest}", f"{USER}{me}"],
    }
    return _image(await cloud.post(GLANCE, "/images", ShownImage, json=body))


async def _rename(cloud: Cloud, image: Image, name: str) -> None:
    patch = [{"op": "replace", "path": "/name", "value": name}]
    await cloud.call(GLANCE, "PATCH", image.path, json=patch)


async def _tag(cloud: Cloud, image: Image, tag: str) -> bool:
    """False when the image is gone."""
    try:
        await cloud.call(GLANCE, "PUT", f"{image.path}/tags/{tag}")
    except VimError as error:
        if await _find(cloud, image) is None:
            return False
        if error.fault is VimFault.QUOTA:
            raise VimError(
                f"Image {image.name} ({image.id}) has {len(image.tags)} tags, and Glance allows no more.",
                VimFault.QUOTA,
                cure="raise image_tag_quota of Glance: each VNF that uses an image tags it.",
            ) from None
        raise
    return True


async def _is_first(cloud: Cloud, image: Image) -> bool:
    """Of all that were made of the file: the one that is used. False, too, when it is gone."""
    return next((one.id for one in await _of_file(cloud, image.digest)), None) == image.id


async def _of_file(cloud: Cloud, digest: str) -> list[Image]:
    return await _listed(cloud, f"{FILE}{digest}")


async def _listed(cloud: Cloud, tag: str) -> list[Image]:
    """The project's own with that tag, the oldest first. (An administrator sees those of others.)"""
    query: Query = {"owner": await cloud.project_id(), "tag": [OURS, tag], "limit": PAGE}
    tagged = await listed(cloud, GLANCE, "/images", Images, query, most=MOST)
    images = [one for one in map(_image, tagged) if one.status not in GONE]
    return sorted(images, key=lambda one: (one.created_at, one.id))


async def _find(cloud: Cloud, image: Image) -> Image | None:
    there = await cloud.find(GLANCE, image.path, ShownImage)
    return _image(there) if there and there.status not in GONE else None


def _image(shown: ShownImage) -> Image:
    return Image(
        id=shown.id,
        name=shown.name or "",
        status=shown.status,
        size=shown.size,
        formats=(shown.disk_format, shown.container_format),
        created_at=shown.created_at or "",
        tags=shown.tags,
    )
