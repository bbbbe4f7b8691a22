"""A stand-in for an NFVO: hears grant requests on loopback and answers as a test wants it to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.unit.outgoing.loopback_server import Answer, Asked, document, serving

Decision = Callable[[dict[str, Any]], Answer | Awaitable[Answer]]
GRANTS = "/grant/v1/grants"
IMAGES = {"masterNode": "image-m", "workerNode": "image-w"}
FLAVOURS = {"masterNode": "flavour-m", "workerNode": "flavour-w"}


def a_grant(request: dict[str, Any], **more: Any) -> dict[str, Any]:
    """All that was asked for, and `more`."""
    lists: dict[str, Any] = {
        name: [{"resourceDefinitionId": one["id"]} for one in request[name]]
        for name in ("addResources", "removeResources", "updateResources")
        if name in request
    }
    links = {name: request["_links"][name] for name in ("vnfLcmOpOcc", "vnfInstance")}
    return {
        "id": str(uuid4()),
        "vnfInstanceId": request["vnfInstanceId"],
        "vnfLcmOpOccId": request["vnfLcmOpOccId"],
        "_links": {"self": {"href": "http://nfvo.example/grant/v1/grants/1"}, **links},
        **lists,
        **more,
    }


def placed(request: dict[str, Any], zone: str = "az-1", **more: Any) -> dict[str, Any]:
    """With a zone for each machine, an image and a size for each VDU."""
    grant = a_grant(request, **more)
    computes = {one["id"] for one in request.get("addResources", ()) if one["type"] == "COMPUTE"}
    for info in grant.get("addResources", ()):
        if info["resourceDefinitionId"] in computes:
            info["zoneId"] = "z1"
    images = [{"vnfdSoftwareImageId": vdu, "vimSoftwareImageId": image} for vdu, image in IMAGES.items()]
    flavours = [{"vnfdVirtualComputeDescId": vdu, "vimFlavourId": name} for vdu, name in FLAVOURS.items()]
    return {
        "zones": [{"id": "z1", "zoneId": zone}, {"id": "z2", "zoneId": "elsewhere"}],
        "vimAssets": {"softwareImages": images, "computeResourceFlavours": flavours},
        **grant,
    }


def yes(request: dict[str, Any]) -> Answer:
    return document(a_grant(request), 201)


def yes_there(request: dict[str, Any]) -> Answer:
    return document(placed(request), 201)


@dataclass
class SmallNfvo:
    url: str = ""
    decide: Decision = yes_there
    look: Callable[[], Answer] = lambda: Answer(404)  # what a GET of a grant is answered
    requests: list[dict[str, Any]] = field(default_factory=list)
    looks: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    tokens: int = 0

    def resources(self, name: str) -> list[tuple[str, str]]:
        """Types and templates in a list of the latest request."""
        return sorted((one["type"], one["resourceTemplateId"]) for one in self.requests[-1].get(name, ()))

    async def _answer(self, asked: Asked) -> Answer:
        if asked.path == "/token":
            self.tokens += 1
            assert asked.headers["authorization"].startswith("Basic ")
            return document({"access_token": f"token-{self.tokens}", "expires_in": 3600})
        self.headers.append(dict(asked.headers))
        if asked.method == "GET":
            self.looks += 1
            return self.look()
        assert asked.path == GRANTS
        self.requests.append(json.loads(asked.body))
        answer = self.decide(self.requests[-1])
        return answer if isinstance(answer, Answer) else await answer


@asynccontextmanager
async def small_nfvo() -> AsyncIterator[SmallNfvo]:
    nfvo = SmallNfvo()
    async with serving(nfvo._answer) as server:
        nfvo.url = server.url()
        yield nfvo
