"""Steps for images of packages on a Glance, for whatever VNFs a test names."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from typing import BinaryIO

from slipway.model.action import VimConnection
from slipway.model.package_content import PIECE, PackageContent
from slipway.model.vim import OPENSTACK
from slipway.vim.blocking import BlockingCalls
from slipway.vim.openstack.cloud import Cloud
from slipway.vim.openstack.images import ImageActions, ImageTimeouts
from slipway.vim.openstack.package_images import ReleaseImages, UploadImage, image_name
from slipway.vim.openstack.session import OpenStackSessions
from tests.contract.plans import Context
from tests.unit.vim.glance_standin import Glance

CONTENT = bytes(range(256)) * (PIECE // 128) + b"end"  # two pieces and a bit
DIGEST = sha256(CONTENT).hexdigest()
FILE = f"sha-{DIGEST}"
NAME = image_name(DIGEST)
QUICK = ImageTimeouts(tag_settle=0.01, create_race=0.02, finish=5.0)
ARGS = UploadImage(
    title="debian",
    vnfd_id="vnfd",
    path="Files/debian.img",
    digest=DIGEST,
    disk_format="qcow2",
    container_format="bare",
    min_disk=2,
    min_ram=512,
)


class Vnf(Context):
    """A step's context; `open` gives the file of the package."""

    open: Callable[[], BinaryIO] = staticmethod(lambda: BytesIO(CONTENT))

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        assert (vnfd_id, path) == ("vnfd", "Files/debian.img")
        return PackageContent(path, len(CONTENT), digest, self.open)


class World:
    """One OpenStack, and Slipway's steps for images of any VNF there."""

    def __init__(self, glance: Glance, timeouts: ImageTimeouts = QUICK) -> None:
        self.glance = glance
        access = {"username": "demo", "password": "demo-password", "project": "demo", "region": "RegionOne"}
        self.connection = VimConnection(OPENSTACK, {"endpoint": glance.keystone.url}, access, {})
        self.sessions, self.calls = OpenStackSessions(), BlockingCalls()
        self.use(timeouts)

    def use(self, timeouts: ImageTimeouts) -> None:
        actions = ImageActions(lambda connection: Cloud(connection, self.sessions, self.calls), timeouts)
        self.uploading, self.releasing = actions.all

    def close(self) -> None:
        self.calls.close()
        self.sessions.close()

    def vnf(self, name: str) -> Vnf:
        return Vnf(self.connection, name)

    async def upload(self, vnf: Vnf | str, args: UploadImage = ARGS) -> None:
        await self.uploading.run(args, self.vnf(vnf) if isinstance(vnf, str) else vnf)

    async def undo(self, vnf: str, args: UploadImage = ARGS) -> None:
        assert self.uploading.undo is not None
        await self.uploading.undo(args, self.vnf(vnf))

    async def release(self, vnf: str, *kept: str) -> None:
        await self.releasing.run(ReleaseImages(kept=kept), self.vnf(vnf))

    def tags(self) -> list[set[str]]:
        return [set(one["tags"]) for one in self.glance.images.values()]
