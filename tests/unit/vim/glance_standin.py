"""A stand-in for Glance, version 2 of its API, as far as images are made, filled, tagged, listed and deleted.

with a_glance(keystone) as glance:
    glance.images                                     # as its API shows them, by id
    glance.content[id]
    glance.meanwhile = lambda asked: ...              # what others do just before a request is answered
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.unit.vim.keystone_standin import Keystone
from tests.unit.vim.loopback import Asked, Reply, serving

TIME = "2026-01-01T00:00:00Z"


@dataclass
class Glance:
    """All images are of one second, as those are that are made at the same time."""

    keystone: Keystone
    project: str
    url: str = ""
    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    meanwhile: Callable[[Asked], None] = lambda asked: None
    replies: dict[tuple[str, str], Reply] = field(default_factory=dict)  # said after the work, by method and path's end
    tag_seconds: float = 0.0  # between reading all tags of an image and writing them
    most_tags: int = 128
    kept: set[str] = field(default_factory=set)  # ids of images that volumes are clones of
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, id_: str, *tags: str, owner: str | None = None, **more: Any) -> None:
        """One that is there already."""
        self.images[id_] = {
            "id": id_, "name": id_, "status": "active", "size": 1, "tags": list(tags), "created_at": TIME,
            "disk_format": "qcow2", "container_format": "bare", "owner": owner or self.project, **more,
        }  # fmt: skip

    def uploads(self) -> list[str]:
        return [one.path.split("/")[-2] for one in self.asked if one.method == "PUT" and one.path.endswith("/file")]

    def answer(self, asked: Asked) -> Reply:
        if asked.path.rstrip("/") in ("", "/v2"):
            link = {"rel": "self", "href": f"{self.url}/v2/"}
            return Reply(300, {"versions": [{"id": "v2.9", "status": "CURRENT", "links": [link]}]})
        self.asked.append(asked)
        self.meanwhile(asked)
        reply = self._tag(asked) if "/tags/" in asked.path else self._locked(asked)
        instead = [
            one
            for (method, end), one in self.replies.items()
            if (method, True) == (asked.method, asked.path.endswith(end))
        ]
        return instead[0] if instead else reply

    def _locked(self, asked: Asked) -> Reply:
        with self._lock:
            return self._answer(asked)

    def _answer(self, asked: Asked) -> Reply:
        _, _, _, *rest = asked.path.split("/")
        if not rest:
            return Reply(201, self._made(asked.document)) if asked.method == "POST" else Reply(200, self._list(asked))
        image = self.images.get(rest[0])
        if image is None:
            return Reply(404, {"message": f"No image found with ID {rest[0]}"})
        if rest[1:] == ["file"]:
            return self._fill(image, asked)
        if asked.method == "DELETE" and rest[0] in self.kept:
            return Reply(409, {"message": f"Image {rest[0]} could not be deleted because it is in use"})
        if asked.method == "DELETE":
            del self.images[rest[0]]
            return Reply(204)
        if asked.method == "PATCH":
            assert asked.headers["content-type"] == "application/openstack-images-v2.1-json-patch"
            image |= {one["path"].lstrip("/"): one["value"] for one in asked.document}
        return Reply(200, image)

    def _made(self, told: dict[str, Any]) -> dict[str, Any]:
        made = {"id": str(uuid4()), "status": "queued", "size": None, "owner": self.project, "created_at": TIME, **told}
        self.images[made["id"]] = made
        return dict(made)

    def _list(self, asked: Asked) -> dict[str, Any]:
        tag, owner = asked.query["tag"], asked.query.get("owner")
        return {"images": [one for one in self.images.values() if tag in one["tags"] and owner in (None, one["owner"])]}

    def _fill(self, image: dict[str, Any], asked: Asked) -> Reply:
        """A body that ends too early leaves it as it was."""
        if len(asked.body) < int(asked.headers["content-length"]):
            return Reply(400, {"message": "The client disconnected while sending the body."})
        self.content[image["id"]] = asked.body
        image |= {"status": "active", "size": len(asked.body)}
        return Reply(204)

    def _tag(self, asked: Asked) -> Reply:
        """As Glance does it: all tags are read and then written, and what others wrote in between is lost."""
        *_, id_, _, tag = asked.path.split("/")
        with self._lock:
            tags = list(self.images[id_]["tags"]) if id_ in self.images else None
        if tags is None or (asked.method == "DELETE" and tag not in tags):
            return Reply(404, {"message": "Not found"})
        if asked.method == "PUT" and len(tags) >= self.most_tags:
            return Reply(413, {"message": "Image tag limit exceeded"})
        time.sleep(random.uniform(0, self.tag_seconds))
        with self._lock:
            if id_ in self.images:
                others = [one for one in tags if one != tag]
                self.images[id_]["tags"] = [*others, tag] if asked.method == "PUT" else others
        return Reply(204)


@contextmanager
def a_glance(keystone: Keystone) -> Iterator[Glance]:
    glance = Glance(keystone, keystone.projects["demo"].id)
    with serving(glance.answer) as glance.url:
        keystone.endpoints["image"] = glance.url
        yield glance
