"""What is in a VNF package: the whole, its VNFD, its manifest and its artifacts."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from msgspec import Meta

from slipway.api.file_response import FileResponse
from slipway.api.links import PACKAGES
from slipway.api.packages import PackagePaths
from slipway.api.request_body import Body, require_body, require_media_type, too_large, too_slow
from slipway.api.response_schema import NOTHING, file_of
from slipway.api.responses import empty_response, negotiate
from slipway.api.routing import GET, POST, PUT, AnyRequest, route
from slipway.api.services import Services
from slipway.model.errors import NotAcceptable
from slipway.model.requests import Request
from slipway.onboarding.download import DownloadSource
from slipway.store import tables

ZIP = "application/zip"
TEXT = "text/plain"
ANY = file_of("*/*")
Short = Annotated[str, Meta(max_length=255)]


class UploadFromUri(Request, frozen=True, kw_only=True):
    """UploadVnfPackageFromUriRequest."""

    address_information: Annotated[str, Meta(min_length=1, max_length=2048)]
    user_name: Short | None = None
    password: Short | None = None


_upload_from_uri = Body(UploadFromUri)


class PackageUploadRoutes:
    def __init__(self, services: Services) -> None:
        self._onboarding = services.onboarding
        self._max_bytes = services.max_package_bytes

    def routes(self) -> list[HTTPRouteHandler]:
        whole = f"{PACKAGES}/{{id:str}}/package_content"
        own = partial(route, table=tables.packages, responses={202: NOTHING})
        return [
            own(PUT, whole, self.upload, max_bytes=self._max_bytes, request_body=(ZIP,)),
            own(POST, f"{whole}/upload_from_uri", self.upload_from_uri, request_body=_upload_from_uri),
        ]

    async def upload(self, request: AnyRequest) -> ASGIResponse:
        """What is wrong with the content is in the package's onboardingFailureDetails."""
        require_body(request, (ZIP,))
        require_media_type(request, (ZIP,))
        await self._onboarding.upload(request.path_params["id"], _received(request))
        return empty_response(202)

    async def upload_from_uri(self, request: AnyRequest) -> ASGIResponse:
        """What goes wrong after this response is in the package's onboardingFailureDetails, too."""
        body = await _upload_from_uri.read(request)
        source = DownloadSource(body.address_information, body.user_name, body.password)
        await self._onboarding.fetch(request.path_params["id"], source)
        return empty_response(202)


class PackageContentRoutes:
    """What was uploaded, by one of the two paths to a package."""

    def __init__(self, services: Services, paths: PackagePaths) -> None:
        self._onboarding = services.onboarding
        self._max_artifacts = services.max_artifacts_bytes
        self._paths = paths

    def routes(self) -> list[HTTPRouteHandler]:
        one = self._paths.item
        own = partial(route, table=self._paths.table)
        file = partial(own, headers=("Range",))
        zipped = {200: file_of(ZIP), 206: file_of(ZIP)}
        some, text = {200: file_of(ZIP, TEXT)}, {200: file_of(TEXT)}
        return [
            file(GET, f"{one}/package_content", self.content, media_type=ZIP, responses=zipped, errors=(409, 416)),
            own(GET, f"{one}/vnfd", self.vnfd, media_type=None, responses=some, errors=(409,)),
            own(GET, f"{one}/manifest", self.manifest, media_type=TEXT, responses=text, errors=(409,)),
            file(GET, f"{one}/artifacts", self.artifacts, media_type=ZIP, responses=zipped, errors=(409, 413, 416)),
            file(
                GET,
                f"{one}/artifacts/{{name:path}}",
                self.artifact,
                media_type=None,
                responses={200: ANY, 206: ANY},
                errors=(409, 416),
            ),
        ]

    async def content(self, request: AnyRequest) -> ASGIResponse:
        path = await self._onboarding.content(await self._paths.id_of(request))
        size = (await asyncio.to_thread(path.stat)).st_size
        return FileResponse(lambda: path.open("rb"), size, ZIP, request.headers.get("range"))

    async def vnfd(self, request: AnyRequest) -> ASGIResponse:
        """A ZIP of all files, or the text itself when there is only one and the caller names that form."""
        accept = request.headers.get("accept")
        named = TEXT in (accept or "").lower()
        form = negotiate(accept, (TEXT, ZIP) if named else (ZIP, TEXT))
        files = await self._onboarding.vnfd(await self._paths.id_of(request))
        yaml = [content for name, content in files.items() if name.endswith((".yaml", ".yml"))]
        if form == TEXT and len(yaml) == 1:
            return _text_response(yaml[0])
        try:
            negotiate(accept, (ZIP,))
        except NotAcceptable:
            raise NotAcceptable(f"The VNFD has {len(yaml)} files, which no {TEXT} can hold. Accept {ZIP}.") from None
        return ASGIResponse(body=await asyncio.to_thread(_zipped, files), media_type=ZIP)

    async def manifest(self, request: AnyRequest) -> ASGIResponse:
        return _text_response(await self._onboarding.manifest(await self._paths.id_of(request)))

    async def artifacts(self, request: AnyRequest) -> ASGIResponse:
        """A ZIP of all files that are neither VNFD nor software image, nor about the package itself."""
        found = await self._onboarding.artifacts(await self._paths.id_of(request), self._max_artifacts)
        return FileResponse(found.open, found.size, found.media_type, request.headers.get("range"))

    async def artifact(self, request: AnyRequest) -> ASGIResponse:
        """An artifact is what it is, whatever Accept says: the stock client asks for JSON."""
        name = str(request.path_params["name"]).lstrip("/")
        found = await self._onboarding.artifact(await self._paths.id_of(request), name)
        return FileResponse(found.open, found.size, found.media_type, request.headers.get("range"))


def _text_response(content: bytes) -> ASGIResponse:
    """Of exactly this type: the stock client does not know what to do with a charset."""
    return ASGIResponse(body=content, headers={"Content-Type": TEXT})


async def _received(request: AnyRequest) -> AsyncIterator[bytes]:
    chunks = request.stream()
    try:
        while True:
            async with asyncio.timeout(request.app.state.body_seconds):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk
    except RequestEntityTooLarge:
        raise too_large(request) from None
    except TimeoutError:
        raise too_slow(request) from None


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()
