"""What is in a VNF package: the whole, its VNFD, its manifest and its artifacts."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator

from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.bodies import require_media_type, too_large
from slipway.api.links import PACKAGES
from slipway.api.negotiation import acceptable
from slipway.api.ranges import FileReply
from slipway.api.replies import empty_reply
from slipway.api.routing import GET, PUT, AnyRequest, route
from slipway.api.services import Services
from slipway.model.errors import NotAcceptable

ZIP = "application/zip"
TEXT = "text/plain"


class PackageContent:
    def __init__(self, services: Services) -> None:
        self._onboarding = services.onboarding
        self._max_bytes = services.max_package_bytes

    def routes(self) -> list[HTTPRouteHandler]:
        one = f"{PACKAGES}/{{id:str}}"
        return [
            route(PUT, f"{one}/package_content", self.upload, max_bytes=self._max_bytes),
            route(GET, f"{one}/package_content", self.content, gives=ZIP),
            route(GET, f"{one}/vnfd", self.vnfd, gives=None),
            route(GET, f"{one}/manifest", self.manifest, gives=TEXT),
            route(GET, f"{one}/artifacts/{{name:path}}", self.artifact, gives=None),
        ]

    async def upload(self, request: AnyRequest) -> ASGIResponse:
        """What is wrong with the content is told by the package's onboardingFailureDetails."""
        require_media_type(request, (ZIP,))
        await self._onboarding.upload(request.path_params["id"], _received(request))
        return empty_reply(202)

    async def content(self, request: AnyRequest) -> ASGIResponse:
        path = await self._onboarding.content(request.path_params["id"])
        size = (await asyncio.to_thread(path.stat)).st_size
        return FileReply(lambda: path.open("rb"), size, ZIP, request.headers.get("range"))

    async def vnfd(self, request: AnyRequest) -> ASGIResponse:
        """A ZIP of all files, or the text itself when there is only one and the caller wants it so."""
        form = acceptable(request.headers.get("accept"), (ZIP, TEXT))
        files = await self._onboarding.vnfd(request.path_params["id"])
        if form == ZIP:
            return ASGIResponse(body=await asyncio.to_thread(_zipped, files), media_type=ZIP)
        yaml = [content for name, content in files.items() if name.endswith((".yaml", ".yml"))]
        if len(yaml) != 1:
            raise NotAcceptable(f"The VNFD has {len(yaml)} files, which no {TEXT} can hold. Accept {ZIP}.")
        return ASGIResponse(body=yaml[0], media_type=TEXT)

    async def manifest(self, request: AnyRequest) -> ASGIResponse:
        return ASGIResponse(body=await self._onboarding.manifest(request.path_params["id"]), media_type=TEXT)

    async def artifact(self, request: AnyRequest) -> ASGIResponse:
        name = str(request.path_params["name"]).lstrip("/")
        found = await self._onboarding.artifact(request.path_params["id"], name)
        acceptable(request.headers.get("accept"), (found.media_type,))
        return FileReply(found.open, found.size, found.media_type, request.headers.get("range"))


async def _received(request: AnyRequest) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except RequestEntityTooLarge:
        raise too_large(request) from None


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()
