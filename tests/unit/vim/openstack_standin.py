"""A stand-in for Heat, Nova and Neutron with one stack, of one server with one port.

with an_openstack(keystone) as cloud:
    cloud.instead["GET", "/stacks"] = Reply(200, b"<html>")     # by method and the path's end
    cloud.did("PUT")                                            # paths
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from slipway.model.action import VimConnection
from slipway.model.vim import OPENSTACK
from slipway.vim.openstack.hot_template import PORT, SERVER
from tests.unit.vim.keystone_standin import Keystone
from tests.unit.vim.loopback import Asked, Reply, serving

ACCESS = {"username": "demo", "password": "demo-password", "project": "demo", "region": "RegionOne"}
INSTANCE = "i"
NAME = f"vnf-{INSTANCE}"


def listed_resource(name: str, type_: str, id_: Any = None) -> dict[str, Any]:
    link = {"rel": "stack", "href": f"http://heat/v1/p/stacks/{NAME}/1"}
    return {
        "resource_name": name, "resource_type": type_, "physical_resource_id": name if id_ is None else id_,
        "resource_status": "CREATE_COMPLETE", "links": [link],
    }  # fmt: skip


@dataclass
class OpenStack:
    keystone: Keystone
    url: str = ""
    stack: dict[str, Any] | None = field(
        default_factory=lambda: {"id": "1", "stack_name": NAME, "stack_status": "CREATE_COMPLETE", "tags": None}
    )
    resources: list[dict[str, Any]] = field(
        default_factory=lambda: [listed_resource("work-0", SERVER), listed_resource("cp", PORT)]
    )
    server: dict[str, Any] = field(default_factory=lambda: {"id": "work-0", "status": "ACTIVE", "tags": [NAME]})
    port: dict[str, Any] = field(default_factory=lambda: {"id": "cp", "device_id": "work-0", "fixed_ips": []})
    instead: dict[tuple[str, str], Reply | Callable[[Asked], Reply]] = field(default_factory=dict)
    access: dict[str, Any] = field(default_factory=lambda: dict(ACCESS))
    asked: list[Asked] = field(default_factory=list)

    @property
    def connection(self) -> VimConnection:
        return VimConnection(OPENSTACK, {"endpoint": self.keystone.url}, self.access, {})

    def did(self, *methods: str) -> list[str]:
        return [one.path for one in self.asked if one.method in methods]

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        for (method, end), reply in self.instead.items():
            if asked.method == method and asked.path.endswith(end):
                return reply if isinstance(reply, Reply) else reply(asked)
        if asked.path.rstrip("/") in ("/heat/v1", "/nova/v2.1", "/neutron"):
            return Reply(200, self.versions(asked.path.rstrip("/")))
        if asked.method == "GET":
            return self._shown(asked.path)
        if asked.path.endswith("/preview"):
            return Reply(200, {"resource_changes": {}})
        if asked.path.endswith("/stacks") or "/stacks/" in asked.path:
            self.stack = None if asked.method == "DELETE" else {**(self.stack or {}), "tags": [asked.document["tags"]]}
        return Reply(202, b"202 Accepted")

    def versions(self, path: str) -> dict[str, Any]:
        id_, more = {"heat": ("v1.0", {}), "neutron": ("v2.0", {})}.get(
            path.split("/")[1], ("v2.1", {"version": "2.90", "min_version": "2.1"})
        )
        link = {"rel": "self", "href": f"{self.url}{path}{'/v2.0' if id_ == 'v2.0' else ''}/"}
        return {"versions": [{"id": id_, "status": "CURRENT", "links": [link], **more}]}

    def _shown(self, path: str) -> Reply:
        if path.endswith("/stacks"):
            return Reply(200, {"stacks": [self.stack] if self.stack else []})
        if path.endswith("/resources"):
            return Reply(200, {"resources": self.resources})
        if path.endswith("/servers/detail"):
            return Reply(200, {"servers": [self.server] if NAME in self.server["tags"] else []})
        if path.endswith("/ports"):
            return Reply(200, {"ports": [self.port]})
        return Reply(200, {"server": self.server}) if path.endswith("/servers/work-0") else Reply(404, {})


@contextmanager
def an_openstack(keystone: Keystone) -> Iterator[OpenStack]:
    cloud = OpenStack(keystone)
    with serving(cloud.answer) as cloud.url:
        keystone.endpoints |= {
            "orchestration": f"{cloud.url}/heat/v1",
            "compute": f"{cloud.url}/nova/v2.1",
            "network": f"{cloud.url}/neutron",
        }
        yield cloud
